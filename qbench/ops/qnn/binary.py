"""Functions of two quantized tensors: a table over all pairs, and PReLU whose slopes are integers too."""

from dataclasses import dataclass

import numpy as np

from qbench.errors import GraphError
from qbench.ir.dtypes import numpy_dtype
from qbench.ir.op import OPS, Array, register
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.ops.integer.requantize import saturate
from qbench.ops.integer.table import IntegerPairTable
from qbench.ops.qnn.base import Lowered, QnnOp, no_arithmetic
from qbench.ops.tflite.pairs import TFLITE_PAIRS, tflite_compared
from qbench.ops.tflite.prelu import tflite_prelu
from qbench.quant.arithmetic import dequantize, quantize
from qbench.quant.semantics import Semantics


@dataclass(frozen=True, kw_only=True)
class _Pairs(QnnOp):
    """A function of two tensors of 8 bits, known for every pair of integers."""

    elementwise = True
    operands = ("lhs", "rhs")
    function: str
    """Name of the float op: subtract, divide, power..."""
    semantics: Semantics = "tvm"

    @property
    def float_form(self) -> str:
        return self.function

    def codes(self, index: int) -> Array:
        """All integers of an operand."""
        q, _ = self.q_in(index), self.one_zero_point(index)
        if q.qmax - q.qmin > 255:
            raise GraphError(f"{self.name} takes integers of 8 bits, not {q.dtype}")
        return np.arange(q.qmin, q.qmax + 1).astype(numpy_dtype(q.dtype))

    def steps(self, index: int) -> Array:
        """The same less their zero point, along the operand's axis of a table."""
        wide = self.codes(index).astype(np.int64) - self.one_zero_point(index)
        return wide[None, :] if index else wide[:, None]


@register
class QnnCompare(_Pairs):
    """Whether one real number is greater than another, less, or equal; as TFLite compares integers."""

    name = "qnn.compare"

    def lower(self, *types: TensorType) -> Lowered:
        if self.semantics != "tflite":
            raise no_arithmetic(self, self.semantics, "comparisons of real numbers")
        sides = [tflite_compared(self.steps(index), self.q_in(index).scales[0]) for index in (0, 1)]
        return Lowered.of(IntegerPairTable(), table=np.asarray(OPS[self.function]().compute(*sides)))


@register
class QnnBinary(_Pairs):
    """Dequantize both, apply a float op in float32, quantize: 8-bit tensors of any qparams.

    A pair for which the function has no value, as 0 / 0, gives the zero point. TFLite has integer arithmetic of its own
    for some functions, see :data:`~qbench.ops.tflite.pairs.TFLITE_PAIRS`.
    """

    name = "qnn.binary"

    def lower(self, *types: TensorType) -> Lowered:
        target = self.q_out()
        if self.function not in OPS:
            raise GraphError(f"there is no op {self.function} to make a table of")
        if self.semantics == "tflite" and self.function in TFLITE_PAIRS:
            given = self.q_in(0), self.q_in(1)
            steps = TFLITE_PAIRS[self.function](self.steps(0), self.steps(1), given, target)
            return Lowered.of(IntegerPairTable(), table=saturate(steps + target.zero_points[0], target.dtype))
        reals = [self._reals(index) for index in (0, 1)]
        function = OPS[self.function]()
        (values,) = function.compute_all((reals[0][:, None], reals[1][None, :]))
        return Lowered.of(IntegerPairTable(), table=quantize(np.nan_to_num(values, nan=0.0), target))

    def _reals(self, index: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        q, zero_point = self.q_in(index), self.one_zero_point(index)
        return dequantize(self.codes(index), QParams(q.scales[0], zero_point, q.dtype))


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
