"""TFLite's functions of one element, as tables over all integers of a type, filled as its kernels compute them.

8-bit functions with a curve are tables of float32 results in TFLite too; those made of straight lines, and all of 16
bits, are computed in integers.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.errors import GraphError
from qbench.ir.dtypes import numpy_dtype
from qbench.ir.qparams import QParams
from qbench.ops.tflite.interpolation import interpolated, sampled
from qbench.ops.tflite.sigmoid import sigmoid_int16, tanh_int16
from qbench.quant.arithmetic import round_half_away
from qbench.quant.fixed_functions import reciprocal_square_root
from qbench.quant.fixed_point import quantized_multiplier
from qbench.quant.rescaling import divide_by_power, rescale

Integers = NDArray[np.int64]
Parameters = Mapping[str, Any]


def tflite_table(function: str, parameters: Parameters, source: QParams, target: QParams) -> NDArray[Any]:
    """What TFLite makes of every integer of a type, from the smallest on, by one of :data:`TFLITE_FUNCTIONS`."""
    x = np.arange(source.qmin, source.qmax + 1) - source.zero_points[0]
    steps = TFLITE_FUNCTIONS[function](x, parameters, source, target)
    return np.clip(steps + target.zero_points[0], target.qmin, target.qmax).astype(numpy_dtype(target.dtype))


def _by(x: Integers, multiplier: float) -> Integers:
    """Integers times a real number, negative or zero too, as TFLite's requantize rounds it."""
    if multiplier == 0:
        return np.zeros_like(x)
    mantissa, shift = quantized_multiplier(abs(multiplier))
    return (1 if multiplier > 0 else -1) * rescale(x, mantissa, shift, "tflite_double")


def _ratio(source: QParams, target: QParams) -> float:
    """The ratio of the scales, rounded to float32."""
    return float(np.float32(source.scales[0]) / np.float32(target.scales[0]))


def _identity(x: Integers, parameters: Parameters, source: QParams, target: QParams) -> Integers:
    return _by(x, _ratio(source, target))


def _clip(x: Integers, parameters: Parameters, source: QParams, target: QParams) -> Integers:
    """RELU6 and its like: a rescale, then the bounds in steps of the output."""
    low, high = (
        float(round_half_away(np.asarray(np.float32(parameters.get(name, default)) / np.float32(target.scales[0]))))
        for name, default in (("a_min", -np.inf), ("a_max", np.inf))
    )
    return _identity(x, parameters, source, target).clip(low, high).astype(np.int64)


def _leaky_relu(x: Integers, parameters: Parameters, source: QParams, target: QParams) -> Integers:
    alpha = np.float32(source.scales[0]) * np.float32(parameters.get("alpha", 0.01)) / np.float32(target.scales[0])
    return np.where(x >= 0, _identity(x, parameters, source, target), _by(x, float(alpha)))


def is_negated(source: QParams, target: QParams) -> bool:
    """Whether the opposite of a real number is that of its integer, which is all that TFLite's kernel computes."""
    return source.scales == target.scales and not any((*source.zero_points, *target.zero_points))


def _negative(x: Integers, parameters: Parameters, source: QParams, target: QParams) -> Integers:
    """Where the scales are the same, of the integers as they are stored: the least one is its own opposite."""
    if is_negated(source, target):
        return np.where(x == source.qmin, x, -x)
    return _identity(-x, parameters, source, target)


def _reciprocal_square_root(x: Integers, parameters: Parameters, source: QParams, target: QParams) -> Integers:
    if source.dtype != "int8":
        return _curve(x, source, target, lambda real: 1 / np.sqrt(real), beyond=target.qmax)
    mantissa, shift = reciprocal_square_root(np.maximum(x, 1))
    fine = rescale(np.ones_like(x), mantissa, shift + 20, "tflite_double")
    real = 1.0 / float(np.sqrt(np.float32(source.scales[0])) * np.float32(target.scales[0]))
    factor, exponent = quantized_multiplier(real)
    steps = rescale(fine, factor, exponent - 20, "tflite_double")
    return np.where(x <= 0, target.qmax - target.zero_points[0], steps)


def _hard_swish(x: Integers, parameters: Parameters, source: QParams, target: QParams) -> Integers:
    """x * relu6(x + 3) / 6 in 16 bits: the factor in [0, 1] is kept in units of 2^-15."""
    fine = x << 7
    fine_scale = np.float32(1 / 128) * np.float32(source.scales[0])
    mantissa, exponent = _multiplier_int16(fine_scale / np.float32(target.scales[0]))
    if exponent > 0:
        raise GraphError("TFLite's hard swish needs an output whose scale is no finer than 1/128 of its input's")
    unshifted = _high_multiply_int16(fine, mantissa)
    factor_mantissa, factor_exponent = _multiplier_int16(fine_scale / np.float32(3 / 32768))
    factor = _saturate_int16(fine << max(factor_exponent - 1, 0))
    factor = _high_multiply_int16(factor, factor_mantissa)
    if factor_exponent > 0:
        factor = _saturate_int16(factor << 1)
    factor = _divide_int16(factor, max(-factor_exponent, 0))
    factor = (factor + (1 << 15)) >> 1
    product = factor * unshifted
    truncated = np.sign(product) * (np.abs(product) >> 15)
    return _divide_int16(truncated, -exponent)


