"""What a run does: the steps that it needs, and the copies by which values enter and leave between them."""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from qbench.errors import GraphError, nearest, shown
from qbench.ir.dtypes import numpy_dtype
from qbench.ir.op import is_op
from qbench.kernels.indexed import DEPTH, beyond_kernel
from qbench.kernels.kernel import Kernel
from qbench.kernels.memory import reference
from qbench.kernels.move import copy_fields, copy_kernel
from qbench.kernels.nan import nan_kernel
from qbench.kernels.sample import SAMPLE_RANK, sample_kernel
from qbench.kernels.tally import means_kernel, tally_kernel
from qbench.kernels.walk import walks
from qbench.ops.onnx.dynamic import DynamicQuantize
from qbench.ops.qnn.border import Quantize
from qbench.ops.qnn.dynamic import DynamicDense
from qbench.runtime.instruction_table import Table
from qbench.runtime.memory import zeros
from qbench.runtime.plan import Plan
from qbench.runtime.port import Port, is_batched, whole_shape
from qbench.runtime.step import Instruction, Place, Rows, Step, row_major
from qbench.runtime.strips import strips

_LONG = 16
"""Elements from which on rows are looked at one by one: several threads can share them."""


@dataclass(frozen=True)
class Segment:
    """Instructions that run at one go, from `first` up to `last`, then the step that the interpreter does, if any."""

    first: int
    last: int
    interpreted: Step | None = None


