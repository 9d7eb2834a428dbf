"""One run of a program: the caller's arrays on one side, the instruction table on the other."""

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from qbench.errors import Cancelled, DataError, NotANumberError, shown
from qbench.ir.op import Array
from qbench.kernels.levels import numba_is_off
from qbench.progress import Cancel, stopped
from qbench.runtime.interpreter import step as interpret
from qbench.runtime.memory import GUARDED, address, aligned, zeros
from qbench.runtime.port import apart, is_batched, joined
from qbench.runtime.schedule import Schedule, Segment
from qbench.runtime.step import Step
from qbench.runtime.tallies import Tally
from qbench.runtime.team import Crew, crew, default_threads

_SLICE_NS = 100_000_000  # a run looks at Python so often, so that it can be interrupted
_CANCEL_SLICE_NS = 2_000_000  # and so often where it can be cancelled


class Arenas:
    """The memory of a program's runs: one that ends leaves its arenas to the next one."""

    def __init__(self, size: int, gaps: Sequence[tuple[int, int]] = ()) -> None:
        self._size, self._gaps = size, gaps
        self._free: deque[NDArray[np.uint8]] = deque(maxlen=0 if GUARDED else 2 * default_threads())

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
            return aligned(self._size, self._gaps)


class Run:
    """One run; it is done once.

    Parameters
    ----------
    schedule
        What runs.
    arenas
        The memory of the plan's runs.
    arrays
        The feeds and the values known, checked.
    samples
        Number of samples in them, at least 1.
    cancel
        Looked at every few milliseconds, between instructions.
    timed
        Whether to measure `seconds`, which keeps samples from running side by side.
    tallies
        What the observed values are counted into.
    """

    def __init__(
        self,
        schedule: Schedule,
        arenas: Arenas,
        arrays: Mapping[str, Array],
        samples: int,
        cancel: Cancel | None = None,
        timed: bool = False,
        tallies: Mapping[str, Tally] | None = None,
    ) -> None:
        self._schedule, self._arenas, self._samples, self._cancel = schedule, arenas, samples, cancel
        self._known, self._made = arrays, dict[str, Array]()
        self._lent: dict[int, tuple[int, int, int]] = {}  # as the table's interpreter wants it
        self._held: dict[int, Array] = {}
        for ports in (schedule.fed, schedule.given):
            for name, port in ports.items():
                if port.buffer in schedule.entered:  # a known value lies in this input: the caller's stays as it is
                    buffer, inside = port.leave(samples)
                    inside[...] = apart(arrays[name], port.kind, len(inside)) if name in arrays else 0
                    self._lend(port.buffer, buffer, port.stride)
                elif name in arrays:
                    self._lend(port.buffer, port.enter(arrays[name], samples), port.stride)
        for ports in (schedule.made, schedule.kept):
            for name, port in ports.items():
                buffer, self._made[name] = port.leave(samples)
                self._lend(port.buffer, buffer, port.stride)
        self._tallies = tallies or {}
        for name, (found, totals) in schedule.tallied.items():
            self._lend(found, self._tallies[name].found, 0)
            self._lend(totals, self._tallies[name].totals, 0)
        watching = *schedule.pointing.values(), *schedule.checked.values()
        self._flags = zeros((len(watching), samples), np.int64) if watching else None
        """What was seen by those who look for indices that point beyond, and behind them for NaN, in each sample."""
        if self._flags is not None:
            start = address(self._flags)
            for row, buffer in enumerate(watching):
                self._lent[buffer] = buffer, start + 8 * samples * row, 8
        self._took = zeros((len(schedule.instructions),), np.int64) if timed else None
        self.interpreted_seconds: dict[str, float] = {}
        """What each interpreted step took, for all samples."""

    @property
    def seconds(self) -> NDArray[np.float64]:
        """What each instruction of a timed run took, for all samples."""
        assert self._took is not None
        return self._took.astype(np.float64) * 1e-9

    def results(self) -> dict[str, Array]:
        """The outputs and the kept values, when the run is done; DataError for NaN to quantize and indices beyond."""
        if self._flags is not None and np.count_nonzero(self._flags):
            row = int(self._flags.any(axis=1).argmax())
            name = (*self._schedule.pointing, *self._schedule.checked)[row]
            sample = int(self._flags[row].argmax())
            beyond = row < len(self._schedule.pointing)
            raise DataError(self._about_pointers(name, sample)) if beyond else NotANumberError(name, sample)
        for name, tally in self._tallies.items():
            if name in self._schedule.tallied:
                tally.samples += self._samples
            else:
                for image in range(self._samples):
                    tally.add(self._part(name, image))
        found: dict[str, Array] = {}
        for name in self._schedule.wanted:
            every, kind = self._schedule.sampled.get(name), self._schedule.plan.graph.types[name]
            if every is not None:
                parts = self._parts(name)
                kept = name in self._schedule.kept  # kernels have taken the sample
                found[name] = parts if kept else parts.reshape(len(parts), -1)[:, ::every]
            elif name in self._made and name not in self._known:
                found[name] = joined(self._made[name], kind)
            else:
                found[name] = self._whole(name)
        return found

    def _about_pointers(self, name: str, sample: int) -> str:
        step = next(step for step in self._schedule.steps if step.name == name)
        ((indices, sizes),) = step.pointers.items()
        limits = " x ".join(map(str, sizes))
        about = f"indices {shown(indices)} point beyond the size {limits}"
        return f"step {shown(name)}: {about}, in sample {sample} of the run"

    def run(self, threads: int) -> None:
        """Run all samples."""
        self._look()
        if numba_is_off():
            (arena,) = self._arenas.take(1)
            self._by_image(partial(self._from_python, threads, arena))
            return
        segments, samples, table = self._schedule.segments, self._samples, self._schedule.table.address
        by_image = len(segments) > 1
        with crew(threads) as team:
            alone = by_image or self._took is not None or team.threads == 1
            apart = 0 if alone else samples // team.threads * team.threads
            arenas = self._arenas.take(team.threads if apart else 1)
            addresses = [*map(address, arenas)]
            try:
                if by_image:
                    self._by_image(
                        lambda segment, image: self._native(team, table, addresses, segment, image, image + 1)
                    )
                    return
                if apart:
                    self._native(team, table, addresses, segments[0], 0, apart)
                if apart < samples:
                    self._native(team, table, addresses[:1], segments[0], apart, samples)
            finally:
                self._arenas.give_back(arenas)

    def _lend(self, buffer: int, array: Array, stride: int) -> None:
        self._held[buffer], self._lent[buffer] = array, (buffer, address(array), stride)

    def _look(self) -> None:
        if stopped(self._cancel):
            raise Cancelled("the run was stopped; nothing of it was kept")

    # Instructions

    def _native(self, team: Crew, table: int, arenas: list[int], segment: Segment, first: int, last: int) -> None:
        """Samples from `first` up to `last`: apart in an arena for each thread, or together in the one arena given."""
        if segment.first == segment.last:
            return
        apart = len(arenas) == team.threads
        team.prepare(
            rows=(table, segment.first, segment.last),
            offsets=(self._schedule.offsets_address, self._schedule.width),
            externals=self._lent.values(),
            images=(first, last),
            arenas=arenas if apart else arenas * team.threads,
            apart=apart,
            times=0 if self._took is None else self._took.ctypes.data,
        )
        slice_ns = _SLICE_NS if self._cancel is None else _CANCEL_SLICE_NS
        while not team.work(time.monotonic_ns() + slice_ns):
            self._look()
        self._look()

    def _from_python(self, threads: int, arena: NDArray[np.uint8], segment: Segment, image: int) -> None:
        bases = arena.ctypes.data + self._schedule.offsets
        bases[0] = 0
        for buffer, start, stride in self._lent.values():
            bases[buffer] = start + image * stride
        for row in range(segment.first, segment.last):
            instruction = self._schedule.instructions[row]
            kernel = instruction.kernel
            begin = time.perf_counter_ns()
            for thread in range(threads):
                kernel.launch(instruction.arguments, bases, thread, threads)
            if self._took is not None:
                self._took[row] += time.perf_counter_ns() - begin
            self._look()

    # Steps of the interpreter

    def _by_image(self, native: Callable[[Segment, int], None]) -> None:
        for image in range(self._samples):
            values: dict[str, Array] = {}
            for segment in self._schedule.segments:
                step = segment.interpreted
                if step is not None:
                    for name in step.inputs:
                        if name in self._schedule.read:
                            buffer, parts = self._schedule.read[name].leave(1)
                            values[name] = parts[0, ...]  # a view, also where it has no axes
                            self._lend(self._schedule.read[name].buffer, buffer, 0)
                native(segment, image)
                if step is not None:
                    self._look()
                    begin = time.perf_counter()
                    self._interpret(step, image, values)
                    took = self.interpreted_seconds.get(step.name, 0.0) + time.perf_counter() - begin
                    self.interpreted_seconds[step.name] = took

    def _interpret(self, step: Step, image: int, values: dict[str, Array]) -> None:
        """Do a step's nodes on the arrays of one sample."""
        graph = self._schedule.plan.single
        for name in step.nodes:
            node = graph.node(name)
            arrays = [values[value] if value in values else self._part(value, image) for value in node.inputs]
            values |= zip(node.outputs, interpret(graph, node, arrays), strict=True)
        for name in step.outputs:
            if name in self._schedule.quantized and np.isnan(values[name]).any():
                raise NotANumberError(name, image)
            if name in self._schedule.written:
                port = self._schedule.written[name]
                self._lend(port.buffer, port.enter(values[name], 1), port.stride)
            if name in (*self._schedule.wanted, *self._schedule.observed) and name not in self._known:
                self._store(name, image, values[name])

    def _part(self, name: str, image: int) -> Array:
        """One sample of a value that is known, or was made."""
        constants = self._schedule.plan.single.constants
        if name in constants and name not in self._known:
            return constants[name].array
        parts = self._parts(name)
        return parts[image if len(parts) > 1 else 0]

    def _parts(self, name: str) -> Array:
        """The samples of a value that is known, or was made, or the one that it has for all."""
        if name in self._made and name not in self._known:
            return self._made[name]
        return apart(self._whole(name), self._schedule.plan.graph.types[name], self._samples)

    def _whole(self, name: str) -> Array:
        return self._known[name] if name in self._known else self._schedule.plan.graph.constants[name].array

    def _store(self, name: str, image: int, array: Array) -> None:
        """Add one sample to a result."""
        kind = self._schedule.plan.graph.types[name]
        if self._samples == 1 or not is_batched(kind):
            self._made[name] = array[None]
            return
        if name not in self._made:
            self._made[name] = np.empty((self._samples, *array.shape), array.dtype)
        self._made[name][image] = array
