"""Layers with an output axis of channels: which axis it is, and how a constant per channel reaches their weights."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from qbench.ir.graph import Node
from qbench.ir.op import Array
from qbench.ir.types import Dim
from qbench.passes.rewrite import Rewriter

__all__ = ["LAYERS", "channel_axis", "per_channel", "scaled"]

LAYERS = ("nn.conv2d", "nn.conv2d_transpose", "nn.dense")
"""Ops with a weight whose products are summed, one sum for each output channel."""


def channel_axis(rw: Rewriter, layer: Node) -> int:
    """The axis of a layer's output that has its channels: the last one of dense, 1 of convolutions."""
    return rw.types[layer.output].rank - 1 if layer.op == "nn.dense" else 1


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
    axis = int((side == "inputs") != (layer.op == "nn.conv2d_transpose"))
    groups: int = rw.attr(layer, "groups") if axis == 1 and layer.op != "nn.dense" else 1
    blocks = weight.astype(np.float64).reshape(groups, -1, *weight.shape[1:])
    ones = (1,) * (weight.ndim - 2)
    factors = scale.reshape(groups, 1, -1, *ones) if axis == 1 else scale.reshape(1, -1, 1, *ones)
    return (blocks * factors).reshape(weight.shape).astype(weight.dtype)
