"""How far values are from others: sums of squares in one pass, integers dequantized on the way."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.kernels.compiling import jitted

_LANES = 256  # sums side by side, as vector instructions have them: part of the result, since additions round


def sums_of_squares(
    reference: NDArray[np.float32],
    values: NDArray[Any],
    scales: NDArray[np.float32],
    zero_points: NDArray[Any],
    low: float,
    high: float,
) -> tuple[float, float, Any]:
    """Sum of the squares of `reference`, sum of those of its difference to ``(values - zero_point) * scale``.

    Products and differences to zero points are rounded to float32, all else is done in double precision.

    Parameters
    ----------
    reference, values
        [outer, channels, inner]; `values` in integers or in float32.
    scales, zero_points
        One per channel; zero points are float32 where values are.
    low, high
        The elements of `reference` beyond them are counted, which is the third result.
    """
    _, channels, inner = reference.shape
    sums = np.zeros((2, channels if inner == 1 else min(inner, _LANES)))
    beyond = _add_squares(reference, values, scales, zero_points, low, high, sums[0], sums[1])
    signals, noises = (math.fsum(part) for part in sums)
    return signals, noises, beyond


@jitted
def _add_squares(
    reference: Any, values: Any, scales: Any, zero_points: Any, low: float, high: float, signals: Any, noises: Any
) -> Any:
    """Add to the sums side by side, of signals and of noises; how many elements are beyond the bounds."""
    outer, channels, inner = reference.shape
    size, beyond = signals.size, 0
    if inner == 1:
        for i in range(outer):
            for c in range(channels):
                x = np.float64(reference[i, c, 0])
                real = np.float32(values[i, c, 0] - zero_points[c]) * scales[c]
                signals[c] += x * x
                noises[c] += (x - np.float64(real)) * (x - np.float64(real))
                beyond += (x < low) | (x > high)
    else:
        for i in range(outer):
            for c in range(channels):
                scale, zero_point = scales[c], zero_points[c]
                for start in range(0, inner, size):
                    row, other = reference[i, c, start : start + size], values[i, c, start : start + size]
                    for j in range(row.size):
                        x = np.float64(row[j])
                        real = np.float32(other[j] - zero_point) * scale
                        signals[j] += x * x
                        noises[j] += (x - np.float64(real)) * (x - np.float64(real))
                        beyond += (x < low) | (x > high)
    return beyond
