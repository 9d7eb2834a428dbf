"""Tables of where windows read, made once for layers of equal geometry."""

from collections.abc import Sequence
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
