"""Quantized ops that change scales: requantize, add, subtract, in the rounding mode that their attribute names."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.errors import GraphError
from qbench.ir.dtypes import DType, numpy_dtype
from qbench.ir.op import Epilogue, Op, register
from qbench.ir.qparams import QParams
from qbench.ir.types import Dim, TensorType
from qbench.ops.integer.requantize import (
    IntegerAdd,
    IntegerAddFloat32,
    IntegerRequantize,
    IntegerRequantizeFloat32,
    IntegerRequantizeFloat64,
    IntegerRoundingShift,
)
from qbench.ops.integer.table import IntegerTable
from qbench.ops.onnx.add import onnx_add
from qbench.ops.qnn.base import Lowered, QnnOp
from qbench.ops.rules import fixed
from qbench.ops.tflite.add import tflite_add
from qbench.quant.arithmetic import dequantize, quantize
from qbench.quant.fixed_point import power_of_two_shift, quantized_multiplier, sixteen_bits
from qbench.quant.rounding import Rounding
from qbench.quant.semantics import Semantics


def ratio(source: QParams, target: QParams, rank: int) -> NDArray[np.float64]:
    """``source.scale / target.scale``, shaped to broadcast against a tensor of that rank."""
    axis = source.axis if source.axis is not None else target.axis
    if target.axis not in (None, axis):
        raise GraphError(f"cannot rescale from scales along axis {source.axis} to scales along axis {target.axis}")
    values = np.asarray(source.scales, np.float64) / np.asarray(target.scales, np.float64)
    shape = [1] * rank
    if axis is not None:
        shape[axis] = values.size
    return values.reshape(shape)


def real_table(source: QParams, target: QParams) -> NDArray[Any]:
    """What each integer of one set of qparams becomes under another: dequantized and quantized in float32."""
    codes = np.arange(source.qmin, source.qmax + 1).astype(numpy_dtype(source.dtype))
    return quantize(dequantize(codes, source), target)


def _one(values: tuple[int, ...], what: str) -> int:
    if len(set(values)) != 1:
        raise GraphError(f"{what} must have one zero point, not {len(set(values))} different ones")
    return values[0]


@register
class QnnRequantize(QnnOp):
    """From one set of qparams to another, usually from an accumulator to a narrow type.

    ``tflite_double`` is defined for 32 bits; accumulators of 64 bits are multiplied by 16 bits of the mantissa and
    rounded once, as in TFLite's int16 kernels.
    """

    name = "qnn.requantize"
    epilogue = Epilogue.REQUANTIZE
    absorbs = (Epilogue.CLAMP,)
    elementwise = True
    rounding: Rounding
    divisor: Dim = 1
    """What the integers are divided by besides: their number, where they are sums and the result is a mean. Where that
    is open, the rounding is ``fp32_rne``."""
    zero_point_first: bool = False
    """For ``fp32_rne``: the zero point is added in float32, before rounding, as after onnxruntime's products."""
    semantics: Semantics = "tvm"
    """``onnx`` brings 8-bit integers to others through real numbers, in float32."""

    def lower(self, *types: TensorType) -> Lowered:
        source, target = self.q_in(0), self.q_out()
        if self.semantics == "onnx" and source.dtype in ("int8", "uint8") and source.axis is None:
            return Lowered.of(IntegerTable(), table=real_table(source, target))
        real = ratio(source, target, types[0].rank)
        before = _one(source.zero_points, "the input of requantize")
        after = _one(target.zero_points, "the output of requantize")
        if self.rounding == "fp32_rne":
            to_float = IntegerRequantizeFloat32(
                dtype=target.dtype,
                zero_point=after,
                data_zero_point=before,
                zero_point_first=self.zero_point_first,
            )
            if isinstance(self.divisor, str):
                open_mean = dataclasses.replace(to_float, step=target.scales[0], divisor=self.divisor)
                return Lowered.of(open_mean, multiplier=np.asarray(source.scales, np.float32).reshape(real.shape))
            steps = np.asarray(target.scales, np.float32) * np.float32(self.divisor)
            return Lowered.of(to_float, multiplier=(np.asarray(source.scales, np.float32) / steps).reshape(real.shape))
        real = real / fixed(self, "the divisor", self.divisor)
        if self.rounding in ("pow2_half_up", "pow2_half_even"):
            to_shift = IntegerRoundingShift(
                dtype=target.dtype, zero_point=after, data_zero_point=before, rounding=self.rounding
            )
            return Lowered.of(to_shift, shift=power_of_two_shift(real))
        if self.rounding == "fp64_away":
            to_double = IntegerRequantizeFloat64(dtype=target.dtype, zero_point=after, data_zero_point=before)
            significand, exponent = np.frexp(real)
            return Lowered.of(to_double, mantissa=np.ldexp(significand, 53).astype(np.int64), shift=exponent)
        mantissa, shift = quantized_multiplier(real)
        wide = source.dtype == "int64" and self.rounding == "tflite_double"
        if wide:
            mantissa = sixteen_bits(mantissa)
        to_fixed = IntegerRequantize(
            dtype=target.dtype,
            zero_point=after,
            data_zero_point=before,
            rounding="tflite_single" if wide else self.rounding,
        )
        return Lowered.of(to_fixed, mantissa=mantissa, shift=shift)


