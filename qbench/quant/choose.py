"""From a range of real numbers to a scale and a zero point."""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

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
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise QParamsError(f"range [{low}, {high}] must be finite, the lower end first")
    low, high = min(float(low), 0.0), max(float(high), 0.0)
    qmin, qmax = integer_range(dtype)
    middle = (qmin + qmax + 1) // 2
    scale = max(-low, high) / (qmax - middle) if symmetric else (high - low) / (qmax - qmin - narrow)
    if scale < _TINY:
        return QParams(1.0, middle if symmetric else max(0, qmin + narrow), dtype)
    return QParams(scale, middle if symmetric else round(qmin + narrow - low / scale), dtype)


def per_axis(
    lows: Sequence[float], highs: Sequence[float], dtype: DType, axis: int, symmetric: bool, narrow: bool = False
) -> QParams:
    """qparams for each index along an axis; see `from_range`.

    An index whose range is nothing but zero gets the widest index's scale: its weights are zeros at any scale, but a
    bias, which is stored in steps of input scale times weight scale, would lose its precision at scale 1.
    """
    if len(lows) != len(highs) or not len(lows):
        raise QParamsError(f"{len(lows)} lower and {len(highs)} upper ends for axis {axis}")
    each = [from_range(low, high, dtype, symmetric, narrow) for low, high in zip(lows, highs, strict=True)]
    alive = [max(-low, high) >= _TINY * (q.qmax - q.qmin) for low, high, q in zip(lows, highs, each, strict=True)]
    widest = max((q.scales[0] for q, is_alive in zip(each, alive, strict=True) if is_alive), default=1.0)
    scales = tuple(q.scales[0] if is_alive else widest for q, is_alive in zip(each, alive, strict=True))
    return QParams(scales, tuple(q.zero_points[0] for q in each), dtype, axis)


def power_of_two(q: QParams) -> QParams:
    """The same qparams with each scale raised to a power of two, ``2^ceil(log2 scale)``; zero points stay."""
    scales = tuple(next_power_of_two(scale) for scale in q.scales)
    return dataclasses.replace(q, scale=scales[0] if q.axis is None else scales)


def next_power_of_two(value: float) -> float:
    """``2^ceil(log2 value)``, exactly, of a positive number."""
    significand, exponent = math.frexp(value)
    return math.ldexp(1.0, exponent - 1 if significand == 0.5 else exponent)
