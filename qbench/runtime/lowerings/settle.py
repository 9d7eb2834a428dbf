"""Channels whose output cannot change: they get small constants that give the same codes.

Channels that training has left dead have tiny scales, so biases beyond 2^24, where kernels take slower ways for all.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from qbench.kernels.rounding import rescale_one
from qbench.runtime.lowerings.rescaling import Rescaling

LARGE = 2**24
"""Totals up to this are floats: kernels are at their fastest."""
_SHIFT = -2  # a multiplier of 1/8, for which kernels have every way to round: results are integers

_APART = 2.0
"""Reals so far from each other have different codes, however they are rounded; nearer ones are rounded to see."""

Int64s = NDArray[np.int64]


def settle(added: Int64s, reach: Int64s, found: Rescaling) -> tuple[Int64s, Int64s, Rescaling]:
    """Find channels with large totals and one code, and choose other numbers for them.

    Parameters
    ----------
    added
        Bias of each channel.
    reach
        The largest magnitude of each channel's sum of products.
    found
        What becomes of the totals.

    Returns
    -------
    Indices of the channels, whose weights have to be taken as zeros; the biases and the rescaling, changed there.
    """
    codes: dict[int, int] = {}
    scale = found.mantissa * 2.0 ** (found.shift - 31)
    lowest, highest = (
        np.clip(total * scale, found.low - found.zero_point, found.high - found.zero_point)
        for total in (added - reach, added + reach)
    )
    apart = np.abs(highest - lowest) > _APART
    for channel in np.flatnonzero((np.abs(added) + reach > LARGE) & (found.mantissa >= 0) & ~apart).tolist():
        ends = {_code(int(added[channel] + sign * reach[channel]), channel, found) for sign in (-1, 1)}
        code = ends.pop()
        if not ends and code is not None:
            codes[channel] = code
    settled = np.array([*codes], np.int64)
    if not codes:
        return settled, added, found
    added, mantissa, shift = added.copy(), found.mantissa.copy(), found.shift.copy()
    multiplier = found.multiplier.copy()
    added[settled] = (np.array([*codes.values()]) - found.zero_point) << (1 - _SHIFT)
    mantissa[settled], shift[settled] = 1 << 30, _SHIFT
    multiplier[settled] = 0.0 if found.rounding == "fp64_away" else 2.0 ** (_SHIFT - 1)  # the rest of the first two
    return settled, added, replace(found, mantissa=mantissa, shift=shift, multiplier=multiplier)


def _code(total: int, channel: int, found: Rescaling) -> int | None:
    """The code of one total; None where it has none."""
    if abs(total) >= 2**31:  # tflite_double has no more bits, and 32 are enough for the totals that matter
        return None
    numbers = found.mantissa[channel], found.shift[channel], found.multiplier[channel]
    return int(min(max(rescale_one(total, *numbers, found.code) + found.zero_point, found.low), found.high))
