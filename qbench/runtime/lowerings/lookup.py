"""Functions of one narrow integer, by table: look-ups, and of 8-bit values requantizes, clamps, and multiples."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from qbench.ir.dtypes import integer_range, numpy_dtype
from qbench.ir.graph import Graph, Node
from qbench.ir.op import OPS, Array, Epilogue, bind, is_op
from qbench.kernels.isa import ISAS
from qbench.kernels.levels import Level
from qbench.kernels.lines import Lines, lines_kernel, lines_through
from qbench.kernels.table import table_kernel
from qbench.kernels.walk import strided
from qbench.ops.float.activation import Clip, Relu
from qbench.ops.integer.products import IntegerConv2d, IntegerMultiply
from qbench.ops.integer.requantize import IntegerAdd, IntegerAddFloat32, Requantize
from qbench.ops.integer.table import IntegerTable
from qbench.ops.onnx.add import OnnxAdd
from qbench.ops.tflite.add import TfliteAdd
from qbench.ops.tflite.prelu import TflitePrelu
from qbench.runtime import interpreter
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import Layout, shape_of
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.operands import as_stored, gapless, plain_layout, spread
from qbench.runtime.lowerings.rescaling import ELEMENTS
from qbench.runtime.step import Instruction

_WIDE = 16
"""Channels from which on vectors of lines are faster than look-ups one by one."""

_ROW = 512
"""Codes in a row of lines: those of several pixels, where channels are few."""

_MANY = 64
"""Channels for which a product takes less time than a look-up."""


_OF_ANY_WIDTH = IntegerTable, Clip, Relu
"""Those of 16 bits too, by tables of 65,536 entries; what else is done to 16 bits has kernels that compute it."""

_SUMS = IntegerAdd, IntegerAddFloat32, OnnxAdd, TfliteAdd


@lowers(IntegerTable, Clip, Relu, Requantize, IntegerMultiply, TflitePrelu)
class LookupLowering(Lowering):
    """The whole step as one table, or one for each index of an axis."""

    absorbs = frozenset({Epilogue.BIAS, Epilogue.REQUANTIZE, Epilogue.CLAMP})

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        read = step.inputs(graph)
        if len(read) != 1:
            raise Refused("its parameters are no constants")
        self.data = read[0]
        self.shape, dtype = shape_of(graph, self.data), graph.types[self.data].dtype
        if dtype not in ELEMENTS or (dtype not in ("int8", "uint8") and not is_op(step.head, *_OF_ANY_WIDTH)):
            raise Refused(f"{step.head.op} of {dtype} is no table")
        if graph.types[step.outputs[0]].dtype in ("int4", "uint4"):
            raise Refused("its result has 4 bits")
        if shape_of(graph, step.outputs[0]) != self.shape or not self._is_unary():
            raise Refused("it is a function of two values")
        self.axis = self._axis()
        if len(self.shape) < 2 and self.step.follower(Epilogue.BIAS) is not None:
            raise Refused("its bias runs along its only axis")
        if len(self.shape) < 2 and self.axis is not None and is_op(step.head, IntegerTable) and len(step.nodes) > 1:
            raise Refused("its tables run along its only axis")

    def _is_unary(self) -> bool:
        """Whether a product or a sum is one with a single number, rescaled by one, or has a bias; other steps have one
        operand."""
        if not is_op(self.step.head, IntegerMultiply, *_SUMS) or self.step.follower(Epilogue.BIAS) is not None:
            return True
        return all(array.size == 1 for node in self.step.nodes for array in self._parameters(node))

    def _parameters(self, node: Node) -> list[Array]:
        return [self.graph.constants[name].array for name in node.inputs if name in self.graph.constants]

    def _axis(self) -> int | None:
        """The axis that parameters run along."""
        op, rank, axes = bind(self.step.head), len(self.shape), set[int]()
        nodes = self.step.nodes
        if isinstance(op, IntegerTable | IntegerConv2d):
            axis = 1 if isinstance(op, IntegerConv2d) else op.axis
            axes.update(() if axis is None else (axis % rank,))
            nodes = nodes[1:]
        for node in nodes:
            along = bind(node).channel_axis_of("data", rank) if OPS[node.op].epilogue is Epilogue.BIAS else None
            for shape in (array.shape for array in self._parameters(node)):
                first = rank - len(shape) if along is None else along
                axes.update(axis + first for axis, size in enumerate(shape) if size > 1)
        if len(axes) > 1:
            raise Refused("its parameters run along several axes")
        return axes.pop() if axes else None

    @property
    def table(self) -> Array:
        """[channels, entries], as stored: what the nodes make of every integer there is."""
        return self.once("table", self._table)

    def _table(self) -> Array:
        channels = 1 if self.axis is None else self.shape[self.axis]
        if is_op(self.step.head, IntegerTable) and len(self.step.nodes) == 1:
            table = self.graph.constants[self.step.head.inputs[1]].array
            return as_stored(table.reshape(channels, -1))
        dtype = self.graph.types[self.data].dtype
        low, high = integer_range(dtype)
        every = np.arange(low, high + 1).astype(numpy_dtype(dtype))
        shape = [channels if axis == self.axis else 1 for axis in range(len(self.shape))]
        along = next((axis for axis in range(len(shape)) if axis != self.axis), None)  # no parameter runs there
        if along is None:
            along, shape = 0, [1, *shape]
        shape[along] = len(every)
        ones = [-1 if axis == along else 1 for axis in range(len(shape))]
        values: Array = np.broadcast_to(every.reshape(ones), shape)
        for node in self.step.nodes:
            known = self.graph.constants
            operands = tuple(known[name].array if name in known else values for name in node.inputs)
            (values,) = interpreter.step(self.graph, node, operands)
        table = np.moveaxis(values, along, -1)
        return as_stored(table.reshape(channels, len(every)))

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        layout = plain_layout(home[self.data])
        return Layouts({self.data: layout}, {self.step.outputs[0]: layout})

    def instructions(self, site: Site) -> Sequence[Instruction]:
        return self._by_channel(site) if self.axis is not None else self._everywhere(site)

    def _everywhere(self, site: Site) -> Sequence[Instruction]:
        x, out = site.places[self.data], site.places[self.step.outputs[0]]
        copies: Sequence[Instruction] = ()
        walk = (
            strided(out.shape, x=spread(x.natural_shape, x.natural_strides, out), y=out.strides)
            if len(out.shape) <= 4
            else {"x3": 0}
        )
        if walk["x3"] != 1 or walk["n0"] * walk["n1"] != 1:
            source, target = gapless(site, self.data), gapless(site, self.step.outputs[0], output=True)
            x, out, copies = source.place, target.place, target.copies
            walk = {"n2": 1, "n3": math.prod(x.shape), "x2": 0, "y2": 0}
            before = source.copies
        else:
            before = ()
        made = self._look_up(site, x, out, walk["n2"], 1, walk["n3"], walk["x2"], walk["y2"])
        return [*before, made, *copies]

    def _by_channel(self, site: Site) -> Sequence[Instruction]:
        source = gapless(site, self.data)
        target = gapless(site, self.step.outputs[0], source.place.axes, output=True)
        along, sizes = source.place.axes.index(self.axis or 0), source.place.shape
        channels, inner = sizes[along], math.prod(sizes[along + 1 :])
        pitch = channels * inner
        if inner == 1 and channels >= _WIDE and site.level in ISAS and self.lines is not None:
            made = self._along_lines(site, source.place, target.place, math.prod(sizes[:along]), channels, self.lines)
            return [*source.copies, made, *target.copies]
        made = self._look_up(site, source.place, target.place, math.prod(sizes[:along]), channels, inner, pitch, pitch)
        return [*source.copies, made, *target.copies]

    @property
    def lines(self) -> Lines | None:
        """What gives the same as the table, if lines do."""
        table = self.table
        is_narrow = table.dtype == np.uint8 and table.shape[1] == 256
        return self.once("lines", lambda: lines_through(table)) if is_narrow else None

    def _along_lines(self, site: Site, x: Any, out: Any, rows: int, channels: int, lines: Lines) -> Instruction:
        times = next(many for many in range(max(1, _ROW // channels), 0, -1) if rows % many == 0)
        slopes, starts = lines.as_read(times)
        low, high, kink = (int(np.float32(code).view(np.int32)) for code in (lines.low, lines.high, lines.kink))
        return instruction(
            lines_kernel(site.level, len(slopes)), self.step.outputs[0], x=x.reference, out=out.reference,
            slopes=site.constant(slopes), starts=site.constant(starts), apart=slopes[0].nbytes, rows=rows // times,
            channels=channels * times, x_pitch=channels * times, out_pitch=channels * times, low=low, high=high,
            kink=kink,
        )  # fmt: skip

    def _look_up(
        self, site: Site, x: Any, out: Any, outer: int, channels: int, inner: int, x_pitch: int, out_pitch: int
    ) -> Instruction:
        return instruction(
            table_kernel(site.level, x.letters, out.dtype.itemsize), self.step.outputs[0], x=x.reference,
            out=out.reference, table=site.constant(self.table), outer=outer, channels=channels, inner=inner,
            x_pitch=x_pitch, out_pitch=out_pitch,
        )  # fmt: skip


@lowers(*_SUMS)
class SumWithNumberLowering(LookupLowering):
    """A sum of a tensor and a single number."""

    absorbs = frozenset({Epilogue.CLAMP})


@lowers(IntegerConv2d, rank=-1)
class SingleTapLowering(LookupLowering):
    """A convolution of each channel by one number, requantized: a batch norm that was not folded, as TFLite has it."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        data, weight = step.head.inputs[:2]
        op, (channels, *window) = bind(step.head), shape_of(graph, weight)
        assert isinstance(op, IntegerConv2d)
        if window != [1, 1, 1] or op.groups != channels or shape_of(graph, data)[1] != channels:
            raise Refused("its windows have more than one tap, or it joins channels")
        if channels >= _MANY:
            raise Refused("its channels fill a vector, for which depthwise kernels are faster")
        if any(stride != 1 for stride in op.strides) or any(op.padding):
            raise Refused("it takes not every pixel, or others")
        if graph.types[step.outputs[0]].dtype not in ("int8", "uint8"):
            raise Refused("its result is not of 8 bits")
        super().__init__(step, graph, level)
