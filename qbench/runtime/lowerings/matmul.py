"""Products of two integer activations, as attention has them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qbench.ir.dtypes import DType
from qbench.ir.graph import Graph
from qbench.ir.op import Epilogue, bind
from qbench.kernels.levels import Level
from qbench.kernels.matmul import matmul_kernel
from qbench.ops.integer.products import IntegerBatchMatmul
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import Layout, row_major, shape_of
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.operands import as_stored, gapless
from qbench.runtime.lowerings.rescaling import ELEMENTS, flip, reach, rescale_fields, rescaling
from qbench.runtime.step import Instruction
from qbench.runtime.step import row_major as dense_strides


class Side(NamedTuple):
    """One operand: its elements without gaps, and their type in NumPy's letters."""

    reference: int
    letters: str
    shape: tuple[int, ...]


@lowers(IntegerBatchMatmul, rank=1)
class MatmulLowering(Lowering):
    """Exact sums, with the bias and the requantize behind them."""

    absorbs = frozenset({Epilogue.BIAS, Epilogue.REQUANTIZE, Epilogue.CLAMP})

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        op = bind(step.head)
        assert isinstance(op, IntegerBatchMatmul)
        self.op, self.output, self.shape = op, step.outputs[0], shape_of(graph, step.outputs[0])
        self.dtypes: list[DType] = [graph.types[name].dtype for name in step.head.inputs]
        if any(dtype not in ELEMENTS for dtype in self.dtypes):
            raise Refused(f"{self.dtypes[0]} times {self.dtypes[1]} is computed")
        if any(len(shape_of(graph, name)) < 2 for name in step.head.inputs):
            raise Refused("it multiplies a vector")
        self.bias = self._bias()
        node = step.follower(Epilogue.REQUANTIZE)
        self.found = None if node is None else rescaling(graph, step, node, 1, 0)
        lhs = shape_of(graph, step.head.inputs[0])
        self.depth = lhs[-2] if op.transpose_lhs else lhs[-1]
        largest = math.prod(
            reach(dtype, zero) for dtype, zero in zip(self.dtypes, (op.lhs_zero_point, op.rhs_zero_point), strict=True)
        )
        self.run = (2**31 - 1) // largest
        start = self.bias - (self.found.before if self.found else 0)
        self.bound = self.depth * largest + int(np.abs(start).max(initial=0))
        self.mode = self._mode(self.bound)

    def _bias(self) -> NDArray[np.int64]:
        bias, node = np.zeros(self.shape[-1], np.int64), self.step.follower(Epilogue.BIAS)
        if node is not None:
            if bind(node).channel_axis_of("output", len(self.shape)) != len(self.shape) - 1:
                raise Refused("its bias does not run along the columns")
            bias = self.graph.constants[node.inputs[1]].array.astype(np.int64)
        return bias

    def _mode(self, bound: int) -> tuple[Any, bool]:
        found = self.found
        if found is None:
            dtype = self.graph.types[self.step.integers].dtype
            if dtype not in ("int32", "int64") or (dtype == "int32" and bound >= 2**31):
                raise Refused(f"sums that could reach {bound} are kept as {dtype}")
            return None, False
        return found.mode(bound, f"its sums could reach {bound}, too much for tflite_double")

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        inputs = {name: row_major(self.graph.types[name].rank) for name in self.step.inputs(self.graph)}
        return Layouts(inputs, {self.output: row_major(len(self.shape))})

    def side(self, site: Site, name: str, copies: list[Instruction]) -> Side:
        """An operand; what brings its elements there is added to `copies`."""
        if name in site.graph.constants:
            array = as_stored(site.graph.constants[name].array)
            return Side(site.constant(array), array.dtype.str[1:], array.shape)
        source = gapless(site, name)
        copies += source.copies
        return Side(source.place.reference, source.place.letters, source.place.natural_shape)

    def steps(self, a: Side, b: Side) -> tuple[tuple[int, int], tuple[int, int]]:
        """Elements from row to row and along the depth on the left; along the depth and the columns on the right."""
        (a_row, a_step), (b_step, b_column) = (dense_strides(side.shape)[-2:] for side in (a, b))
        left = (a_step, a_row) if self.op.transpose_lhs else (a_row, a_step)
        return left, (b_column, b_step) if self.op.transpose_rhs else (b_step, b_column)

    def starts(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Where each matrix of the batch begins in an operand, or in the result."""
        return _starts(shape[:-2], dense_strides(shape)[:-2], self.shape[:-2])

    def instructions(self, site: Site) -> Sequence[Instruction]:
        op, found = self.op, self.found
        copies: list[Instruction] = []
        a, b = (self.side(site, name, copies) for name in self.step.head.inputs)
        target = gapless(site, self.output, output=True)
        (a_row, a_step), (b_step, b_column) = self.steps(a, b)
        starts = [site.constant(self.starts(shape)) for shape in (a.shape, b.shape, self.shape)]
        letters: Any = a.letters, b.letters, target.place.letters
        made = instruction(
            matmul_kernel(*letters, *self.mode), self.output, a=a.reference, b=b.reference, y=target.place.reference,
            bias=site.constant(self.bias - found.before if found else self.bias),
            a_starts=starts[0], b_starts=starts[1], y_starts=starts[2], batch=math.prod(self.shape[:-2]),
            rows=self.shape[-2], columns=self.shape[-1], depth=self.depth, a_row=a_row, a_step=a_step, b_step=b_step,
            b_column=b_column, y_row=self.shape[-1], a_extent=math.prod(a.shape), b_extent=math.prod(b.shape),
            zero_a=op.lhs_zero_point + flip(self.dtypes[0]), zero_b=op.rhs_zero_point + flip(self.dtypes[1]),
            run=self.run, **rescale_fields(site, found, 1, 1),
        )  # fmt: skip
        return [*copies, made, *target.copies]


def _starts(shape: Sequence[int], steps: Sequence[int], batch: Sequence[int]) -> NDArray[np.int64]:
    """Where each matrix of a batch begins in an operand that broadcasts to it."""
    offsets = np.zeros((1,) * len(shape), np.int64)
    for axis, (size, step) in enumerate(zip(shape, steps, strict=True)):
        along = [size if i == axis else 1 for i in range(len(shape))]
        offsets = offsets + (np.arange(size) * step).reshape(along)
    return np.ascontiguousarray(np.broadcast_to(offsets, batch)).reshape(-1)
