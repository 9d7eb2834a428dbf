"""Where real numbers become integers and back (fake_quantize, quantize, dequantize), and integers stand for others."""

from dataclasses import dataclass

from qbench.errors import GraphError
from qbench.ir.dtypes import is_float
from qbench.ir.op import Array, Epilogue, register
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.ops.float.reshape import Reshape
from qbench.ops.qnn.base import Lowered, QnnOp
from qbench.ops.rules import InternalOp
from qbench.quant.arithmetic import Ties, dequantize, quantize


def _known(qparams: QParams | None, what: str) -> QParams:
    if qparams is None:
        raise GraphError(f"{what} has no qparams")
    return qparams


@dataclass(frozen=True, kw_only=True)
class _Border(InternalOp):
    elementwise = True


@register
class FakeQuantize(_Border):
    """Rounds real numbers to those that the output's qparams can express; passes them on while there are none.

    Annotate puts one at every point that realize turns into integers, so that the annotated graph can be run as it
    stands.
    """

    name = "qnn.fake_quantize"
    tensor: str = ""
    """Name of the tensor in the prepared graph, which statistics and encodings go by."""
    channel_axis: int | None = None
    """For a weight: the axis that scales may run along."""
    narrow: bool = False
    """Leave the smallest integer unused."""
    wide: str = ""
    """Why it gets 16 bits by default."""

    def infer(self, data: TensorType) -> TensorType:
        if not is_float(data.dtype):
            raise GraphError(f"fake_quantize takes real numbers, not {data}")
        return data

    def compute(self, data: Array) -> Array:
        q = self.qout[0]
        return data if q is None else dequantize(quantize(data, q, self.narrow), q).astype(data.dtype)


@register
class Quantize(_Border):
    """``saturate(round(data / scale) + zero_point)`` with the output's qparams (ONNX QuantizeLinear)."""

    name = "qnn.quantize"
    ties: Ties = "even"
    """Which of two equally near integers is taken: the even one, as in ONNX, or that away from zero, as in TFLite."""

    def infer(self, data: TensorType) -> TensorType:
        if not is_float(data.dtype):
            raise GraphError(f"quantize takes real numbers, not {data}")
        return data.with_dtype(_known(self.qout[0], "the output of quantize").dtype)

    def compute(self, data: Array) -> Array:
        return quantize(data, _known(self.qout[0], "the output of quantize"), ties=self.ties)


@register
class Dequantize(_Border):
    """``scale * (data - zero_point)`` in float32 with the input's qparams (ONNX DequantizeLinear)."""

    name = "qnn.dequantize"
    epilogue = Epilogue.DEQUANTIZE

    def infer(self, data: TensorType) -> TensorType:
        _known(self.qin[0], "the input of dequantize")
        return data.with_dtype("float32")

    def compute(self, data: Array) -> Array:
        return dequantize(data, _known(self.qin[0], "the input of dequantize"))


@register
class QnnReinterpret(QnnOp):
    """The same integers under the output's qparams: QuantizeLinear and DequantizeLinear with different scales."""

    name = "qnn.reinterpret"

    def lower(self, *types: TensorType) -> Lowered:
        return Lowered(Reshape(newshape=types[0].shape), {})
