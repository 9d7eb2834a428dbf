"""Quantized division by the Euclidean norm."""

from qbench.ir.op import register
from qbench.ir.types import TensorType
from qbench.ops.qnn.base import Lowered, QnnOp, no_arithmetic
from qbench.ops.tflite.normalize import TfliteL2Normalize
from qbench.quant.semantics import Semantics


@register
class QnnL2Normalize(QnnOp):
    """Each vector along an axis divided by its Euclidean norm; only TFLite has one."""

    name = "qnn.l2_normalize"
    operands = ("data",)
    axis: int = -1
    semantics: Semantics = "tvm"

    def lower(self, *types: TensorType) -> Lowered:
        if self.semantics != "tflite":
            raise no_arithmetic(self, self.semantics, "qnn.dequantize, float ops and qnn.quantize")
        op = TfliteL2Normalize(dtype=self.q_out().dtype, axis=self.axis, data_zero_point=self.one_zero_point(0))
        return Lowered(op, {})
