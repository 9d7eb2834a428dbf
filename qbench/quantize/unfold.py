"""The inputs that a sum of products multiplies its weight with, as rows of a matrix for each group."""

from collections.abc import Sequence

import numpy as np

from qbench.ir.graph import Node
from qbench.ir.op import Array, bind
from qbench.ops.numeric.windows import Window
from qbench.ops.products import Convolution, DenseProduct


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


def places(node: Node, data: Array, shape: Sequence[int]) -> int:
    """How many inputs there are in the data: for each sample and place of a window one; the shape is its weight's."""
    if isinstance(bind(node), DenseProduct):
        return data.size // max(1, data.shape[-1])
    rows, columns = _window(node, shape).counts((data.shape[2], data.shape[3]))
    return len(data) * rows * columns


def unfolded(node: Node, data: Array, shape: Sequence[int], every: int, first: int) -> Array:
    """float32[groups, inputs, depth] of every so many places of each sample, from the `first` on.

    Padding counts as zeros, as in the layer itself.
    """
    op = bind(node)
    if isinstance(op, DenseProduct):
        return data.reshape(1, -1, data.shape[-1])[:, first::every]
    window = _window(node, shape)
    (top, left, *_), strides, size = window.padding, window.strides, window.size
    samples, channels = data.shape[:2]
    groups = int(getattr(op, "groups", 1))
    rows, columns = window.counts((data.shape[2], data.shape[3]))
    taken = np.arange(first, rows * columns, every)
    y, x = taken // columns * strides[0], taken % columns * strides[1]
    if size == (1, 1) and not any(window.padding):  # data may lie in any order of axes: a reshape would copy all of it
        points = data[:, :, y, x].reshape(samples, groups, channels // groups, len(taken))
        return points.transpose(1, 0, 3, 2).reshape(groups, -1, channels // groups)
    y = y[:, None, None] + np.arange(size[0])[:, None] * window.dilation[0] - top
    x = x[:, None, None] + np.arange(size[1]) * window.dilation[1] - left
    height, width = data.shape[2:]
    taps = data[:, :, y.clip(0, height - 1), x.clip(0, width - 1)]  # samples, channels, places, kh, kw
    if any(window.padding):
        taps *= (y >= 0) & (y < height) & (x >= 0) & (x < width)
    split = taps.reshape(samples, groups, channels // groups, len(taken), *size)
    return split.transpose(1, 0, 3, 2, 4, 5).reshape(groups, samples * len(taken), -1)


def placed(node: Node, made: Array, every: int, first: int) -> Array:
    """float32[groups, places, outputs of a group] of something like the layer's output, at the places of `unfolded`."""
    op = bind(node)
    if isinstance(op, DenseProduct):
        return made.reshape(1, -1, made.shape[-1])[:, first::every]
    samples, channels, groups = *made.shape[:2], int(getattr(op, "groups", 1))
    taken = made.reshape(samples, groups, channels // groups, -1)[:, :, :, first::every]
    return taken.transpose(1, 0, 3, 2).reshape(groups, -1, channels // groups)


def _window(node: Node, shape: Sequence[int]) -> Window:
    op = bind(node)
    return Window(
        (shape[2], shape[3]),
        getattr(op, "strides", (1, 1)),
        getattr(op, "padding", (0, 0, 0, 0)),
        getattr(op, "dilation", (1, 1)),
    )
