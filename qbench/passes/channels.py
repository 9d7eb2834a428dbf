"""Layers with an output axis of channels: which axis it is, and how a constant per channel reaches their weights."""

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from qbench.errors import GraphError, shown
from qbench.ir.graph import Node
from qbench.ir.op import OPS, Array, QuantRule
from qbench.ir.types import Dim
from qbench.passes.rewrite import Rewriter


def foldable(rw: Rewriter, layer: Node | None) -> bool:
    """Whether a node is a float layer with a constant weight, one sum of products for each output channel."""
    if layer is None or OPS[layer.op].rule is QuantRule.INTERNAL or not OPS[layer.op].has_weight():
        return False
    return layer.inputs[1] in rw.constants


def channel_axis(rw: Rewriter, node: Node) -> int:
    """The axis of a node's output that has its channels."""
    axis = rw.op(node).channel_axis_of("output", rw.types[node.output].rank)
    assert axis is not None
    return axis


def per_channel(array: Array, shape: tuple[Dim, ...], axis: int) -> Array | None:
    """A constant that broadcasts against `shape` along one axis only, as a vector over it; None where it does not."""
    channels, rank = shape[axis], len(shape)
    if not isinstance(channels, int) or array.ndim > rank or array.size not in (1, channels):
        return None
    if array.size > 1 and ((1,) * (rank - array.ndim) + array.shape)[axis] != channels:
        return None
    return np.broadcast_to(array.reshape(-1), (channels,))


def scaled(rw: Rewriter, layer: Node, scale: NDArray[np.float64], side: Literal["inputs", "outputs"]) -> Array:
    """A layer's weight after each of its input or output channels is multiplied by a factor, in double precision.

    Weights are (out, in / groups, ...), those of transposed convolutions (in, out / groups, ...): channels along axis 1
    start again in each group.
    """
    weight = rw.constants[layer.inputs[1]].array
    if (side == "outputs") == (rw.op(layer).channels.weight == 0):
        return product(weight.reshape(scale.size, -1), scale.reshape(-1, 1), layer).reshape(weight.shape)
    groups = rw.attr(layer, "groups")
    blocks = weight.reshape(groups, -1, weight.shape[1], math.prod(weight.shape[2:]))
    return product(blocks, scale.reshape(groups, 1, -1, 1), layer).reshape(weight.shape)


def product(array: Array, factors: NDArray[np.float64], node: Node) -> Array:
    """The array times the factors, in double precision, in the array's dtype; `node` is where a result is too large."""
    result = np.empty_like(array)
    with np.errstate(over="ignore"):  # NumPy multiplies and rounds piece by piece: no copy in double precision
        np.multiply(array, factors, out=result, dtype=np.float64, casting="same_kind")
    return _finite(result, node)


def narrowed(array: NDArray[np.float64], dtype: np.dtype[np.generic], node: Node) -> Array:
    """The array in a constant's own dtype; `node` is where a number is too large for it."""
    with np.errstate(over="ignore"):
        return _finite(array.astype(dtype), node)


def _finite(array: Array, node: Node) -> Array:
    if not np.isfinite(array).all():
        raise GraphError(
            f"node {shown(node.name)}: a constant folded into it has numbers beyond {array.dtype}; "
            f"check the scales, and the variances of batch norms, around it in the model file"
        )
    array.flags.writeable = False  # so that Constant need not copy it
    return array
