"""Quantize, dequantize and requantize in NumPy: the meaning that kernels and graphs are held to."""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qbench.errors import DataError, QParamsError
from qbench.ir.dtypes import numpy_dtype
from qbench.ir.qparams import QParams
from qbench.quant.fixed_point import power_of_two_shift, quantized_multiplier
from qbench.quant.rescaling import rescale, rescale_float32, rescale_float64, rounding_shift
from qbench.quant.rounding import POWER_OF_TWO, Rounding

Integers = NDArray[np.int64]
Ties = Literal["even", "away"]


def round_half_away(x: NDArray[Any]) -> NDArray[Any]:
    """Nearest integers in the float type of `x`, ties away from zero: C's ``round``."""
    whole = np.trunc(x)
    return whole + np.where(np.abs(x - whole) >= 0.5, np.copysign(1, x), 0).astype(x.dtype)


def quantize(x: ArrayLike, q: QParams, narrow: bool = False, ties: Ties = "even") -> NDArray[Any]:
    """Real numbers to integers: ``saturate(round(x / scale) + zero_point)``, the division in float32.

    Parameters
    ----------
    x
        Real numbers, any shape; infinities saturate.
    q
        Per tensor, or per index of ``q.axis``.
    narrow
        Leave the smallest integer unused, as int8 weights in [-127, 127] do.
    ties
        Which of two equally near integers is taken: the even one, or that away from zero (TFLite).

    Returns
    -------
    Array of the shape of `x` and ``numpy_dtype(q.dtype)``; with ties to even bit for bit what ONNX
    QuantizeLinear gives for float32.

    Raises
    ------
    DataError
        `x` holds NaN.
    """
    real = np.asarray(x)
    with np.errstate(over="ignore"):  # a quotient beyond float32 is an infinity, which saturates
        quotient = real.astype(np.float32) / q.scale_array(real.shape)
    with np.errstate(invalid="ignore"):  # infinity less infinity
        steps = np.rint(quotient) if ties == "even" else round_half_away(quotient)
    if np.isnan(steps).any():
        raise DataError("NaN cannot be quantized")
    shifted = steps.astype(np.float64) + q.zero_point_array(real.shape)  # exact wherever it does not saturate
    return np.clip(shifted, q.qmin + narrow, q.qmax).astype(numpy_dtype(q.dtype))


def dequantize(x: NDArray[Any], q: QParams) -> NDArray[np.float32]:
    """Integers to real numbers: ``scale * (x - zero_point)`` in float32, as ONNX DequantizeLinear does."""
    centred = np.asarray(x).astype(np.int64) - q.zero_point_array(np.shape(x))
    with np.errstate(over="ignore"):  # half a step beyond float32's largest number is infinity
        return centred.astype(np.float32) * q.scale_array(np.shape(x))


def reals(x: NDArray[Any], q: QParams | None) -> NDArray[Any]:
    """What an array stands for: itself where it has no qparams."""
    return x if q is None else dequantize(x, q)


def saturate(values: Integers, q: QParams) -> NDArray[Any]:
    """Integers around zero to integers of the type: add the zero point, clip, narrow."""
    shifted = values + q.zero_point_array(np.shape(values))
    return np.clip(shifted, q.qmin, q.qmax).astype(numpy_dtype(q.dtype))


def requantize(
    acc: NDArray[Any],
    in_scale: ArrayLike,
    out: QParams,
    rounding: Rounding,
    axis: int | None = None,
    in_zero_point: ArrayLike = 0,
) -> NDArray[Any]:
    """Integers at one scale to integers at another: the reference for every rounding mode.

    Parameters
    ----------
    acc
        Integers, any shape, below 2^62 in magnitude.
    in_scale
        Scale of `acc` as float64 (for an accumulator the exact product of two float32 scales): one number, or one per
        index of `axis`.
    out
        qparams of the result.
    rounding
        How the exact product is rounded; see `Rounding`.
    axis
        Axis that `in_scale` and `in_zero_point` run along, where they are not single numbers.
    in_zero_point
        The integer that stands for 0.0 in `acc`.

    Returns
    -------
    Array of the shape of `acc` and ``numpy_dtype(out.dtype)``.

    Raises
    ------
    QParamsError
        The ratio of the scales is not positive and finite, or no power of two where the mode only shifts.
    """
    rank = np.ndim(acc)
    centred = np.asarray(acc).astype(np.int64) - _along(np.asarray(in_zero_point, np.int64), axis, rank)
    scale = _along(np.asarray(in_scale, np.float64), axis, rank)
    return saturate(_rescaled(centred, scale, out, rounding), out)


def add(x: NDArray[Any], y: NDArray[Any], lhs: QParams, rhs: QParams, out: QParams, rounding: Rounding) -> NDArray[Any]:
    """Sum of two quantized tensors as QNN defines it: both are brought to the output's scale, then added."""
    return saturate(_at(x, lhs, out, rounding) + _at(y, rhs, out, rounding), out)


def subtract(
    x: NDArray[Any], y: NDArray[Any], lhs: QParams, rhs: QParams, out: QParams, rounding: Rounding
) -> NDArray[Any]:
    """Difference of two quantized tensors as QNN defines it; see `add`."""
    return saturate(_at(x, lhs, out, rounding) - _at(y, rhs, out, rounding), out)


def _at(x: NDArray[Any], q: QParams, out: QParams, rounding: Rounding) -> Integers:
    centred = np.asarray(x).astype(np.int64) - q.zero_point_array(np.shape(x))
    return _rescaled(centred, q.scale_array(centred.shape).astype(np.float64), out, rounding)


def _rescaled(centred: Integers, scale: NDArray[np.float64], out: QParams, rounding: Rounding) -> Integers:
    out_scale = out.scale_array(centred.shape)
    if rounding == "fp32_rne":
        return rescale_float32(centred, scale.astype(np.float32) / out_scale)
    ratio = scale / out_scale.astype(np.float64)
    if rounding == "fp64_away":
        return rescale_float64(centred, ratio)
    if rounding in POWER_OF_TWO:
        return rounding_shift(centred, power_of_two_shift(ratio), rounding)
    return rescale(centred, *quantized_multiplier(ratio), rounding)


def _along(values: NDArray[Any], axis: int | None, rank: int) -> NDArray[Any]:
    if values.ndim == 0:
        return values
    if axis is None or not 0 <= axis < rank or values.ndim > 1:
        raise QParamsError(f"{values.size} scales or zero points need an axis of the tensor (rank {rank}), not {axis}")
    return values.reshape([-1 if i == axis else 1 for i in range(rank)])
