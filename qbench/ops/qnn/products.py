"""Quantized sums of products: the accumulator's scale is the product of the scales of its two factors."""

from dataclasses import dataclass

from qbench.errors import GraphError
from qbench.ir.op import Epilogue, register
from qbench.ir.types import TensorType
from qbench.ops.integer.products import (
    IntegerBatchMatmul,
    IntegerConv2d,
    IntegerConv2dTranspose,
    IntegerDense,
    IntegerMultiply,
)
from qbench.ops.numeric.exact import Accumulator
from qbench.ops.products import Convolution, DenseProduct, MatrixProduct, TransposedConvolution
from qbench.ops.qnn.base import Lowered, QnnOp


@dataclass(frozen=True, kw_only=True)
class _Products(QnnOp):
    accumulator: Accumulator = "int32"

    def weight_zero_point(self, axis: int) -> int | tuple[int, ...]:
        """The weight's zero points, one int where all are equal."""
        q = self.q_in(1)
        if q.axis not in (None, axis):
            raise GraphError(f"weights of {self.name} may have scales along axis {axis}, not {q.axis}")
        return q.zero_points[0] if len(set(q.zero_points)) == 1 else q.zero_points

    def _as_integers(self, kind: type[IntegerConv2d | IntegerConv2dTranspose | IntegerDense], axis: int) -> Lowered:
        zero_points = {"data_zero_point": self.one_zero_point(0), "weight_zero_point": self.weight_zero_point(axis)}
        return Lowered(self.as_op(kind, **zero_points), {})


@register
class QnnConv2d(Convolution, _Products):
    """Quantized 2-D convolution into an accumulator; weights per tensor or per output channel."""

    name = "qnn.conv2d"
    form_of = "nn.conv2d"

    def lower(self, *types: TensorType) -> Lowered:
        return self._as_integers(IntegerConv2d, 0)


@register
class QnnConv2dTranspose(TransposedConvolution, _Products):
    """Quantized transpose of 2-D convolution into an accumulator; weights per tensor or per output channel.

    With groups, scales per channel run along axis 1 of the weight: the outputs of one group.
    """

    name = "qnn.conv2d_transpose"
    form_of = "nn.conv2d_transpose"

    def lower(self, *types: TensorType) -> Lowered:
        return self._as_integers(IntegerConv2dTranspose, 1)


@register
class QnnDense(DenseProduct, _Products):
    """Quantized dense layer into an accumulator; weights per tensor or per unit."""

    name = "qnn.dense"
    form_of = "nn.dense"

    def lower(self, *types: TensorType) -> Lowered:
        return self._as_integers(IntegerDense, 0)


@register
class QnnBatchMatmul(MatrixProduct, _Products):
    """Quantized matrix products of two activations, or of an activation and a constant."""

    name = "qnn.batch_matmul"
    form_of = "nn.batch_matmul"

    def lower(self, *types: TensorType) -> Lowered:
        zero_points = {"lhs_zero_point": self.one_zero_point(0), "rhs_zero_point": self.one_zero_point(1)}
        return Lowered(self.as_op(IntegerBatchMatmul, **zero_points), {})


@register
class QnnMultiply(_Products):
    """Quantized elementwise product into an accumulator; a constant rhs may have a scale per channel."""

    name = "qnn.multiply"
    form_of = "multiply"
    operands = ("lhs", "rhs")
    absorbs = (Epilogue.BIAS, Epilogue.REQUANTIZE, Epilogue.CLAMP)
    elementwise = True

    def lower(self, *types: TensorType) -> Lowered:
        q = self.q_in(1)
        op = IntegerMultiply(
            lhs_zero_point=self.one_zero_point(0),
            rhs_zero_point=self.weight_zero_point(q.axis or 0),
            rhs_axis=q.axis or 0,
            accumulator=self.accumulator,
        )
        return Lowered(op, {})
