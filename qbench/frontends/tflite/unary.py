"""Functions of one element, and the two that normalize a vector."""

import math

import numpy as np

from qbench.errors import ModelError, shown
from qbench.formats.tflite import FUNCTIONS
from qbench.frontends.tflite.arithmetic import aligned
from qbench.frontends.tflite.builder import Builder, Unsupported, Value, type_of
from qbench.frontends.tflite.kinds import clipped, is_plain_integer, is_quantized
from qbench.frontends.tflite.quantized import quantized
from qbench.frontends.tflite.source import SourceOperator
from qbench.frontends.tflite.table import converter
from qbench.ops.tflite.normalize import LEAST_NORM
from qbench.ops.tflite.unary import is_negated
from qbench.quant.activations import ACTIVATION_BOUNDS

_INTEGER = frozenset(
    {
        *("abs", "clip", "exp", "log", "negative", "nn.elu", "nn.gelu", "nn.hard_swish", "nn.leaky_relu", "nn.relu"),
        *("rsqrt", "sigmoid", "sqrt", "tanh"),
    }
)
"""Functions that LiteRT has of quantized integers."""


def _function(builder: Builder, x: Value, function: str, **attrs: float | str) -> Value:
    """A function of one element: an op of floats, or a table of integers."""
    data = builder.natural(x)
    if (is_plain_integer(x) and builder.q is None) or not is_quantized(builder, x):
        return builder.emit(function, data, attrs=attrs)
    if function not in _INTEGER:
        raise Unsupported("no integer form of this op")
    return quantized(builder, function, (data,), attrs)


def _unary(tflite_op: str, options: str, function: str) -> None:
    @converter(tflite_op, "x", options)
    def convert(builder: Builder, op: SourceOperator, x: Value) -> Value:  # pyright: ignore[reportUnusedFunction] registered
        return _function(builder, x, function)


for _name, (_op, _options) in FUNCTIONS.items():
    _unary(_op, _options, _name)


@converter("NEG", "x", "NegOptions")
def negative(builder: Builder, op: SourceOperator, x: Value) -> Value:
    """The opposite; quantized, that of the integers."""
    if x.q is not None and builder.q is not None and not is_negated(x.q, builder.q):
        raise Unsupported("LiteRT takes the opposite of integers as they are stored, which have other scales here")
    return _function(builder, x, "negative")


@converter("RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1", "x")
def relu(builder: Builder, op: SourceOperator, x: Value) -> Value:
    """An activation of its own; quantized, it may change the scale."""
    if not is_quantized(builder, x) or x.q == builder.q:
        return clipped(builder, builder.natural(x), op.op)
    if op.op == "RELU":
        return _function(builder, x, "nn.relu")
    low, high = ACTIVATION_BOUNDS[op.op]
    return _function(builder, x, "clip", a_min=low, a_max=high)


@converter("LEAKY_RELU", "x", "LeakyReluOptions alpha")
def leaky_relu(builder: Builder, op: SourceOperator, x: Value) -> Value:
    """x where positive, else alpha times x."""
    return _function(builder, x, "nn.leaky_relu", alpha=_finite(op, "alpha"))


@converter("GELU", "x", "GeluOptions approximate")
def gelu(builder: Builder, op: SourceOperator, x: Value) -> Value:
    """x times the normal distribution's probability below it."""
    return _function(builder, x, "nn.gelu", approximate="tanh" if op.flag("approximate") else "none")


@converter("LOCAL_RESPONSE_NORMALIZATION", "x", "LocalResponseNormalizationOptions radius bias alpha beta")
def local_response_norm(builder: Builder, op: SourceOperator, x: Value) -> Value:
    """By the squares of the neighbouring channels, whose sum alpha is a factor of, not their mean."""
    is_quantized(builder, x)
    size = 2 * op.integer("radius") + 1
    attrs = {"size": size, "alpha": op.real("alpha") * size, "beta": op.real("beta"), "bias": op.real("bias")}
    return builder.emit("nn.lrn", builder.nchw(x), attrs=attrs)


@converter("RSQRT", "x")
def rsqrt(builder: Builder, op: SourceOperator, x: Value) -> Value:
    """One divided by the square root."""
    if is_quantized(builder, x):
        return _function(builder, x, "rsqrt")
    return builder.emit("reciprocal", builder.emit("sqrt", builder.natural(x)))


@converter("SQUARE", "x", "SquareOptions")
def square(builder: Builder, op: SourceOperator, x: Value) -> Value:
    """x times x."""
    if is_quantized(builder, x):
        raise Unsupported("a quantized square")
    data = builder.natural(x)
    return builder.emit("multiply", data, data)


@converter("PRELU", "x alpha")
def prelu(builder: Builder, op: SourceOperator, x: Value, alpha: Value) -> Value:
    """x where positive, else x times an alpha that broadcasts; usually there is one for each channel."""
    if alpha.constant is None:
        raise Unsupported(f"the slopes {shown(alpha.name)} must be constant")
    data = builder.natural(x)
    channels = x.file_shape[-1]
    by_channel = alpha.constant.size == alpha.shape[-1] if alpha.rank else False
    slopes = alpha.constant.reshape(-1)
    if slopes.size == 1 and isinstance(channels, int):
        slopes, by_channel = np.repeat(slopes, channels), True
    if is_quantized(builder, x, alpha):
        return quantized(builder, "nn.prelu", aligned(builder, data, alpha), result=type_of(data))
    if by_channel:
        return builder.emit("nn.prelu", data, builder.known(slopes, alpha.name), axis=data.axis(x.rank - 1))
    zero = builder.known(np.zeros((), np.float32))
    _, factors = aligned(builder, data, alpha)
    below = builder.emit("multiply", builder.emit("minimum", data, zero), factors)
    return builder.emit("add", builder.emit("maximum", data, zero), below)


@converter("SOFTMAX", "x", "SoftmaxOptions beta")
def softmax(builder: Builder, op: SourceOperator, x: Value) -> Value:
    """Along the file's last axis, the input first multiplied by beta."""
    data, beta = builder.natural(x), _finite(op, "beta")
    if is_quantized(builder, x):
        return quantized(builder, "nn.softmax", (data,), {"axis": data.axis(-1)}, own={"beta": beta})
    if beta != 1:
        data = builder.emit("multiply", data, builder.known(np.asarray(beta, np.float32)))
    return builder.emit("nn.softmax", data, axis=data.axis(-1))


@converter("LOG_SOFTMAX", "x", "LogSoftmaxOptions")
def log_softmax(builder: Builder, op: SourceOperator, x: Value) -> Value:
    """Along the file's last axis."""
    data = builder.natural(x)
    if is_quantized(builder, x):
        return quantized(builder, "nn.log_softmax", (data,), {"axis": data.axis(-1)})
    return builder.emit("nn.log_softmax", data, axis=data.axis(-1))


@converter("L2_NORMALIZATION", "x", "L2NormOptions fused_activation_function")
def l2_normalization(builder: Builder, op: SourceOperator, x: Value) -> Value:
    """Vectors along the file's last axis, divided by their lengths."""
    if op.integer("fused_activation_function"):
        raise Unsupported("a fused activation")
    data = builder.natural(x)
    axis = data.axis(-1)
    if is_quantized(builder, x):
        return quantized(builder, "nn.l2_normalize", (data,), {"axis": axis})
    return builder.emit("nn.l2_normalize", data, axis=axis, epsilon=LEAST_NORM)


def _finite(op: SourceOperator, name: str) -> float:
    value = op.real(name)
    if not math.isfinite(value):
        raise ModelError(f"operator {op}: {name} is {value}")
    return value