def _divide_int16(x: Integers, exponent: int) -> Integers:
    """gemmlowp's RoundingDivideByPOT of 16-bit integers, whose mask of 16 and more bits is -1: it then gives a sign."""
    return divide_by_power(x, exponent) if exponent < 16 else np.where(x < 0, -1, 1)


def _multiplier_int16(real: np.float32) -> tuple[int, int]:
    mantissa, exponent = (int(part) for part in quantized_multiplier(float(real)))
    return min((mantissa + (1 << 15)) >> 16, 2**15 - 1), exponent


def _saturate_int16(x: Integers) -> Integers:
    return np.clip(x, -(2**15), 2**15 - 1)


def _high_multiply_int16(x: Integers, mantissa: int) -> Integers:
    """gemmlowp's SaturatingRoundingDoublingHighMul of 16-bit integers: ties up."""
    return (x * mantissa + (1 << 14)) >> 15


def _sigmoid(x: Integers, parameters: Parameters, source: QParams, target: QParams) -> Integers:
    if source.dtype == "int16":
        return sigmoid_int16(x, source.scales[0])
    return _curve(x, source, target, lambda real: 1 / (1 + _exp(-real)))


def _tanh(x: Integers, parameters: Parameters, source: QParams, target: QParams) -> Integers:
    if source.dtype == "int16":
        return tanh_int16(x, source.scales[0])
    return _curve(x, source, target, _tanh_of)


def _elu(x: Integers, parameters: Parameters, source: QParams, target: QParams) -> Integers:
    return _curve(x, source, target, lambda real: np.where(real < 0, _in_double(np.expm1)(real), real))


def _gelu(x: Integers, parameters: Parameters, source: QParams, target: QParams) -> Integers:
    """By the complementary error function, which does not cancel out far below zero; or by tanh."""
    half, one = np.float32(0.5), np.float32(1)
    if parameters.get("approximate", "none") == "tanh":
        factor, bend = np.float32(math.sqrt(2 / math.pi)), np.float32(0.044715)
        return _curve(
            x,
            source,
            target,
            lambda v: half * v * (one + _tanh_of(np.asarray(factor * (v + bend * v * v * v), np.float32))),
        )
    inverse = np.float32(-math.sqrt(0.5))
    return _curve(x, source, target, lambda v: half * v * _erfc(np.asarray(v * inverse, np.float32)))


def _square_root(x: Integers, parameters: Parameters, source: QParams, target: QParams) -> Integers:
    """In float32, and cut off; below 0, where LiteRT's kernel fails, 0."""
    real = np.float32(source.scales[0]) * np.maximum(x, 0).astype(np.float32)
    return np.trunc(np.sqrt(real) / np.float32(target.scales[0])).clip(0, 2.0**40).astype(np.int64)


def _in_double(function: Callable[..., Any]) -> Callable[[NDArray[np.float32]], NDArray[np.float32]]:
    """The correctly rounded float32 function, as good math libraries have it."""

    def rounded(real: NDArray[np.float32]) -> NDArray[np.float32]:
        with np.errstate(all="ignore"):
            return np.asarray(function(real.astype(np.float64)), np.float32)

    return rounded


_exp = _in_double(np.exp)
_erfc = _in_double(np.vectorize(math.erfc))
_tanh_of = _in_double(np.tanh)


def _curve(
    x: Integers,
    source: QParams,
    target: QParams,
    function: Callable[[NDArray[np.float32]], Any],
    beyond: int | None = None,
) -> Integers:
    """A float32 function at each integer, in steps of the output.

    Parameters
    ----------
    beyond
        The integer that arguments of at most 0 get, where the function has no value there.
    """

    def values(real: NDArray[np.float32]) -> NDArray[np.float32]:
        found = np.asarray(function(real), np.float32)
        if beyond is None:
            return found
        floor = np.float32(beyond - target.zero_points[0]) * np.float32(target.scales[0])
        return np.where(real <= 0, floor, found)

    if source.dtype == "int16":
        scales = (source.scales[0], 0), (target.scales[0], target.zero_points[0])
        return interpolated(x, sampled(values, *scales, np.float32))
    with np.errstate(all="ignore"):
        real = np.float32(source.scales[0]) * x.astype(np.float32)
        steps = round_half_away(values(real) * (np.float32(1) / np.float32(target.scales[0])))
    return np.clip(steps, -(2.0**40), 2.0**40).astype(np.int64)


TFLITE_FUNCTIONS: dict[str, Callable[[Integers, Parameters, QParams, QParams], Integers]] = {
    "nn.relu": lambda x, given, source, target: np.maximum(_identity(x, given, source, target), 0),
    "clip": _clip,
    "nn.leaky_relu": _leaky_relu,
    "nn.hard_swish": _hard_swish,
    "nn.elu": _elu,
    "nn.gelu": _gelu,
    "sigmoid": _sigmoid,
    "tanh": _tanh,
    "exp": lambda x, _, source, target: _curve(x, source, target, _exp),
    "log": lambda x, _, source, target: _curve(x, source, target, _in_double(np.log), beyond=target.qmin),
    "abs": lambda x, given, source, target: _identity(np.abs(x), given, source, target),
    "negative": _negative,
    "sqrt": _square_root,
    "rsqrt": _reciprocal_square_root,
}
"""Names as those of the float ops; the result is in steps of the output, without its zero point."""
