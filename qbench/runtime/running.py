"""One run of a program: the caller's arrays on one side, the instruction table on the other."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core import config
from numpy.typing import NDArray

from qbench.errors import Cancelled
from qbench.ir.dtypes import numpy_dtype
from qbench.ir.op import Array
from qbench.ir.types import dim_factors
from qbench.progress import Cancel
from qbench.runtime.interpreter import step as interpret
from qbench.runtime.schedule import Schedule, Segment
from qbench.runtime.step import Step
from qbench.runtime.team import Crew, aligned, crew, default_threads

if TYPE_CHECKING:
    from qbench.runtime.program import Program

__all__ = ["Arenas", "Run", "numba_is_off"]

_config: Any = config
_READABLE = 128  # bytes behind the arena
_SLICE_NS = 100_000_000  # a run looks at Python so often, so that it can be interrupted
_CANCEL_SLICE_NS = 2_000_000  # and so often where it can be cancelled


def numba_is_off() -> bool:
    """Whether kernels are launched from Python, one by one, because Numba is off or checks bounds."""
    return bool(_config.DISABLE_JIT or _config.BOUNDSCHECK)


class Arenas:
    """The memory of a program's runs: one that ends leaves its arenas to the next one."""

    def __init__(self, size: int) -> None:
        self._size = size + _READABLE
        self._free: deque[NDArray[np.uint8]] = deque(maxlen=2 * default_threads())

    def take(self, count: int) -> list[NDArray[np.uint8]]:
        """So many arenas, for one run alone."""
        return [self._take() for _ in range(count)]

    def give_back(self, arenas: list[NDArray[np.uint8]]) -> None:
        """To be taken again."""
        self._free.extend(arenas)

    def _take(self) -> NDArray[np.uint8]:
        try:
            return self._free.pop()
        except IndexError:
            return aligned(self._size)


