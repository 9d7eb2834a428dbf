"""Functions of one element, and softmax."""

import numpy as np

from qbench.frontends.onnx.builder import Builder, Unsupported, Value
from qbench.frontends.onnx.movement import reshaped
from qbench.frontends.onnx.source import SourceNode
from qbench.frontends.onnx.table import converter

_LARGEST = float(str(np.finfo(np.float32).max))


@converter("Swish", "X", "alpha")
def swish(builder: Builder, node: SourceNode, x: Value, usual: float = 1.0) -> Value:
    """x * sigmoid(alpha * x)."""
    alpha = np.asarray(node.real("alpha", usual), x.dtype)
    return builder.emit("multiply", x, builder.emit("sigmoid", builder.emit("multiply", x, alpha)))


@converter("Celu", "X", "alpha")
def celu(builder: Builder, node: SourceNode, x: Value) -> Value:
    """alpha * elu(x / alpha)."""
    alpha = node.real("alpha", 1.0)
    if alpha == 1:
        return builder.emit("nn.elu", x)
    return builder.emit(
        "multiply", builder.emit("nn.elu", builder.emit("multiply", x, _like(x, 1 / alpha))), _like(x, alpha)
    )


@converter("Selu", "X", "alpha gamma")
def selu(builder: Builder, node: SourceNode, x: Value) -> Value:
    """gamma * elu(x, alpha)."""
    y = builder.emit("nn.elu", x, alpha=node.real("alpha", 1.6732632))
    return builder.emit("multiply", y, _like(x, node.real("gamma", 1.050701)))


@converter("Mish", "X")
def mish(builder: Builder, node: SourceNode, x: Value) -> Value:
    """x * tanh(softplus(x))."""
    return builder.emit("multiply", x, builder.emit("tanh", builder.emit("nn.softplus", x)))


@converter("Softsign", "X")
def softsign(builder: Builder, node: SourceNode, x: Value) -> Value:
    """x / (1 + |x|)."""
    return builder.emit("divide", x, builder.emit("add", builder.emit("abs", x), _like(x, 1)))


@converter("ThresholdedRelu", "X", "alpha")
def thresholded_relu(builder: Builder, node: SourceNode, x: Value) -> Value:
    """x above alpha, else 0."""
    above = builder.emit("greater", x, _like(x, node.real("alpha", 1.0)))
    return builder.emit("where", above, x, _like(x, 0))


@converter("Shrink", "input", "bias lambd")
def shrink(builder: Builder, node: SourceNode, x: Value) -> Value:
    """Elements outside of -lambd and lambd, nearer to zero by a bias; zero within."""
    bias, bound = _like(x, node.real("bias", 0.0)), node.real("lambd", 0.5)
    high = builder.emit(
        "where", builder.emit("greater", x, _like(x, bound)), builder.emit("subtract", x, bias), _like(x, 0)
    )
    return builder.emit("where", builder.emit("less", x, _like(x, -bound)), builder.emit("add", x, bias), high)


@converter("IsInf", "X", "detect_negative detect_positive")
def is_inf(builder: Builder, node: SourceNode, x: Value) -> Value:
    """Whether an element is infinite, of either sign or of both."""
    negative, positive = (node.flag(f"detect_{sign}", True) for sign in ("negative", "positive"))
    if negative != positive:
        return builder.emit("equal", x, _like(x, np.inf if positive else -np.inf))
    return builder.emit("equal", builder.emit("abs", x), _like(x, np.inf if positive else -1))


@converter("Clip", "input min? max?", "min max")
def clip(builder: Builder, node: SourceNode, x: Value, low: Value | None, high: Value | None) -> Value:
    """Bounds are attributes before opset 11, then inputs; either may be absent."""
    computed = any(bound is not None and bound.array is None for bound in (low, high))
    if computed or x.dtype in ("int32", "int64"):  # bounds as attributes are floats
        y = x if low is None else builder.emit("maximum", x, low)
        return y if high is None else builder.emit("minimum", y, high)
    a_min = max(node.real("min", -_LARGEST) if low is None else low.number(), -_LARGEST)
    a_max = min(node.real("max", _LARGEST) if high is None else high.number(), _LARGEST)
    if a_max == _LARGEST and a_min in (0, -_LARGEST):
        return builder.emit("nn.relu", x) if a_min == 0 else x
    return builder.emit("clip", x, a_min=min(a_min, a_max), a_max=a_max)


@converter("PRelu", "X slope")
def prelu(builder: Builder, node: SourceNode, x: Value, slope: Value) -> Value:
    """One slope for all, one per channel, or one per element."""
    shape = (1,) * (x.rank - slope.rank) + slope.shape
    wide = [axis for axis, size in enumerate(shape) if size != 1]
    if slope.constant is not None and slope.constant.size == 1:
        return builder.emit("nn.leaky_relu", x, alpha=slope.number())
    if slope.constant is not None and len(wide) == 1:
        return builder.emit("nn.prelu", x, builder.known(slope, slope.constant.reshape(-1)), axis=wide[0])
    below = builder.emit("multiply", x, slope)
    return builder.emit("where", builder.emit("greater", x, _like(x, 0)), x, below)


@converter("Softmax", "input", "axis")
def softmax(builder: Builder, node: SourceNode, x: Value) -> Value:
    """Before opset 13 the input is first made a matrix, rows before `axis` and columns from it on."""
    return _softmax(builder, node, x, "nn.softmax")


@converter("LogSoftmax", "input", "axis")
def log_softmax(builder: Builder, node: SourceNode, x: Value) -> Value:
    """As softmax."""
    return _softmax(builder, node, x, "nn.log_softmax")


def _softmax(builder: Builder, node: SourceNode, x: Value, op: str) -> Value:
    axis = x.axis(node.integer("axis", -1 if node.opset >= 13 else 1))
    wide = [i for i in range(axis, x.rank) if x.shape[i] != 1]
    if node.opset < 13 and len(wide) > 1:
        if axis == 0 and any(isinstance(size, str) for size in x.shape):
            raise Unsupported("a softmax over all samples together")
        flat = reshaped(builder, x, [*x.shape[:axis], -1])
        return builder.emit("reshape", builder.emit(op, flat), newshape=x.shape)
    if node.opset < 13 and wide:
        axis = wide[0]
    return builder.emit(op, x, axis=-1 if axis == x.rank - 1 else axis)


def _like(x: Value, number: float) -> np.ndarray:
    return np.asarray(number, x.dtype)
