"""From a range of real numbers to a scale and a zero point."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from qbench.errors import QParamsError
from qbench.ir.dtypes import DType, integer_range
from qbench.ir.qparams import QParams

_TINY = float(np.finfo(np.float32).tiny)


def from_range(low: float, high: float, dtype: DType, symmetric: bool, narrow: bool = False) -> QParams:
    """qparams per tensor that cover the range [low, high], widened to include 0.

    Parameters
    ----------
    low, high
        Finite, low <= high.
    dtype
        Integer type of the result.
    symmetric
        Put 0.0 in the middle of the type (0 for signed types, 128 for uint8), with as many steps on either side.
    narrow
        Leave the smallest integer unused. Symmetric ranges never need it, so their scale is the same either way.

    Returns
    -------
    QParams
        Asymmetric ones are onnxruntime's: ``scale = (high - low) / (qmax - qmin)`` and
        ``zero_point = round(qmin - low / scale)``. A range so small that its scale would not be a normal float32 (an
        all-zero tensor, say) gets scale 1, which turns it into zeros.

    Raises
    ------
    QParamsError
        A range that is not finite or not in order.
    """
    found = from_ranges([low], [high], dtype, symmetric, narrow)
    return QParams(found.scales[0], found.zero_points[0], dtype)


def from_ranges(
    lows: Sequence[float], highs: Sequence[float], dtype: DType, symmetric: bool, narrow: bool = False
) -> QParams:
    """`from_range` of each of several ranges, as qparams along axis 0."""
    low, high = np.asarray(lows, np.float64), np.asarray(highs, np.float64)
    wrong = np.flatnonzero(~(np.isfinite(low) & np.isfinite(high) & (low <= high)))
    if wrong.size:
        raise QParamsError(f"range [{lows[wrong[0]]}, {highs[wrong[0]]}] must be finite, the lower end first")
    scales, zeros = scales_and_zero_points(low, high, dtype, symmetric, narrow)
    return QParams(tuple(scales.tolist()), tuple(zeros.tolist()), dtype, 0)


def scales_and_zero_points(
    lows: NDArray[np.float64], highs: NDArray[np.float64], dtype: DType, symmetric: bool, narrow: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """`from_range` of each of several ranges, finite and in order, as arrays of their shape: not rounded to float32."""
    low, high, (qmin, qmax) = np.minimum(lows, 0.0), np.maximum(highs, 0.0), integer_range(dtype)
    middle = (qmin + qmax + 1) // 2
    scales = np.maximum(-low, high) / (qmax - middle) if symmetric else (high - low) / (qmax - qmin - narrow)
    dead = scales < _TINY
    scales = np.where(dead, 1.0, scales)
    zeros = np.where(dead, max(0, qmin + narrow), np.rint(qmin + narrow - low / scales)).astype(np.int64)
    return scales, zeros * 0 + middle if symmetric else zeros


def per_axis(
    lows: Sequence[float], highs: Sequence[float], dtype: DType, axis: int, symmetric: bool, narrow: bool = False
) -> QParams:
    """qparams for each index along an axis; see `from_range`.

    An index whose range is nothing but zero gets the widest index's scale: its weights are zeros at any scale, but a
    bias, which is stored in steps of input scale times weight scale, would lose its precision at scale 1.
    """
    if len(lows) != len(highs) or not len(lows):
        raise QParamsError(f"{len(lows)} lower and {len(highs)} upper ends for axis {axis}")
    found = from_ranges(lows, highs, dtype, symmetric, narrow)
    alive = [max(-low, high) >= _TINY * (found.qmax - found.qmin) for low, high in zip(lows, highs, strict=True)]
    widest = max((scale for scale, is_alive in zip(found.scales, alive, strict=True) if is_alive), default=1.0)
    scales = tuple(scale if is_alive else widest for scale, is_alive in zip(found.scales, alive, strict=True))
    return QParams(scales, found.zero_points, dtype, axis)


def power_of_two(q: QParams) -> QParams:
    """The same qparams with each scale raised to a power of two, ``2^ceil(log2 scale)``; zero points stay."""
    scales = tuple(next_powers_of_two(np.array(q.scales)).tolist())
    return dataclasses.replace(q, scale=scales[0] if q.axis is None else scales)


def next_power_of_two(value: float) -> float:
    """``2^ceil(log2 value)``, exactly, of a positive number."""
    return float(next_powers_of_two(np.array(value)))


def next_powers_of_two(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """`next_power_of_two` of each of several numbers."""
    significands, exponents = np.frexp(values)
    return np.asarray(np.ldexp(1.0, exponents - (significands == 0.5)), np.float64)
