"""Tables of where windows read, made once for layers of equal geometry."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.kernels.pack import offsets
from qbench.ops.float.conv import Conv2d
from qbench.ops.integer.products import IntegerConv2d
from qbench.runtime.step import Place

_cached = lru_cache(maxsize=256)(offsets)


_FEWEST = 16
"""Channels, where each has several windows: with fewer, vectors would be all but empty."""


def windows_of_each(weight: Sequence[int], channels: int) -> int:
    """How many windows each channel of a depthwise convolution has; 0 where it is none that is done channel by channel.

    Parameters
    ----------
    weight
        The shape of all windows: outputs, channels that each sees, height and width.
    channels
        Of the image.
    """
    outputs, seen = weight[:2]
    if seen != 1 or outputs == 1 or (outputs > channels and channels < _FEWEST):
        return 0
    return outputs // channels


@dataclass(frozen=True)
class Taps:
    """The part of a window that meets the image: what else there is lies in the padding for every output.

    Parameters
    ----------
    rows, columns
        First and last + 1.
    padding
        What is then around the image: top, left, bottom, right.
    """

    rows: tuple[int, int]
    columns: tuple[int, int]
    padding: tuple[int, int, int, int]

    def of(self, weights: NDArray[Any]) -> NDArray[Any]:
        """Those of weights [outputs, channels, height, width]."""
        return weights[:, :, slice(*self.rows), slice(*self.columns)]


def taps_that_meet(
    op: IntegerConv2d | Conv2d, window: Sequence[int], size: Sequence[int], output: Sequence[int]
) -> Taps:
    """Which taps of a convolution's window are needed, for heights and widths of window, image and output.

    Dilated windows stick far out of small images: of the 9 taps of DeepLab's, only the one in the middle may be left.
    """
    spans: list[tuple[int, int]] = []
    before: list[int] = []
    after: list[int] = []
    for axis in (0, 1):
        taps, step, around = window[axis], op.dilation[axis], op.padding[axis]
        farthest = (output[axis] - 1) * op.strides[axis]  # from a tap of the first output to that of the last
        meets = [tap for tap in range(taps) if -farthest <= tap * step - around < size[axis]]
        first, last = (meets[0], meets[-1] + 1) if meets and meets[0] * step <= around else (0, taps)
        spans.append((first, last))
        before.append(around - first * step)
        after.append(max(farthest + (last - first - 1) * step + 1 - before[-1] - size[axis], 0))
    return Taps(spans[0], spans[1], (before[0], before[1], after[0], after[1]))


def offsets_of_rows(count: int, depth: int, rows: int) -> NDArray[np.int32]:
    """Offsets of so many rows of bytes of a depth, each as one tap, for tiles of `rows` rows."""
    image: dict[str, Any] = {"images": 1, "size": (1, count), "output": (1, count), "bytes_apart": (0, 0, depth)}
    return _cached(**image, kernel=(1, 1), strides=(1, 1), padding=(0, 0), dilation=(1, 1), rows=rows)


def input_offsets(
    op: IntegerConv2d | Conv2d,
    x: Place,
    output: tuple[int, int],
    kernel: tuple[int, int],
    rows: int,
    joins_rows: bool,
) -> NDArray[np.int32]:
    """Offsets of each tap of each output pixel, see :func:`qbench.kernels.pack.offsets`.

    Parameters
    ----------
    op
        The convolution.
    x
        Its input, channels-last.
    output, kernel
        Height and width of the output and of the window.
    rows
        Rows of the tile.
    joins_rows
        One tap for each row of the window; offsets then count from the start of the input's border.
    """
    n, height, width, _ = x.shape
    top, left, bottom, right = op.padding
    window: dict[str, Any] = {"size": (height, width), "kernel": kernel, "padding": (top, left)}
    if joins_rows:
        size = height + top + bottom, width + left + right
        window = {"size": size, "kernel": (kernel[0], 1), "padding": (0, 0)}
    image, row, pixel = (stride * x.dtype.itemsize for stride in x.strides[:3])
    return _cached(
        images=n,
        output=output,
        strides=op.strides,
        dilation=op.dilation,
        bytes_apart=(image, row, pixel),
        rows=rows,
        **window,
    )
