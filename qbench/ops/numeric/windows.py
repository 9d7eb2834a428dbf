"""Sliding windows over the last two axes of an array: sizes, padding, sums and maxima.

Sums and maxima over a window are separable: rows are combined, then columns, in kh + kw steps in place of kh * kw. It
works on any dtype; sums of integers held in float64 are exact.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qbench.ir.op import Array

Pair = tuple[int, int]
"""Something for rows and for columns."""
Padding = tuple[int, int, int, int]
"""Top, left, bottom, right."""


@dataclass(frozen=True)
class Window:
    """A window that slides over an image: its size, and how it moves.

    Parameters
    ----------
    size, strides, dilation
        For rows and columns.
    padding
        Top, left, bottom, right.
    ceil_mode
        Whether a last window may stick out at the end. It must still start within the data or the padding before it
        (the rule of PyTorch and onnxruntime).
    """

    size: Pair
    strides: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)
    dilation: Pair = (1, 1)
    ceil_mode: bool = False

    @property
    def reach(self) -> Pair:
        """Rows and columns from the first element of a window to its last."""
        return (self.size[0] - 1) * self.dilation[0] + 1, (self.size[1] - 1) * self.dilation[1] + 1

    def counts(self, shape: Pair) -> Pair:
        """How many windows fit into an image, down and across; below 1 where not even one does."""
        return self._count(shape, 0), self._count(shape, 1)

    def _count(self, shape: Pair, axis: int) -> int:
        start = shape[axis] + self.padding[axis]
        free, stride = start + self.padding[axis + 2] - self.reach[axis], self.strides[axis]
        if not self.ceil_mode:
            return max(0, free // stride + 1)
        last = max(-1, -(-free // stride))  # a window may stick out where not even one fits
        return last if last * stride >= start else last + 1

    def border(self, shape: Pair) -> Padding:
        """The padding, made larger at the end where ceil mode's last windows stick out."""
        (rows, columns), (top, left, bottom, right) = self.counts(shape), self.padding
        bottom = max(bottom, (rows - 1) * self.strides[0] + self.reach[0] - shape[0] - top)
        right = max(right, (columns - 1) * self.strides[1] + self.reach[1] - shape[1] - left)
        return top, left, bottom, right

    def rounded_down(self, shape: Pair) -> "Window":
        """The same windows over an image of this shape without ceil mode: what they reach beyond is padding."""
        return replace(self, padding=self.border(shape), ceil_mode=False)

    def taps(self, axis: int, count: int) -> list[slice]:
        """For each place in the window, the slice of the padded axis that holds that place's element of all windows."""
        stride, dilation = self.strides[axis], self.dilation[axis]
        starts = (place * dilation for place in range(self.size[axis]))
        return [slice(start, start + (count - 1) * stride + 1, stride) for start in starts]


def pad2d(data: Array, padding: Padding, value: float = 0) -> Array:
    """The data with a border of `value` around its last two axes."""
    top, left, bottom, right = padding
    if not any(padding):
        return data
    height, width = data.shape[-2:]
    padded = np.full((*data.shape[:-2], height + top + bottom, width + left + right), value, data.dtype)
    padded[..., top : top + height, left : left + width] = data
    return padded


def pool_max(data: Array, window: Window) -> Array:
    """The maximum of each window over data of shape (..., height, width), any dtype; padding never wins."""
    lowest = -np.inf if np.issubdtype(data.dtype, np.floating) else np.iinfo(data.dtype).min
    return _slide(np.maximum, data, window, lowest)


def pool_sum(data: Array, window: Window) -> Array:
    """The sum of each window over data of shape (..., height, width), in the data's dtype; padding counts as 0."""
    return _slide(np.add, data, window, 0)


def pool_counts(shape: Pair, window: Window, count_include_pad: bool) -> Array:
    """How many elements each window of an average pool counts: int64 (out_height, out_width), at least 1.

    Padding counts where `count_include_pad` says so; what ceil mode adds beyond it never does.
    """
    ones = np.ones(shape, np.int64)
    if count_include_pad:
        border = window.border(shape)
        beyond = (0, 0, border[2] - window.padding[2], border[3] - window.padding[3])
        ones = pad2d(pad2d(ones, window.padding, 1), beyond)
        window = Window(window.size, window.strides, dilation=window.dilation)
    return np.maximum(pool_sum(ones, window), 1)


def _along(data: Array, axis: int, cut: slice) -> Array:
    return data[..., cut, :] if axis == 0 else data[..., cut]


def _slide(combine: Callable[..., Any], data: Array, window: Window, fill: float) -> Array:
    shape = (data.shape[-2], data.shape[-1])
    counts = window.counts(shape)
    data = pad2d(data, window.border(shape), fill)
    for axis in (0, 1):
        first, *others = (_along(data, axis, tap) for tap in window.taps(axis, counts[axis]))
        data = first.copy()
        for other in others:
            combine(data, other, out=data)
    return data
