"""Integers read with other scales than they were made with."""

from qbench.ir.op import register
from qbench.ir.types import TensorType
from qbench.ops.float.reshape import Reshape
from qbench.ops.qnn.base import Lowered, QnnOp


@register
class QnnReinterpret(QnnOp):
    """The same integers under the output's qparams: QuantizeLinear and DequantizeLinear with different scales."""

    name = "qnn.reinterpret"
    operands = ("data",)

    def lower(self, *types: TensorType) -> Lowered:
        return Lowered(Reshape(newshape=types[0].shape), {})
