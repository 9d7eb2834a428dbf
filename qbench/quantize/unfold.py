"""The inputs that a sum of products multiplies its weight with, as rows of a matrix for each group."""

from __future__ import annotations

import numpy as np

from qbench.ir.graph import Node
from qbench.ir.op import Array, bind
from qbench.ops.numeric.windows import Window
from qbench.ops.products import Convolution, DenseProduct

__all__ = ["can_unfold", "folded", "unfolded", "unfolded_weight"]


def can_unfold(node: Node) -> bool:
    """Whether the node multiplies data with a weight of its own: a convolution or a dense layer."""
    return isinstance(bind(node), (Convolution, DenseProduct))


def unfolded_weight(node: Node, weight: Array) -> Array:
    """float64[groups, outputs of a group, depth]."""
    groups = getattr(bind(node), "groups", 1)
    return weight.reshape(groups, len(weight) // groups, -1).astype(np.float64)


def folded(made: Array, like: Array) -> Array:
    """The weight of such a matrix again."""
    return made.reshape(like.shape)


def unfolded(node: Node, data: Array, weight: Array, every: int, first: int) -> Array:
    """float32[groups, inputs, depth] of every so many places of each sample, from the `first` on.

    Padding counts as zeros, as in the layer itself.
    """
    op = bind(node)
    if isinstance(op, DenseProduct):
        return data.reshape(1, -1, data.shape[-1])[:, first::every]
    size = (int(weight.shape[2]), int(weight.shape[3]))
    padding, strides = getattr(op, "padding", (0, 0, 0, 0)), getattr(op, "strides", (1, 1))
    samples, channels = data.shape[:2]
    groups = int(getattr(op, "groups", 1))
    window = Window(size, strides, padding, getattr(op, "dilation", (1, 1)))
    top, left, bottom, right = padding
    rows, columns = window.counts((data.shape[2], data.shape[3]))
    places = np.arange(first, rows * columns, every)
    y, x = places // columns * strides[0], places % columns * strides[1]
    if size == (1, 1) and not any(padding):  # data may lie in any order of axes: a reshape would copy all of it
        points = data[:, :, y, x].reshape(samples, groups, channels // groups, len(places))
        return points.transpose(1, 0, 3, 2).reshape(groups, -1, channels // groups)
    dy, dx = np.arange(size[0]) * window.dilation[0], np.arange(size[1]) * window.dilation[1]
    padded = np.pad(data, ((0, 0), (0, 0), (top, bottom), (left, right))) if any(padding) else data
    taken = padded[:, :, y[:, None, None] + dy[:, None], x[:, None, None] + dx]  # samples, channels, places, kh, kw
    split = taken.reshape(samples, groups, channels // groups, len(places), *size)
    return split.transpose(1, 0, 3, 2, 4, 5).reshape(groups, samples * len(places), -1)
