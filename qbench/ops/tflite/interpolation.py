"""TFLite's tables for 16-bit integers: 513 entries, between which it interpolates."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.quant.arithmetic import round_half_away

Integers = NDArray[np.int64]

_STEPS = 512


def sampled(
    function: Callable[[NDArray[Any]], Any],
    source: tuple[Any, int],
    target: tuple[Any, int],
    real: type[np.floating[Any]],
) -> Integers:
    """The table of a function.

    Parameters
    ----------
    function
        Of real numbers of the type `real`.
    source, target
        Scale and zero point of argument and result.
    real
        float32, or float64 as in softmax. All is computed in it.

    Notes
    -----
    Entries lie half the interpolation's error at the middle of a step off the function's values, so that it is spread.
    """
    low, high = (real(source[0]) * real(bound - source[1]) for bound in (-(2**15), 2**15 - 1))
    least, most = (real(target[0]) * real(bound - target[1]) for bound in (-(2**15), 2**15 - 1))
    step = (high - low) / real(_STEPS)
    per_unit = real(2**16) / (most - least)
    place = np.arange(_STEPS).astype(real)
    with np.errstate(all="ignore"):
        at = np.asarray(function(low + place * step), real) * per_unit
        middle = np.asarray(function(low + place * step + step / real(2)), real) * per_unit
        following = np.asarray(function(low + (place + real(1)) * step), real) * per_unit
        last = np.asarray(function(np.asarray([high], real)), real) * per_unit
        between = round_half_away((following + round_half_away(at)) / real(2))
        bias = round_half_away((between - round_half_away(middle)) / real(2))
        entries = np.concatenate([round_half_away(at) - bias, round_half_away(last)])
    return np.nan_to_num(entries).clip(-(2**15), 2**15 - 1).astype(np.int64)


def interpolated(x: Integers, table: Integers) -> Integers:
    """The table's values at 16-bit integers."""
    index = 256 + (x >> 7)
    base = table[index]
    slope = (table[index + 1] - base + 2**15) % 2**16 - 2**15  # 16 bits, which may wrap around
    return (base + ((slope * (x & 127) + 64) >> 7) + 2**15) % 2**16 - 2**15
