"""What a config costs to run: time, measured and estimated, and the bytes of its constants."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from qbench.data.dataset import Feeds
from qbench.errors import Cancelled
from qbench.ir.dtypes import integer_range, is_integer, numpy_dtype
from qbench.ir.graph import Graph
from qbench.ir.types import numel
from qbench.ops.products import macs
from qbench.progress import Cancel
from qbench.runtime.programs import Programs

__all__ = ["Cost", "constant_bytes", "effort", "measured_cost"]

_LEAST, _SECONDS = 5, 0.2  # runs of a program, and how long they take together
_MACS_PER_BYTE = 32  # 8-bit products in about the time that it takes to write a byte
_SLOWER = {"int16": 2, "float16": 4, "float32": 4}  # products than 8-bit ones


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one program: milliseconds of a run, and the bytes of its constants."""

    ms: float
    bytes: int


def measured_cost(graph: Graph, feeds: Feeds, threads: int = 1, cancel: Cancel | None = None) -> Cost:
    """Run a graph's program on one piece of data: the least of several times, which other work does not lengthen.

    Raises
    ------
    Cancelled
        `cancel` was set.
    """
    program = Programs(graph).of(feeds)
    program.run(feeds, threads=threads, cancel=cancel)
    taken, end = list[float](), time.perf_counter() + _SECONDS
    while len(taken) < _LEAST or time.perf_counter() < end:
        if cancel is not None and cancel.is_set():
            raise Cancelled("timing was stopped")
        begin = time.perf_counter()
        program.run(feeds, threads=threads)
        taken.append(1000 * (time.perf_counter() - begin))
    return Cost(min(taken), constant_bytes(graph))


def constant_bytes(graph: Graph) -> int:
    """Bytes of all constants; two int4 values share one."""
    bits = 0
    for constant in graph.constants.values():
        low, high = integer_range(constant.dtype) if is_integer(constant.dtype) else (0, 0)
        bits += ((high - low).bit_length() or 8 * numpy_dtype(constant.dtype).itemsize) * math.prod(constant.shape)
    return (bits + 7) // 8


def effort(graph: Graph) -> float:
    """About how long a run takes, in bytes written: the same on every machine, so that a search is reproducible."""
    total = 0.0
    for node in graph.nodes:
        work = macs(graph, node)
        rate = _SLOWER.get(graph.types[node.inputs[0]].dtype, 1) if node.inputs else 1
        total += rate * work / _MACS_PER_BYTE
        total += sum(numel(graph.types[v].shape) * numpy_dtype(graph.types[v].dtype).itemsize for v in node.outputs)
    return total