class Schedule:
    """The instructions of one kind of run, which knows some values, keeps some, and does no step that it doesn't need.

    Parameters
    ----------
    plan
        What runs.
    start
        Names of the values that are known.
    keep
        Names of the values wanted beside the outputs.
    sample
        The kept values of which only a sample is wanted, each with every how many elements, in the value's own order.
    observe
        The values that are counted into tallies, each with the axis of its channels.

    Raises
    ------
    GraphError
        A value that the graph doesn't have, or that was fused away.
    """

    def __init__(
        self,
        plan: Plan,
        start: Collection[str],
        keep: Sequence[str],
        sample: Sequence[tuple[str, int]] = (),
        observe: Sequence[tuple[str, int | None]] = (),
    ) -> None:
        self.plan, self._start = plan, frozenset(start)
        self.observed = dict(observe)
        self.sampled = {name: every for name, every in sample if name not in plan.graph.outputs}
        """Every how many elements are wanted of the kept values that are not wanted whole."""
        self.wanted = tuple(dict.fromkeys((*plan.graph.outputs, *keep)))
        """What a run gives: the outputs, then the kept values."""
        self._check()
        self._needed, inputs = self._steps()
        self._native = {name for step in self._needed if not step.reason for name in step.inputs}
        self.inputs = tuple(name for name in plan.graph.inputs if name in inputs)
        """The graph's inputs that must be fed."""
        self.width = len(plan.offsets)
        """Number of buffers, those of the values that enter and leave included."""
        self.fed = {name: self._external(name, buffer) for name, buffer in plan.inputs.items()}
        """The ports of the graph's inputs."""
        self.made = {name: self._external(name, buffer) for name, buffer in plan.outputs.items()}
        """The ports of the graph's outputs that steps write there."""
        self.given: dict[str, Port] = {}
        """The ports of known values."""
        self.kept: dict[str, Port] = {}
        """The ports of kept values, and of outputs that no step writes to the caller's memory."""
        self.read: dict[str, Port] = {}
        """The ports of values that interpreted steps read, for one sample."""
        self.written: dict[str, Port] = {}
        """The ports of values that interpreted steps write, for one sample."""
        self.tallied: dict[str, tuple[int, int]] = {}
        """Buffers of tally and totals, for those of the observed values that kernels count."""
        self.quantized = frozenset(
            node.inputs[0] for node in plan.graph.nodes if is_op(node, Quantize, DynamicDense, DynamicQuantize)
        )
        """The float values that are quantized within the plan."""
        self.checked: dict[str, int] = {}
        """Buffers that say whether values that are quantized within the program hold NaN."""
        self.pointing: dict[str, int] = {}
        """Buffers that say whether indices that steps go by, by the steps' names, point beyond what they point into."""
        self.instructions: list[Instruction] = []
        self.steps: list[Step] = []
        """The step that each instruction belongs to."""
        self.segments: list[Segment] = []
        self._build()
        self.entered = frozenset(plan.places[name].buffer for name in self.given)
        """The buffers that known values are written to."""
        self.offsets = zeros((self.width,), np.int64)
        """Of each buffer in the arena."""
        self.offsets[: len(plan.offsets)] = plan.offsets
        self.offsets_address: int = self.offsets.ctypes.data

    @cached_property
    def table(self) -> Table:
        """For the machine; the kernels are compiled when it is first asked for."""
        return Table(self.instructions)

    def _check(self) -> None:
        graph, steps = self.plan.graph, self.plan.steps
        made = {name for step in steps for name in step.outputs} | {*graph.inputs, *graph.constants}
        for name in (*self._start, *self.wanted, *self.observed):
            if name not in graph.types:
                raise GraphError(f"the graph has no value {shown(name)}{nearest(name, graph.types)}")
            if name not in made:
                producer = graph.producers[name].name
                step = next((step.name for step in steps if producer in step.nodes), producer)
                raise GraphError(
                    f"value {shown(name)} was fused into step {shown(step)}, so it can be neither kept nor given; "
                    f"plan with keep=[{shown(name)}]"
                )

    def _steps(self) -> tuple[set[Step], set[str]]:
        """The steps that the wanted values need, and what must be known before the first one."""
        graph = self.plan.graph
        leaving = {*self.plan.outputs.values()}
        copies = {name for name, place in self.plan.places.items() if place.buffer in leaving}
        needed = {*self.wanted, *self.observed, *copies} - self._start - {*graph.constants}
        chosen: set[Step] = set()
        for step in reversed(self.plan.steps):
            if needed.intersection(step.outputs):
                chosen.add(step)
                needed -= set(step.outputs)
                needed |= set(step.inputs) - self._start - {*graph.constants}
        return chosen, needed | {*self.wanted, *self.observed}

    def _build(self) -> None:
        graph = self.plan.graph
        arrays = {*graph.inputs, *graph.constants, *self._start}
        leaving = {*self.wanted, *self.observed} - {*self.plan.outputs}
        first = 0
        ends = {chain[-1]: chain for chain in self.plan.chains}
        for step in self.plan.steps:
            if step in self._needed and step.reason:
                for name in step.inputs:
                    if name not in arrays:
                        self._leave(step, name, self.read)
                self.segments.append(Segment(first, len(self.instructions), step))
                first = len(self.instructions)
                for name in step.outputs:
                    if name in self._native and name not in self._start:
                        self._enter(step, name, self.written)
                arrays.update(step.outputs)
            elif step in self._needed:
                self.instructions += step.instructions
                self.steps += [step] * len(step.instructions)
                self._check_pointers(step)
            for name in step.outputs:
                if name in self._start and name in self._native and name not in self.given:
                    self._enter(step, name, self.given)
                elif name in self.quantized - self._start and step in self._needed and not step.reason:
                    self._check_nan(step, name)
                counted = name in self.observed and name not in arrays and self._tally(step, name)
                leaves = name in leaving and (name in self.wanted or not counted)
                if leaves and name not in arrays and name not in self.kept:
                    self._leave(step, name, self.kept)
            if step in ends:
                self._cut(ends[step])
        self.segments.append(Segment(first, len(self.instructions)))

    def _cut(self, chain: Sequence[Step]) -> None:
        """Have the instructions of a chain run a few rows at a time, unless somebody wants all of what passes on."""
        passed = {name for step in chain[:-1] for name in step.outputs}
        if not self._needed.issuperset(chain) or passed & {*self._start, *self.wanted, *self.observed}:
            return
        begin = self.steps.index(chain[0])
        own = list(zip(self.instructions[begin:], self.steps[begin:], strict=True))
        made = {instruction for step in chain for instruction in step.instructions}
        walk = [pair for pair in own if pair[0].rows is not None]
        before = [pair for pair in own if pair[0].rows is None and pair[0] in made]
        after = own[own.index(walk[-1]) + 1 :]
        if len(before) + len(walk) + len(after) < len(own):
            return
        parts = strips([instruction for instruction, _ in walk])
        owners = [step for _, step in walk] * (len(parts) // len(walk))
        self.instructions[begin:] = [*(one for one, _ in before), *parts, *(one for one, _ in after)]
        self.steps[begin:] = [*(step for _, step in before), *owners, *(step for _, step in after)]

    def _external(self, name: str, buffer: int) -> Port:
        kind = self.plan.graph.types[name]
        place = Place.dense(buffer, numpy_dtype(kind.dtype), whole_shape(kind, 1))
        return Port(buffer, kind, place, is_batched(kind))

    def _enter(self, step: Step, name: str, ports: dict[str, Port]) -> None:
        """Copy the whole of a value into its place, and fill the border around it."""
        port = self._port(name, ports)
        place = port.place
        fields = copy_fields(place.shape, row_major(place.shape), place.strides)
        kernel = copy_kernel(place.dtype.itemsize)
        self._add(step, name, kernel, x=reference(port.buffer), out=place.reference, **fields)
        border = self.plan.borders.get(name, ())
        self.instructions += border
        self.steps += [step] * len(border)

    def _leave(self, step: Step, name: str, ports: dict[str, Port]) -> None:
        """Copy a value, or a sample of it, out of its place."""
        port = self._port(name, ports)
        place = port.place
        if port.sample:
            kernel, fields = sample_kernel(place.dtype.itemsize), _sample_fields(place, port.sample)
        else:
            kernel = copy_kernel(place.dtype.itemsize)
            fields = copy_fields(place.shape, place.strides, row_major(place.shape))
        self._add(step, name, kernel, x=place.reference, out=reference(port.buffer), **fields)

    def _check_nan(self, step: Step, name: str) -> None:
        """Look for what kernels would quantize to just any integer; the interpreter raises an error there."""
        place = self.plan.places[name]
        self.checked[name], self.width = self.width, self.width + 1
        if place.contiguous and place.shape and place.shape[-1] >= _LONG:
            rows, inner = math.prod(place.shape[:-1]), place.shape[-1]
            cut = Rows(1, rows, {"x": ()}, "", {"x": inner * place.dtype.itemsize}, {"rows": 1})
            fields = {"rows": rows, "inner": inner, "stride": inner, "found": reference(self.checked[name])}
            self._add(step, name, nan_kernel(place.dtype), cut, x=place.reference, **fields)
            return
        axes = sorted(_merged(zip(place.shape, place.strides, strict=True)), key=lambda axis: -axis[1])
        inner = axes.pop()[0] if axes and axes[-1][1] == 1 else 1
        rows, stride = axes.pop() if axes else (1, inner)
        fields = {"rows": rows, "inner": inner, "stride": stride, "found": reference(self.checked[name])}
        for outer in product(*(range(0, size * step, step) for size, step in axes)):
            x = reference(place.buffer, place.offset + sum(outer) * place.dtype.itemsize)
            self._add(step, name, nan_kernel(place.dtype), x=x, **fields)

    def _check_pointers(self, step: Step) -> None:
        """Look for indices that the interpreter would refuse; the kernels that go by them pick any element there."""
        for name, limits in step.pointers.items():
            place, depth = self.plan.places[name], len(limits)
            self.pointing[step.name], self.width = self.width, self.width + 1
            found = reference(self.width - 1)
            shape, strides = place.natural_shape, place.natural_strides
            apart = strides[-1] if depth > 1 else 0
            shape, strides = (shape[:-1], strides[:-1]) if depth > 1 else (shape, strides)
            fields = {"depth": depth, "apart": apart, "sizes": (*limits, *[1] * (DEPTH - depth)), "found": found}
            for begins, walk in walks(shape, x=strides):
                x = place.reference + begins["x"] * place.dtype.itemsize
                self._add(step, name, beyond_kernel(place.letters), x=x, **fields, **walk)

    def _tally(self, step: Step, name: str) -> bool:
        """Count a value where it lies; False where kernels cannot."""
        place, axis = self.plan.places[name], self.observed[name]
        if place.dtype != np.float32 or not place.contiguous or not place.nbytes or place.flipped:
            return False
        self.tallied[name] = self.width, self.width + 1
        found, totals = map(reference, self.tallied[name])
        self.width += 2
        self._add(step, name, tally_kernel(), x=place.reference, count=math.prod(place.shape), found=found)
        if axis is not None:
            at = place.axes.index(axis)
            outer, channels, inner = math.prod(place.shape[:at]), place.shape[at], math.prod(place.shape[at + 1 :])
            fields = {"outer": outer, "channels": channels, "inner": inner}
            self._add(step, name, means_kernel(), x=place.reference, totals=totals, **fields)
        return True

    def _port(self, name: str, ports: dict[str, Port]) -> Port:
        if name not in ports:
            kind, place = self.plan.graph.types[name], self.plan.places[name]
            batched = is_batched(kind) and ports is not self.read and ports is not self.written
            sample = self.sampled.get(name, 0) if ports is self.kept else 0
            ports[name] = Port(self.width, kind, place, batched, sample)
            self.width += 1
        return ports[name]

    def _add(self, step: Step, name: str, kernel: Kernel, rows: Rows | None = None, /, **fields: object) -> None:
        record = np.recarray(1, kernel.arguments)
        if "flip" in (kernel.arguments.names or ()):
            place = self.plan.places[name]
            record[0]["flip"] = place.sign_bit if place.flipped else 0
        for field, value in fields.items():
            record[0][field] = value
        self.instructions.append(Instruction(kernel, record, name, rows))
        self.steps.append(step)


def _sample_fields(place: Place, every: int) -> dict[str, Any]:
    axes = _merged(zip(place.natural_shape, place.natural_strides, strict=True))
    sizes, strides = np.ones(SAMPLE_RANK, np.int64), np.zeros(SAMPLE_RANK, np.int64)
    sizes[: len(axes)], strides[: len(axes)] = [axis[0] for axis in axes], [axis[1] for axis in axes]
    count = -(-math.prod(place.shape) // every)
    extent = int((sizes - 1) @ strides) + 1 if count else 0
    fields = {"sizes": sizes, "x_stride": strides, "axes": len(axes)}
    return {**fields, "extent": extent, "count": count, "every": every}


def _merged(axes: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sizes and strides, in this order, as few as can be."""
    merged: list[tuple[int, int]] = []
    for size, stride in axes:
        if merged and merged[-1][1] == size * stride:
            merged[-1] = merged[-1][0] * size, stride
        elif size != 1:
            merged.append((size, stride))
    return merged
