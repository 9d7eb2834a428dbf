"""Constants and tables in the order in which tiles read them; plain NumPy, done once when a network is planned."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.kernels.epilogue import EpilogueName
from qbench.kernels.isa import Element, isa_of
from qbench.kernels.levels import Level
from qbench.kernels.rescale import RESCALES
from qbench.kernels.tile import Tile


def packing(level: Level, x: Element = "u1") -> tuple[int, int]:
    """`lanes` and `group` of `pack_weights`, as the integer kernels of a level want them."""
    if level == Level.PORTABLE:
        return 16, 1
    isa = isa_of(level, x)
    return isa.lanes, isa.group


def pack_weights(weights: NDArray[Any], tile: Tile, lanes: int, group: int) -> NDArray[Any]:
    """Weights as tiles read them, filled up with zeros.

    Parameters
    ----------
    weights
        ``[groups, channels, taps, depth]``: output channels of each group of a convolution.
    tile, lanes, group
        The tile; accumulators in a vector; input elements of a step.

    Returns
    -------
    Contiguous ``[groups, panels, taps, steps, vectors, lanes, group]``, a panel being the tile's channels.
    """
    groups, channels, taps, depth = weights.shape
    width = tile.vectors * lanes
    filled = np.zeros((groups, _up(channels, width), taps, _up(depth, group)), weights.dtype)
    filled[:, :channels, :, :depth] = weights
    parts = filled.reshape(groups, -1, tile.vectors, lanes, taps, filled.shape[-1] // group, group)
    return np.ascontiguousarray(parts.transpose(0, 1, 4, 5, 2, 3, 6))


def pack_each(weights: NDArray[np.int16], tile: Tile, level: Level) -> NDArray[np.int16]:
    """Weights of a window for each channel, filled up with zeros.

    Parameters
    ----------
    weights
        ``[channels, taps]``; the number of taps is even.
    tile, level
        Of the kernel.

    Returns
    -------
    Contiguous ``[panels, pairs of taps, vectors, lanes, 2]``, the channels in the order in which `tile` weaves them: of
    each eight that lie in a vector and the next one, four and four. Without vectors, ``[panels, taps, channels]``.
    """
    lanes, _ = packing(level, "i2")
    width = tile.vectors * lanes
    filled = np.pad(weights, ((0, -len(weights) % width), (0, 0))).reshape(-1, width, weights.shape[1])
    if level == Level.PORTABLE:
        return np.ascontiguousarray(filled.swapaxes(1, 2))
    shape = -1, tile.vectors // 2, lanes // 4, 2, 4, weights.shape[1] // 2, 2
    parts = filled.reshape(shape).transpose(0, 5, 1, 3, 2, 4, 6)
    return np.ascontiguousarray(parts.reshape(len(filled), -1, tile.vectors, lanes, 2))


def pack_channels(values: NDArray[Any], groups: int, tile: Tile, lanes: int) -> NDArray[Any]:
    """One number per output channel, filled up with zeros to the panels of `pack_weights`: flat."""
    by_group = values.reshape(groups, -1)
    channels = by_group.shape[1]
    filled = np.zeros((groups, _up(channels, tile.vectors * lanes)), values.dtype)  # np.pad takes 20 times as long
    filled[:, :channels] = by_group
    return filled.reshape(-1)


def pack_scales(
    kind: EpilogueName,
    numbers: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32], int] | None,
    groups: int,
    tile: Tile,
    lanes: int,
    reals: NDArray[np.float32] | None = None,
) -> NDArray[np.int32]:
    """What vector code of an epilogue reads: ``[vectors of all panels, constants, lanes]``; empty for the others.

    Parameters
    ----------
    kind
        The epilogue.
    numbers
        Mantissa, shift and multiplier of each channel, and the zero point of results that have it added; None where
        sums are not rescaled.
    groups, tile, lanes
        As for `pack_channels`.
    reals
        What integers are multiplied by where results are real numbers: the last constant.
    """
    constants = [] if kind not in RESCALES or numbers is None else [*RESCALES[kind].pack(*numbers)]
    constants += [] if reals is None else [reals]
    if not constants:
        return np.zeros(0, np.int32)
    bits = [values if values.dtype == np.float32 else values.astype(np.int32) for values in constants]
    packed = [pack_channels(values.view(np.int32), groups, tile, lanes).reshape(-1, lanes) for values in bits]
    return np.ascontiguousarray(np.stack(packed, axis=1))


def offsets(
    *,
    images: int,
    size: tuple[int, int],
    output: tuple[int, int],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    padding: tuple[int, int],
    dilation: tuple[int, int],
    bytes_apart: tuple[int, int, int],
    rows: int,
) -> NDArray[np.int32]:
    """Where each output pixel's taps start, in bytes from the input's start; -1 for padding.

    Parameters
    ----------
    images, size, output
        Images in the batch; height and width of the input and of the output.
    kernel, strides, padding, dilation
        Of the window, (vertical, horizontal); padding is that above and to the left.
    bytes_apart
        Bytes from one image, row and pixel of the input to the next.
    rows
        Rows of the tile.

    Returns
    -------
    int32 ``[blocks, taps, rows]``; the last block repeats the last pixel.

    Raises
    ------
    OverflowError
        The input is larger than 2 GiB.
    """
    steps = [np.arange(n) for n in (images, *output, *kernel)]
    n, oy, ox, ky, kx = np.meshgrid(*steps, indexing="ij", sparse=True)
    y = oy * strides[0] + ky * dilation[0] - padding[0]
    x = ox * strides[1] + kx * dilation[1] - padding[1]
    inside = (y >= 0) & (y < size[0]) & (x >= 0) & (x < size[1])
    image, row, pixel = bytes_apart
    places = np.where(inside, n * image + y * row + x * pixel, -1).reshape(-1, kernel[0] * kernel[1])
    if places.size and places.max() >= 2**31:
        raise OverflowError(f"input of {places.max()} bytes: offsets have 31 bits")
    pixels = np.minimum(np.arange(_up(len(places), rows)), len(places) - 1)
    return np.ascontiguousarray(places[pixels].reshape(-1, rows, places.shape[1]).transpose(0, 2, 1), np.int32)


def _up(count: int, step: int) -> int:
    return -(-count // step) * step