@dataclass(frozen=True, kw_only=True)
class _Sum(QnnOp):
    operands = ("lhs", "rhs")
    absorbs = (Epilogue.CLAMP,)
    elementwise = True
    rounding: Rounding
    semantics: Semantics = "tvm"
    """``tflite`` brings both to a finer common scale before it adds, and has a rounding of its own; ``onnx`` adds 8-bit
    integers of one type in float32, multiplying and adding at once."""

    def _lower(self, sign: int, types: tuple[TensorType, ...]) -> Lowered:
        target = self.q_out()
        if self.semantics == "tflite":
            return Lowered(tflite_add(self.q_in(0), self.q_in(1), target, sign), {})
        alike = {self.q_in(0).dtype, self.q_in(1).dtype, target.dtype}
        if self.semantics == "onnx" and sign > 0 and alike in ({"int8"}, {"uint8"}):
            return Lowered(onnx_add(self.q_in(0), self.q_in(1), target, types[0].shape, types[1].shape), {})
        zero_points = (self.one_zero_point(0), self.one_zero_point(1))
        after = _one(target.zero_points, f"the output of {self.name}")
        scales = (self.q_in(0).scales[0], self.q_in(1).scales[0])
        return Lowered(self._op(target.dtype, after, zero_points, scales, target.scales[0], sign), {})

    def _op(
        self, dtype: DType, after: int, zero_points: tuple[int, int], scales: tuple[float, float], out: float, sign: int
    ) -> Op:
        if self.rounding == "fp32_rne":
            lhs, rhs = (float(np.float32(s) / np.float32(out)) for s in scales)
            return IntegerAddFloat32(
                dtype=dtype, zero_point=after, zero_points=zero_points, multipliers=(lhs, sign * rhs)
            )
        real = np.asarray(scales, np.float64) / out
        per_operand = self.rounding in ("tvm_upward", "tvm_tonearest")
        if self.rounding in ("pow2_half_up", "pow2_half_even"):
            power_of_two_shift(real)  # only to refuse the others
        mantissas, shifts = quantized_multiplier(real)
        if not per_operand:  # one shift for both, so that the sum is rounded once
            shifts = np.full(2, shifts.max())
            mantissas = np.rint(np.ldexp(real, 31 - shifts)).astype(np.int64)
        return IntegerAdd(
            dtype=dtype,
            zero_point=after,
            zero_points=zero_points,
            mantissa=(int(mantissas[0]), sign * int(mantissas[1])),
            shift=(int(shifts[0]), int(shifts[1])),
            rounding=self.rounding,
            per_operand=per_operand,
        )


@register
class QnnAdd(_Sum):
    """Sum of two quantized tensors at the scale of the output."""

    name = "qnn.add"
    form_of = "add"

    def lower(self, *types: TensorType) -> Lowered:
        return self._lower(1, types)


@register
class QnnSubtract(_Sum):
    """Difference of two quantized tensors at the scale of the output."""

    name = "qnn.subtract"
    form_of = "subtract"

    def lower(self, *types: TensorType) -> Lowered:
        return self._lower(-1, types)
