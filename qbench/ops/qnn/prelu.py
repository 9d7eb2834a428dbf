"""Quantized PReLU whose slopes are integers too."""

from qbench.ir.op import register
from qbench.ir.types import TensorType
from qbench.ops.qnn.base import Lowered, QnnOp, no_arithmetic
from qbench.ops.tflite.prelu import tflite_prelu
from qbench.quant.semantics import Semantics


@register
class QnnPrelu(QnnOp):
    """The input where it is at least 0, else times a slope; slopes broadcast against the input."""

    name = "qnn.prelu"
    form_of = "nn.prelu"
    elementwise = True
    operands = ("data", "slope")
    semantics: Semantics = "tvm"

    def lower(self, *types: TensorType) -> Lowered:
        if self.semantics != "tflite":
            raise no_arithmetic(self, self.semantics, "qnn.unary with real slopes")
        for index in (0, 1):
            self.one_zero_point(index)
        return Lowered(tflite_prelu(self.q_in(0), self.q_in(1), self.q_out()), {})
