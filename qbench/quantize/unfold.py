"""The inputs that a sum of products multiplies its weight with, as what windows see."""

from collections.abc import Sequence

import numpy as np

from qbench.calibration.patches import Patches
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


def unfolded(node: Node, data: Array, shape: Sequence[int], every: int, first: int, unit: float) -> Patches:
    """Every so many places of each sample, from the `first` on. Padding counts as zeros, as in the layer itself."""
    op = bind(node)
    if isinstance(op, DenseProduct):
        return _points(data.reshape(-1, data.shape[-1]).T[None], every, first, unit, 1)
    window = _window(node, shape)
    rows, columns = window.counts((data.shape[2], data.shape[3]))
    taken = np.arange(first, rows * columns, every)
    steps = np.stack([taken // columns, taken % columns], axis=1)
    corners = steps * window.strides - window.padding[:2]
    return Patches(data, corners, unit, int(getattr(op, "groups", 1)), window.size, window.dilation)


def placed(node: Node, made: Array, every: int, first: int, unit: float) -> Patches:
    """Something like the layer's output, at the places of `unfolded`: for each group, all of its outputs."""
    op = bind(node)
    if isinstance(op, DenseProduct):
        return _points(made.reshape(-1, made.shape[-1]).T[None], every, first, unit, 1)
    return _points(made.reshape(*made.shape[:2], -1), every, first, unit, int(getattr(op, "groups", 1)))


def _points(data: Array, every: int, first: int, unit: float, groups: int) -> Patches:
    """Of [samples, channels, places]."""
    corners = np.arange(first, int(data.shape[2]), every)[:, None] * np.array([1, 0])
    return Patches(data[..., None], corners, unit, groups)


def _window(node: Node, shape: Sequence[int]) -> Window:
    op = bind(node)
    return Window(
        (shape[2], shape[3]),
        getattr(op, "strides", (1, 1)),
        getattr(op, "padding", (0, 0, 0, 0)),
        getattr(op, "dilation", (1, 1)),
    )