class Run:
    """One run; it is done once.

    Parameters
    ----------
    program, schedule
        What runs.
    arrays
        The feeds and the values known, checked.
    samples
        Number of samples in them, at least 1.
    cancel
        Looked at every few milliseconds, between instructions.
    """

    def __init__(
        self,
        program: Program,
        schedule: Schedule,
        arrays: Mapping[str, Array],
        samples: int,
        cancel: Cancel | None = None,
    ) -> None:
        self._program, self._schedule, self._samples, self._cancel = program, schedule, samples, cancel
        self._known: dict[str, Array] = {
            **{name: constant.array for name, constant in program.graph.constants.items()},
            **arrays,
        }
        self._made: dict[str, Array] = {}
        self._lent: dict[int, tuple[Array, int]] = {}
        for name, buffer in program.inputs.items():
            if name in arrays:
                self._lend(buffer, np.ascontiguousarray(arrays[name]), self._count(name))
        for name, buffer in program.outputs.items():
            self._made[name] = np.empty(self._shape(name), numpy_dtype(program.graph.types[name].dtype))
            self._lend(buffer, self._made[name], self._count(name))
        for name, buffer in schedule.given.items():
            self._lend(buffer, self._dense(name, arrays[name], self._count(name)), self._count(name))
        for name, buffer in schedule.kept.items():
            self._made[name] = self._leaving(name, buffer, schedule.sample if name in schedule.sampled else 0)

    def results(self) -> dict[str, Array]:
        """The outputs and the kept values, when the run is done."""
        found: dict[str, Array] = {}
        for name in dict.fromkeys((*self._program.graph.outputs, *self._schedule.keep)):
            array = self._known[name] if name in self._known else self._made[name]
            whole = name not in self._schedule.sampled or name in self._schedule.kept
            found[name] = array if whole else array.reshape(self._count(name), -1)[:, :: self._schedule.sample]
        return found

    # Values in the caller's memory

    def _count(self, name: str) -> int:
        """How many samples a value has: 1 if it is the same for all."""
        shape = self._program.graph.types[name].shape
        return self._samples if shape and dim_factors(shape[0])[1] else 1

    def _shape(self, name: str) -> tuple[int, ...]:
        """Of all samples."""
        shape = [dim_factors(dim)[0] for dim in self._program.graph.types[name].shape]
        return (shape[0] * self._count(name), *shape[1:]) if shape else ()

    def _lend(self, buffer: int, array: Array, count: int) -> None:
        self._lent[buffer] = array, array.nbytes // count if count > 1 else 0

    def _dense(self, name: str, array: Array, count: int) -> Array:
        """In the order of the value's place, as its copy into the place reads it."""
        place = self._program.places[name]
        parts = array.reshape(count, *place.natural_shape).transpose(0, *(axis + 1 for axis in place.axes))
        return np.ascontiguousarray(parts)

    def _leaving(self, name: str, buffer: int, sample: int = 0, one: bool = False) -> Array:
        """What a value, of all samples or of one, is copied to from its place; as the caller sees it."""
        count = 1 if one else self._count(name)
        place = self._program.places[name]
        dtype = numpy_dtype(self._program.graph.types[name].dtype)
        shape = place.shape if not sample else (-(-math.prod(place.shape) // sample),)
        array = np.empty((count, *shape), dtype)
        self._lend(buffer, array, count)
        if sample:
            return array
        parts = array.transpose(0, *(1 + place.axes.index(axis) for axis in range(len(place.axes))))
        return parts.reshape(place.natural_shape if one else self._shape(name))

    # Running

    def run(self, threads: int) -> None:
        """Run all samples."""
        if numba_is_off():
            self._from_python(threads)
            return
        self._look()
        table = self._schedule.table
        with crew(threads) as team:
            interpreted = len(self._schedule.segments) > 1
            apart = 0 if interpreted or team.threads == 1 else self._samples // team.threads * team.threads
            arenas = self._program.arenas.take(team.threads if apart else 1)
            try:
                addresses = [arena.ctypes.data for arena in arenas]
                team.job["rows"], team.job["offsets"] = table.address, self._schedule.offsets.ctypes.data
                if interpreted:
                    self._by_image(partial(self._image, team, addresses))
                else:
                    if apart:
                        self._native(team, addresses, self._schedule.segments[0], 0, apart, apart=True)
                    if apart < self._samples:
                        self._native(team, addresses[:1], self._schedule.segments[0], apart, self._samples)
            finally:
                self._program.arenas.give_back(arenas)

    def _image(self, team: Crew, arenas: list[int], segment: Segment, image: int) -> None:
        self._native(team, arenas, segment, image, image + 1)

    def _native(
        self, team: Crew, arenas: list[int], segment: Segment, first: int, last: int, apart: bool = False
    ) -> None:
        if segment.first == segment.last:
            return
        externals = np.array(
            [(buffer, array.ctypes.data, stride) for buffer, (array, stride) in self._lent.items()], np.int64
        )
        job = team.job
        job["first"], job["last"], job["apart"], job["threads"] = segment.first, segment.last, apart, team.threads
        job["externals"], job["external_count"] = externals.ctypes.data, len(externals)
        team.prepare(self._schedule.width, first, last, arenas if apart else arenas * team.threads)
        slice_ns = _SLICE_NS if self._cancel is None else _CANCEL_SLICE_NS
        done = False
        while not done:
            job["deadline"] = time.monotonic_ns() + slice_ns
            done = team.work()
            self._look()

    def _from_python(self, threads: int) -> None:
        arenas = self._program.arenas.take(1)
        bases = np.zeros(self._schedule.width, np.int64)
        known = len(self._program.offsets)

        def run(segment: Segment, image: int) -> None:
            bases[1:known] = arenas[0].ctypes.data + self._program.offsets[1:]
            for buffer, (array, stride) in self._lent.items():
                bases[buffer] = array.ctypes.data + image * stride
            for instruction in self._schedule.instructions[segment.first : segment.last]:
                kernel = instruction.kernel
                call = kernel.function if _config.DISABLE_JIT else kernel.dispatcher
                for thread in range(threads):
                    call(instruction.arguments[0], bases, thread, threads)
                self._look()

        self._by_image(run)

    def _by_image(self, native: Callable[[Segment, int], None]) -> None:
        for image in range(self._samples):
            values: dict[str, Array] = {}
            for segment in self._schedule.segments:
                self._look()
                if segment.interpreted:
                    fresh = [name for name in segment.interpreted.inputs if name in self._schedule.read]
                    values |= {name: self._leaving(name, self._schedule.read[name], one=True) for name in fresh}
                native(segment, image)
                if segment.interpreted:
                    self._interpret(segment.interpreted, image, values)

    def _interpret(self, step: Step, image: int, values: dict[str, Array]) -> None:
        """Do a step's nodes on the arrays of one sample."""
        graph = self._program.graph
        for name in step.nodes:
            node = graph.node(name)
            arrays = [values[value] if value in values else self._part(value, image) for value in node.inputs]
            values |= zip(node.outputs, interpret(graph, node, arrays), strict=True)
        for name in step.outputs:
            if name in self._schedule.written:
                self._lend(self._schedule.written[name], self._dense(name, values[name], 1), 1)
            if name in (*graph.outputs, *self._schedule.keep) and name not in self._known:
                self._store(name, image, values[name])

    def _part(self, name: str, image: int) -> Array:
        array = self._known[name]
        if self._count(name) == 1:
            return array
        size = len(array) // self._samples
        return array[image * size : (image + 1) * size]

    def _store(self, name: str, image: int, array: Array) -> None:
        if self._count(name) == 1:
            self._made[name] = array
            return
        if name not in self._made:
            self._made[name] = np.empty(self._shape(name), array.dtype)
        size = len(array)
        self._made[name][image * size : (image + 1) * size] = array

    def _look(self) -> None:
        if self._cancel is not None and self._cancel.is_set():
            raise Cancelled("the run was stopped; nothing of it was kept")
