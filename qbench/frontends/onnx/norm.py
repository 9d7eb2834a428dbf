"""Normalizations."""

import numpy as np

from qbench.errors import ModelError
from qbench.frontends.onnx.builder import Builder, Unsupported, Value
from qbench.frontends.onnx.movement import reshaped
from qbench.frontends.onnx.source import SourceNode
from qbench.frontends.onnx.table import converter


@converter("BatchNormalization", "X scale B mean var", "epsilon momentum training_mode spatial")
def batch_norm(
    builder: Builder, node: SourceNode, x: Value, gamma: Value, beta: Value, mean: Value, variance: Value
) -> Value:
    """Inference only: the stored mean and variance."""
    if node.flag("training_mode") or not node.flag("spatial", True):
        raise Unsupported("only inference with one mean per channel is supported")
    return builder.emit("nn.batch_norm", x, gamma, beta, mean, variance, epsilon=node.real("epsilon", 1e-5))


@converter("LayerNormalization", "X Scale B?", "axis epsilon stash_type")
def layer_norm(builder: Builder, node: SourceNode, x: Value, gamma: Value, beta: Value | None) -> Value:
    """Over `axis` and all axes after it."""
    axis = x.axis(node.integer("axis", -1))
    shape = tuple(x.size(i) for i in range(axis, x.rank))
    gamma = _filled(builder, gamma, shape)
    offset = np.zeros(shape, x.dtype) if beta is None else _filled(builder, beta, shape)
    where = -1 if axis == x.rank - 1 else axis
    return builder.emit("nn.layer_norm", x, gamma, offset, axis=where, epsilon=node.real("epsilon", 1e-5))


@converter("RMSNormalization SimplifiedLayerNormalization", "X scale", "axis epsilon stash_type")
def rms_norm(builder: Builder, node: SourceNode, x: Value, gamma: Value) -> Value:
    """Over `axis` and all axes after it, without a mean."""
    axis = x.axis(node.integer("axis", -1))
    gamma = _filled(builder, gamma, tuple(x.size(i) for i in range(axis, x.rank)))
    where = -1 if axis == x.rank - 1 else axis
    return builder.emit("nn.rms_norm", x, gamma, axis=where, epsilon=node.real("epsilon", 1e-5))


def _filled(builder: Builder, value: Value, shape: tuple[int, ...]) -> Value:
    if value.shape == shape or value.constant is None:
        return value
    return builder.known(value, np.broadcast_to(value.constant, shape))


@converter("GroupNormalization", "X scale bias", "epsilon num_groups stash_type")
def group_norm(builder: Builder, node: SourceNode, x: Value, gamma: Value, beta: Value) -> Value:
    """Instance normalization over groups of channels, then a scale per channel (per group before opset 21)."""
    groups, channels = node.integer("num_groups", 0), x.size(1)
    if gamma.constant is None or beta.constant is None:
        raise Unsupported("scale and bias must be constant")
    if groups < 1 or channels % groups:
        raise ModelError(f"node {node}: {channels} channels do not split into {groups} groups")
    grouped = reshaped(builder, x, [x.shape[0], groups, -1])
    ones, zeros = np.ones(groups, x.dtype), np.zeros(groups, x.dtype)
    normal = builder.emit("nn.instance_norm", grouped, ones, zeros, epsilon=node.real("epsilon", 1e-5))
    y = builder.emit("reshape", normal, newshape=x.shape)
    column = (channels, *[1] * (x.rank - 2))
    scale, offset = (
        builder.known(v, np.repeat(v.constant, channels // max(v.constant.size, 1)).reshape(column))
        for v in (gamma, beta)
        if v.constant is not None
    )
    return builder.emit("add", builder.emit("multiply", y, scale), offset)


@converter("LpNormalization", "input", "axis p")
def lp_norm(builder: Builder, node: SourceNode, x: Value) -> Value:
    """x over its norm along one axis; zero where that is zero."""
    axis, tiny = x.axis(node.integer("axis", -1)), np.finfo(np.float32).tiny
    if node.integer("p", 2) == 1:
        norm = builder.emit("sum", builder.emit("abs", x), axes=(axis,))
        return builder.emit("divide", x, builder.emit("maximum", norm, np.asarray(tiny, x.dtype)))
    return builder.emit("nn.l2_normalize", x, axis=axis, epsilon=float(tiny))


@converter("MeanVarianceNormalization", "X", "axes")
def mean_variance_norm(builder: Builder, node: SourceNode, x: Value) -> Value:
    """Zero mean and unit variance along some axes."""
    axes = tuple(map(x.axis, node.integers("axes") or (0, 2, 3)))
    centred = builder.emit("subtract", x, builder.emit("mean", x, axes=axes))
    variance = builder.emit("mean", builder.emit("multiply", centred, centred), axes=axes)
    deviation = builder.emit("add", builder.emit("sqrt", variance), np.asarray(1e-9, x.dtype))
    return builder.emit("divide", centred, deviation)
