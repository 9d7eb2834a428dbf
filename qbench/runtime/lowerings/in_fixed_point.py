"""Float64 multipliers as mantissas and shifts, where no accumulator can tell the difference.

Rescaled, rounded and clamped to 8 bits, an accumulator gives one of 256 codes, and they rise with it: two rules agree
if the first accumulator that reaches each code is the same. That is looked up here, and where it is not the same for
the nearest mantissa, for its neighbours: a slightly larger one also rounds ties away from zero.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.quant.fixed_point import quantized_multiplier
from qbench.quant.rescaling import rescale, rescale_float64
from qbench.runtime.lowerings.rescaling import Rescaling

Integers = NDArray[np.int64]

_NEAR = (0, 1, -1, 2, -2, 3, -3, 4, -4)


def in_fixed_point(found: Rescaling, bound: Integers) -> Rescaling:
    """``fp64_away`` as ``tflite_single``, for which kernels have vectors, if each channel has a mantissa that does.

    Parameters
    ----------
    found
        From accumulators to 8 bits, in any mode; others than ``fp64_away`` stay as they are.
    bound
        The largest magnitude of each channel's accumulators.
    """
    if found.rounding != "fp64_away" or found.dtype not in ("int8", "uint8"):
        return found
    real = np.ldexp(found.mantissa.astype(np.float64), found.shift - 31) + found.multiplier
    most = int(np.max(bound, initial=0))
    steps = np.arange(found.low + 1, found.high + 1, dtype=np.int64) - found.zero_point
    numbers: dict[float, tuple[int, int]] = {}
    for multiplier in np.unique(real).tolist():
        fitting = _fitting(multiplier, steps, most)
        if fitting is None:
            return found
        numbers[multiplier] = fitting
    mantissa, shift = np.array([numbers[value] for value in real.tolist()], np.int32).T.copy()
    return replace(found, rounding="tflite_single", mantissa=mantissa, shift=shift)


def _fitting(multiplier: float, steps: Integers, bound: int) -> tuple[int, int] | None:
    """A mantissa and shift that reach each step at the same accumulators up to `bound` as the multiplier does."""

    def firsts(rule: Callable[[Integers], Integers]) -> Integers | None:
        guesses = np.floor((steps - 0.5) / multiplier)
        near = np.clip(guesses, -(2.0**40), 2.0**40).astype(np.int64)[:, np.newaxis] + np.arange(-2, 4)
        near = near.clip(-bound - 1, bound + 1)
        reached = rule(near) >= steps[:, np.newaxis]
        first = np.take_along_axis(near, reached.argmax(axis=1)[:, np.newaxis], axis=1)[:, 0]
        before, behind = (near[:, 0] < -bound) | ~reached[:, 0], (near[:, -1] > bound) | reached[:, -1]
        certain = before & behind
        return np.where(reached.any(axis=1), first, bound + 1).clip(-bound, bound + 1) if certain.all() else None

    wanted = firsts(lambda acc: rescale_float64(acc, np.asarray(multiplier)))
    nearest, exponent = quantized_multiplier(multiplier)
    for away in _NEAR:
        mantissa: Any = int(nearest) + away
        if wanted is None or not 2**30 <= mantissa < 2**31:
            continue
        got = firsts(lambda acc, m=mantissa: rescale(acc, np.asarray(m), exponent, "tflite_single"))
        if got is not None and np.array_equal(got, wanted):
            return mantissa, int(exponent)
    return None
