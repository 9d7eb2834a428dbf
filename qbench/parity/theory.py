"""How often two ways to round disagree, from the multiplier alone.

A requantize computes ``acc * multiplier``. As a fixed-point number that is ``acc * M * 2^-(31 + r)``, with a mantissa
M of 31 bits and a right shift r. Its fraction runs through all multiples of ``2^-bits`` (bits = 31 + r, less the zeros
at the end of M) equally often as the accumulator runs through many integers. Every way to round is then one number for
each sign and for each parity of the integer below: the first fraction that is rounded up. Two ways disagree on the
fractions between their numbers.

* Ties up: a half. Ties away from zero: a half, or for negative products the fraction after it. Ties to even: a half
  where the integer below is odd, else the fraction after it.
* ``tflite_double`` rounds to ``2^-r`` first. What that makes a tie goes away from zero: from a half less ``2^-(r+1)``
  on for positive products, and a half and ``2^-(r+1)`` for negative ones. So it disagrees with a single rounding on
  ``2^-(r+1)`` of all outputs.
* ``litert_builtin`` (LiteRT's optimized kernels) rounds such ties up for either sign.
* ``fp32_rne`` takes a multiplier that was rounded to float32, which moves the number by that rounding times the
  product; and the product is rounded to float32: what comes within half a unit of its last place is a tie.
"""

import math
from itertools import product
from typing import Literal

import numpy as np

from qbench.quant.fixed_point import quantized_multiplier
from qbench.quant.rounding import Rounding

Mode = Rounding | Literal["litert_builtin"]
"""How a runtime rounds: one of qbench's, or one that only others have."""

_FLOAT32_DIGITS = 24


def disagreement(
    left: Mode,
    right: Mode,
    multiplier: float,
    *,
    negative: float = 0.5,
    magnitude: float = 32.0,
    rounded: float | None = None,
) -> float:
    """The fraction of outputs that two ways to round make different.

    Parameters
    ----------
    left, right
        The two.
    multiplier
        By which accumulators are multiplied, in float64.
    negative
        Which fraction of the products is negative.
    magnitude
        How large the products are on average; matters for ``fp32_rne``.
    rounded
        The multiplier that ``fp32_rne`` takes; unless given, `multiplier` rounded to float32.

    Returns
    -------
    float
        Of the outputs that do not saturate, for accumulators spread over many integers.
    """
    mantissas, shifts = quantized_multiplier(multiplier)
    mantissa, right_shift = int(mantissas), -int(shifts)
    bits = 31 + right_shift - ((mantissa & -mantissa).bit_length() - 1)
    if bits <= 0:
        return 0.0  # every product is an integer
    drift = ((float(np.float32(multiplier)) if rounded is None else rounded) / multiplier - 1.0) * magnitude
    blur = math.ldexp(1.0, math.frexp(max(magnitude, 0.5))[1] - 1 - _FLOAT32_DIGITS)
    kept = max(right_shift, 0)
    total = 0.0
    for is_negative, is_odd in product((False, True), repeat=2):
        first, second = (_first_up(mode, bits, kept, is_negative, is_odd, drift, blur) for mode in (left, right))
        total += 0.5 * (negative if is_negative else 1.0 - negative) * math.ldexp(abs(first - second), -bits)
    return min(total, 1.0)


def _first_up(
    mode: Mode, bits: int, right_shift: int, is_negative: bool, is_odd: bool, drift: float, blur: float
) -> int:
    """The first fraction, in units of ``2^-bits``, that is rounded up."""
    half = 1 << (bits - 1)
    if mode in ("tflite_double", "litert_builtin") and right_shift:
        early = 1 << (bits - right_shift - 1)
        return half + early if is_negative and mode == "tflite_double" else half - early
    if mode in ("tvm_tonearest", "fp64_away"):
        return half + is_negative
    if mode == "pow2_half_even":
        return half + (not is_odd)
    if mode == "fp32_rne":
        moved = half + int(math.ldexp(drift if is_negative else -drift, bits))
        reach = int(math.ldexp(blur, bits))
        return moved - reach if is_odd else moved + reach + 1
    return half
