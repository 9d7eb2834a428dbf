"""What a config costs to run: time, measured and estimated, and the bytes of its constants."""

import math
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from qbench.data.portions import Feeds
from qbench.errors import Cancelled
from qbench.ir.dtypes import integer_range, is_integer, numpy_dtype
from qbench.ir.graph import Graph
from qbench.ir.op import bind
from qbench.ir.specialize import sized
from qbench.ir.types import numel
from qbench.ops.integer.table import IntegerTable
from qbench.ops.products import SumOfProducts, macs
from qbench.progress import Cancel, stopped
from qbench.runtime.fuse import Fused, fuse
from qbench.runtime.program import Program
from qbench.runtime.programs import Programs

_TICK = 1e-6  # milliseconds
_LEAST, _SECONDS, _MOST = 9, 0.4, 2.0  # turns, how long they take at least, and when no other begins
MACS_PER_BYTE = 25  # 8-bit products in about the time that it takes to make a byte of results
_GROUPED = 3.5  # times as long as others take products of convolutions in groups
_LOOKED_UP = 4.5  # bytes that could be made while one of 65,536 results is found
SLOWER = {"int16": 2, "uint16": 2, "float16": 4, "float32": 4}  # products than 8-bit ones


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one program: milliseconds of a run, and the bytes of its constants."""

    ms: float
    bytes: int


class Stopwatch:
    """Times programs on one thread, in turns with the first of them, so that what else the machine does falls on both.

    Parameters
    ----------
    feeds
        One piece of data.
    """

    def __init__(self, feeds: Feeds) -> None:
        self._feeds, self._lock = feeds, threading.Lock()
        self._reference: tuple[Program, float] | None = None

    def cost(self, graph: Graph, cancel: Cancel | None = None) -> Cost:
        """The least time of many turns over that of the first program in the same turns; in its milliseconds.

        Raises
        ------
        Cancelled
            `cancel` was set.
        """
        with self._lock:
            program = Programs(graph).of(self._feeds)
            other, ms = self._reference or (program, _shortest(self._turns(program, program, cancel))[1])
            self._reference = other, ms
            mine, others = _shortest(self._turns(program, other, cancel)) if other is not program else (1.0, 1.0)
        return Cost(ms * mine / others, constant_bytes(graph))

    def _turns(self, program: Program, other: Program, cancel: Cancel | None) -> list[tuple[float, float]]:
        """Milliseconds of both, several times one after the other."""
        for one in (program, other):  # what the first run makes ready is not timed
            self._once(one)
        taken, begin = list[tuple[float, float]](), time.perf_counter()
        while len(taken) < _LEAST or time.perf_counter() - begin < _SECONDS:
            if stopped(cancel):
                raise Cancelled("timing was stopped")
            taken.append((self._once(program), self._once(other)))
            if time.perf_counter() - begin > _MOST:
                break
        return taken

    def _once(self, program: Program) -> float:
        """Milliseconds of the thread, without those that other programs have the processor."""
        begin = time.thread_time()
        program.run(self._feeds, threads=1)
        return 1000 * (time.thread_time() - begin)


def _shortest(turns: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Of either program the run that nothing else made longer; where the clock ticks too seldom to tell, the mean."""
    sides = [turn[0] for turn in turns], [turn[1] for turn in turns]
    if min(map(min, sides)) > 0:
        return min(sides[0]), min(sides[1])
    return max(fmean(sides[0]), _TICK), max(fmean(sides[1]), _TICK)


def constant_bytes(graph: Graph) -> int:
    """Bytes of all constants; two int4 values share one."""
    bits = 0
    for constant in graph.constants.values():
        low, high = integer_range(constant.dtype) if is_integer(constant.dtype) else (0, 0)
        bits += ((high - low).bit_length() or 8 * numpy_dtype(constant.dtype).itemsize) * math.prod(constant.shape)
    return (bits + 7) // 8


def products(graph: Graph, sizes: Mapping[str, int]) -> int:
    """How many products one sample of these sizes takes."""
    graph = sized(graph, sizes)
    return sum(macs(graph, node) for node in graph.nodes)


def effort(graph: Graph, sizes: Mapping[str, int]) -> float:
    """About how long a run takes, in bytes written: the same on every machine, so that a search is reproducible.

    What kernels do in one go is one step, whose sums are not written.
    """
    graph = sized(graph, sizes)
    return sum(_effort_of(graph, step) for step in fuse(graph))


def _effort_of(graph: Graph, step: Fused) -> float:
    head, read = bind(step.head), [graph.types[name] for name in step.head.inputs]
    slower = SLOWER.get(read[0].dtype, 1) if read else 1
    apart = _GROUPED if isinstance(head, SumOfProducts) and head.groups > 1 else 1
    products = slower * apart * sum(macs(graph, node) for node in step.nodes) / MACS_PER_BYTE
    made = [graph.types[name] for name in step.outputs]
    results = sum((numel(kind.shape) + kind.nbytes) / 2 for kind in made)
    if isinstance(head, IntegerTable) and numpy_dtype(read[0].dtype).itemsize > 1:
        results += _LOOKED_UP * sum(numel(kind.shape) for kind in made)
    return products + results
