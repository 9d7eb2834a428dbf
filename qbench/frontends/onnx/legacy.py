"""Ops that ONNX has dropped since, as old converters wrote them."""

import numpy as np

from qbench.errors import ModelError
from qbench.frontends.onnx.builder import Builder, Value
from qbench.frontends.onnx.select import sliced
from qbench.frontends.onnx.source import SourceNode
from qbench.frontends.onnx.table import converter


@converter("ImageScaler", "input", "scale bias")
def image_scaler(builder: Builder, node: SourceNode, x: Value) -> Value:
    """x * scale, plus a bias per channel."""
    scale, bias = node.real("scale", 1.0), node.reals("bias")
    if scale != 1 or not bias:
        x = builder.emit("multiply", x, np.asarray(scale, x.dtype))
    return builder.emit("nn.bias_add", x, np.asarray(bias, x.dtype)) if bias else x


@converter("Affine", "X", "alpha beta")
def affine(builder: Builder, node: SourceNode, x: Value) -> Value:
    """alpha * x + beta."""
    alpha, beta = node.real("alpha", 1.0), node.real("beta", 0.0)
    y = builder.emit("multiply", x, np.asarray(alpha, x.dtype))
    return builder.emit("add", y, np.asarray(beta, x.dtype)) if beta else y


@converter("Crop", "input", "border scale")
def crop(builder: Builder, node: SourceNode, x: Value) -> Value:
    """An image without its border (left, top, right, bottom), or `scale` (height, width) of it from there on."""
    border, scale = node.integers("border"), node.integers("scale")
    if border is None or len(border) != 4:
        raise ModelError(f"node {node}: border {border} should have 4 numbers")
    left, top, right, bottom = border
    height, width = scale or (x.size(2) - top - bottom, x.size(3) - left - right)
    return sliced(builder, x, [(2, top, top + height, 1), (3, left, left + width, 1)])
