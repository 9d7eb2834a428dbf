"""Functions of one float32 that compile to vector code: no calls, no branches that lanes could disagree on.

Each is within a few units in the last place of the true value. ``exp`` is the classical one: a power of two times a
polynomial of the remainder (coefficients from Cephes' expf), added up by fused steps that are the same everywhere.
``tanh`` and ``erf`` are ratios of polynomials (Eigen's), ``log`` and ``atan`` polynomials of what is left of a number
once powers of two, or angles, are taken out (Cephes' logf and atanf). ``sin`` and ``cos`` are those of what is left of
quarter turns in float64 (the split of pi is fdlibm's).
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from qbench.kernels.fma import fma
from qbench.kernels.jit import register_jitable

f32 = np.float32


def _jitable(function: Callable[..., Any]) -> Callable[..., Any]:
    return register_jitable(error_model="numpy")(function)  # dividing by zero gives infinity


LOG2_E = f32(1.44269504)
ROUNDS = f32(1.5 * 2**23)
"""Added to a number, it leaves the nearest integer in the last bits."""
LOW = f32(-87.33)
"""Below it, e to the power of x is no normal number."""


LOG_2 = f32(0.693359375), f32(-2.12194440e-4)
"""The logarithm of 2 in two parts, the first of so few bits that its products with integers are exact."""
EXP_TERMS = tuple(
    map(f32, (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1))
)
"""Of the polynomial in the remainder that follows ``1 + r``, from its highest power down to the square."""


@register_jitable
def _power_of_two(exponent):
    """2 to an integer power within the normal range."""
    return np.int32((exponent + np.int32(127)) << np.int32(23)).view(np.float32)


@register_jitable
def _parts(x):
    """n and p with ``exp(x) = 2**n * p``: the integer as the last bits of a float, and p between 0.7 and 1.42."""
    shifted = fma(x, LOG2_E, ROUNDS)
    n = shifted - ROUNDS
    r = fma(n, -LOG_2[1], fma(n, -LOG_2[0], x))
    p = EXP_TERMS[0]
    for k in range(1, 6):
        p = fma(p, r, EXP_TERMS[k])
    return shifted, fma(p, r * r, r) + f32(1)


@register_jitable
def _scaled(p, shifted):
    """p times 2 to the power of the last bits of `shifted`, where that is a normal number."""
    power = np.int32(f32(shifted).view(np.int32) << np.int32(23))
    return np.int32(f32(p).view(np.int32) + power).view(np.float32)


@register_jitable
def exp_below(x):
    """e to the power of x below 88; 0 where that is no normal number."""
    shifted, p = _parts(x)
    return f32(0) if x < LOW else _scaled(p, shifted)


@register_jitable
def exp(x):
    """e to the power of x; 0 and infinity beyond the range."""
    shifted, p = _parts(min(max(x, f32(-104)), f32(89)))
    whole = np.int32(np.int32(f32(shifted).view(np.int32) << np.int32(16)) >> np.int32(16))
    half = np.int32(whole >> np.int32(1))  # in two steps: 2^n may be beyond the range where the product is not
    return p * _power_of_two(half) * _power_of_two(np.int32(whole - half))


@register_jitable
def _expm1(x):
    """exp(x) - 1 of what is below 88, by its series where the difference would cancel."""
    p = f32(1 / 5040) * x + f32(1 / 720)
    p = p * x + f32(1 / 120)
    p = p * x + f32(1 / 24)
    p = p * x + f32(1 / 6)
    p = p * x + f32(0.5)
    p = p * x * x + x
    return p if abs(x) < f32(0.35) else exp_below(x) - f32(1)


@_jitable
def _sigmoid(x):
    return f32(1) / (f32(1) + exp_below(f32(87) if x < f32(-87) else -x))


@_jitable
def _tanh(x):
    x = min(max(x, f32(-7.99881172180175781)), f32(7.99881172180175781))
    s = x * x
    p = fma(f32(-2.76076847742355e-16), s, f32(2.00018790482477e-13))
    p = fma(p, s, f32(-8.60467152213735e-11))
    p = fma(p, s, f32(5.12229709037114e-08))
    p = fma(p, s, f32(1.48572235717979e-05))
    p = fma(p, s, f32(6.37261928875436e-04))
    p = fma(p, s, f32(4.89352455891786e-03))
    q = fma(f32(1.19825839466702e-06), s, f32(1.18534705686654e-04))
    q = fma(q, s, f32(2.26843463243900e-03))
    q = fma(q, s, f32(4.89352518554385e-03))
    return x * p / q


@_jitable
def _erf(x):
    x = min(max(x, f32(-4)), f32(4))
    s = x * x
    p = fma(f32(-2.72614225801306e-10), s, f32(2.77068142495902e-08))
    p = fma(p, s, f32(-2.10102402082508e-06))
    p = fma(p, s, f32(-5.69250639462346e-05))
    p = fma(p, s, f32(-7.34990630326855e-04))
    p = fma(p, s, f32(-2.95459980854025e-03))
    p = fma(p, s, f32(-1.60960333262415e-02))
    q = fma(f32(-1.45660718464996e-05), s, f32(-2.13374055278905e-04))
    q = fma(q, s, f32(-1.68282697438203e-03))
    q = fma(q, s, f32(-7.37332916720468e-03))
    q = fma(q, s, f32(-1.42647390514189e-02))
    return x * p / q


@_jitable
def _clamped(x, low, high):
    return low if x < low else (high if x > high else x)  # lets NaN through


_LOG_TERMS = tuple(
    map(
        f32,
        (7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
         2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1),
    )
)  # fmt: skip
_LEAST_NORMAL, _UP = f32(2.0**-126), f32(2.0**23)


@_jitable
def _log(x):
    size = abs(x)
    small = size < _LEAST_NORMAL
    bits = f32(size * _UP if small else size).view(np.int32)
    lower = np.int32(bits - np.int32(0x3F3504F3))  # so that what is left lies between the roots of a half and of two
    n = f32(np.int32(lower >> np.int32(23))) - (f32(23) if small else f32(0))
    r = np.int32(np.int32(lower & np.int32(0x7FFFFF)) + np.int32(0x3F3504F3)).view(np.float32) - f32(1)
    p = _LOG_TERMS[0]
    for k in range(1, 9):
        p = fma(p, r, _LOG_TERMS[k])
    s = r * r
    y = fma(n, LOG_2[1], p * r * s)
    y = fma(n, LOG_2[0], fma(f32(-0.5), s, y) + r)
    y = y if x < f32(np.inf) else x
    return f32(-np.inf) if x == f32(0) else (y if x > f32(0) else f32(np.nan))


@_jitable
def _log1p(x):
    """Of what is not below -1/2: what rounding takes off the sum is put back as a factor."""
    whole = f32(1) + x
    return x if whole == f32(1) else _log(whole) * (x / (whole - f32(1)))


_QUARTERS, _PI_2 = 2 / math.pi, (1.57079632673412561417, 6.07710050650619224932e-11)
_ROUNDS_WIDE = 1.5 * 2**52


@_jitable
def _turned(x, quarters):
    """The sine of x and so many quarter turns; 0 or 1 where neighbours of x are more than a turn apart."""
    wide = np.float64(x)
    shifted = wide * _QUARTERS + _ROUNDS_WIDE
    n = shifted - _ROUNDS_WIDE
    r = (wide - n * _PI_2[0]) - n * _PI_2[1]
    r = np.float64(0) if abs(r) > 1 else r
    s = r * r
    sine = r + r * s * (-1 / 6 + s * (1 / 120 + s * (-1 / 5040 + s * (1 / 362880))))
    cosine = 1 + s * (-0.5 + s * (1 / 24 + s * (-1 / 720 + s * (1 / 40320 + s * (-1 / 3628800)))))
    at = np.float64(shifted).view(np.int64) + np.int64(quarters)
    y = cosine if at & 1 else sine
    return f32(-y if at & 2 else y)


_ATAN_TERMS = tuple(map(f32, (8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1)))


@_jitable
def _atan(x):
    size = abs(x)
    is_steep, is_flat = size > f32(2.414213562373095), size <= f32(0.4142135623730950)
    turned = f32(-1) / size if is_steep else (size - f32(1)) / (size + f32(1))
    base = f32(math.pi / 2) if is_steep else f32(math.pi / 4)
    r, base = (size, f32(0)) if is_flat else (turned, base)
    s = r * r
    p = _ATAN_TERMS[0]
    for k in range(1, 4):
        p = fma(p, s, _ATAN_TERMS[k])
    y = base + fma(p * s, r, r)
    return -y if x < f32(0) else y


def _function(body: Callable[..., Any]) -> Callable[..., Any]:
    return _jitable(body)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "clamp": _clamped,
    "leaky_relu": _function(lambda x, a, b: x if x > f32(0) else x * a),
    "elu": _function(lambda x, a, b: x if x > f32(0) else a * _expm1(min(x, f32(0)))),
    "sigmoid": _function(lambda x, a, b: _sigmoid(x)),
    "hard_sigmoid": _function(lambda x, a, b: _clamped(x * a + b, f32(0), f32(1))),
    "hard_swish": _function(lambda x, a, b: x * _clamped(x * f32(1 / 6) + f32(0.5), f32(0), f32(1))),
    "silu": _function(lambda x, a, b: x * _sigmoid(x)),
    "gelu": _function(lambda x, a, b: x * f32(0.5) * (f32(1) + _erf(x * f32(math.sqrt(0.5))))),
    "gelu_tanh": _function(
        lambda x, a, b: x * f32(0.5) * (f32(1) + _tanh(f32(math.sqrt(2 / math.pi)) * (x + f32(0.044715) * x * x * x)))
    ),
    "softplus": _function(lambda x, a, b: max(x, f32(0)) + _log1p(exp_below(-abs(x)))),
    "exp": _function(lambda x, a, b: exp(x)),
    "tanh": _function(lambda x, a, b: _tanh(x)),
    "erf": _function(lambda x, a, b: _erf(x)),
    "sqrt": _function(lambda x, a, b: np.sqrt(x)),
    "log": _function(lambda x, a, b: _log(x)),
    "sin": _function(lambda x, a, b: _turned(x, 0)),
    "cos": _function(lambda x, a, b: _turned(x, 1)),
    "tan": _function(lambda x, a, b: np.tan(x)),
    "asin": _function(lambda x, a, b: np.arcsin(x)),
    "acos": _function(lambda x, a, b: np.arccos(x)),
    "atan": _function(lambda x, a, b: _atan(x)),
    "sinh": _function(lambda x, a, b: np.sinh(x)),
    "cosh": _function(lambda x, a, b: np.cosh(x)),
    "asinh": _function(lambda x, a, b: np.arcsinh(x)),
    "acosh": _function(lambda x, a, b: np.arccosh(x)),
    "atanh": _function(lambda x, a, b: np.arctanh(x)),
    "abs": _function(lambda x, a, b: abs(x)),
    "negative": _function(lambda x, a, b: -x),
    "floor": _function(lambda x, a, b: np.floor(x)),
    "ceil": _function(lambda x, a, b: np.ceil(x)),
    "round": _function(lambda x, a, b: np.rint(x)),
    "reciprocal": _function(lambda x, a, b: f32(1) / x),
    "rsqrt": _function(lambda x, a, b: f32(1) / np.sqrt(x)),
    "sign": _function(lambda x, a, b: np.sign(x)),
}
"""``f(x, alpha, beta) -> float32`` by the name of the op without its dialect; ``clamp`` bounds x by both."""
