"""Real multipliers as integers: a mantissa and a shift, or a shift alone."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qbench.errors import QParamsError


def quantized_multiplier(real: ArrayLike) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The fixed-point form of positive multipliers: ``real`` is about ``mantissa * 2^(shift - 31)``.

    Parameters
    ----------
    real
        Positive finite multipliers, any shape, used as float64.

    Returns
    -------
    mantissa, shift
        int32 arrays of that shape; mantissa in [2^30, 2^31).

    Raises
    ------
    QParamsError
        A multiplier that is not positive and finite.

    Notes
    -----
    TFLite's ``QuantizeMultiplier`` and TVM's ``GetFixedPointMultiplierShift``: frexp, then the significand times 2^31
    rounded half up; where that is 2^31 itself, it is halved and the exponent grows by one.
    """
    significand, exponent = np.frexp(_positive(real))
    mantissa = np.floor(significand * 2.0**31 + 0.5).astype(np.int64)  # exact: the product has 22 bits of fraction
    carry = mantissa == 2**31
    return np.where(carry, 2**30, mantissa).astype(np.int32), (exponent + carry).astype(np.int32)


def sixteen_bits(mantissa: NDArray[np.int32]) -> NDArray[np.int32]:
    """Mantissas rounded to their upper 16 bits, as TFLite takes them for 64-bit accumulators."""
    return np.minimum((mantissa.astype(np.int64) + 2**15) >> 16, 2**15 - 1).astype(np.int32) << 16


def power_of_two_shift(real: ArrayLike) -> NDArray[np.int32]:
    """The right shift that multiplies by each power of two: 0.25 is 2, 1.0 is 0, 4.0 is -2.

    Raises
    ------
    QParamsError
        A multiplier that is not a power of two.
    """
    multipliers = _positive(real)
    significand, exponent = np.frexp(multipliers)
    if np.any(significand != 0.5):
        culprit = float(multipliers[significand != 0.5].flat[0])
        raise QParamsError(
            f"multiplier {culprit} is not a power of two, so a shift cannot stand for it: "
            "choose power-of-two scales for every tensor, or another rounding mode"
        )
    return (1 - exponent).astype(np.int32)


def _positive(real: ArrayLike) -> NDArray[np.float64]:
    multipliers = np.asarray(real, np.float64)
    good = np.isfinite(multipliers) & (multipliers > 0)
    if not np.all(good):
        raise QParamsError(f"multiplier {float(multipliers[~good].flat[0])} must be positive and finite")
    return multipliers
