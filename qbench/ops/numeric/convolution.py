"""Convolution of plain arrays at BLAS speed: float32, or float64 for exact products of integers (below 2^53).

Images are convolved one at a time, so that a result does not depend on the batch it was computed in.
"""

import numpy as np

from qbench.ir.op import Array
from qbench.ops.numeric.windows import Padding, Pair, Window, pad2d

_BLOCK_BYTES = 1 << 17  # depthwise works on as many channels at once as stay in a core's L2 cache


def convolve(
    data: Array,
    weight: Array,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
) -> Array:
    """2-D convolution (cross-correlation, as all networks have it).

    Parameters
    ----------
    data
        Shape (n, channels, height, width). Integers must have had their zero points subtracted: padding is 0.
    weight
        Shape (out, channels / groups, kh, kw), of the dtype of `data`.
    strides, dilation
        For rows and columns.
    padding
        Top, left, bottom, right.
    groups
        The channels, and the outputs, are split into this many groups that do not see each other.

    Returns
    -------
    Array
        Shape (n, out, out_height, out_width).
    """
    outputs, per_group, kh, kw = weight.shape
    window = Window((kh, kw), strides, padding, dilation)
    height, width = window.counts((data.shape[2], data.shape[3]))
    data = pad2d(data, padding)
    if per_group == 1 and groups == data.shape[1] > 1:
        return _depthwise(data, weight[:, 0], window, (height, width))
    rows, columns = window.taps(0, height), window.taps(1, width)
    kernel = weight.reshape(groups, outputs // groups, -1)
    result = np.empty((len(data), outputs, height, width), data.dtype)
    for image, out in zip(data, result, strict=True):
        if kh == kw == 1:
            patches = image[:, rows[0], columns[0]]  # a view where strides are 1
        else:
            patches = np.empty((len(image), kh, kw, height, width), data.dtype)
            for i, row in enumerate(rows):
                for j, column in enumerate(columns):
                    patches[:, i, j] = image[:, row, column]
        patches = patches.reshape(groups, -1, height * width)
        np.matmul(kernel, patches, out=out.reshape(groups, outputs // groups, height * width))
    return result


def _depthwise(data: Array, weight: Array, window: Window, counts: Pair) -> Array:
    """Each output channel sees one channel: a sum over taps of shifted, scaled images.

    The padded image is first split into its stride phases (every n-th row and column, one flat array each). Then the
    elements that one tap meets are a contiguous run of a phase, and all taps' runs have the same length. A run spans
    whole rows of a phase; what it computes beyond the width of the output is left out at the end.
    """
    outputs, kh, kw = weight.shape
    images, channels, height, width = data.shape
    (sh, sw), (dh, dw), (oh, ow) = window.strides, window.dilation, counts
    rows, columns = -(-height // sh), -(-width // sw)
    run = (oh - 1) * columns + ow
    sources = np.arange(outputs, dtype=np.int64) // (outputs // channels)
    result = np.empty((images, outputs, oh, ow), data.dtype)
    block = max(1, _BLOCK_BYTES // (rows * columns * data.itemsize))
    for image, out in zip(data, result, strict=True):
        for first in range(0, outputs, block):
            phases = _phases(image[sources[first : first + block]], (sh, sw), (rows, columns))
            scales = weight[first : first + block, :, :, np.newaxis]
            sums = np.zeros((len(scales), oh * columns), data.dtype)
            products = np.empty((len(scales), run), data.dtype)
            for i, j in np.ndindex(kh, kw):
                (down, row), (across, column) = divmod(i * dh, sh), divmod(j * dw, sw)
                start = down * columns + across
                np.multiply(phases[row, column][:, start : start + run], scales[:, i, j], out=products)
                sums[:, :run] += products
            out[first : first + block] = sums.reshape(-1, oh, columns)[:, :, :ow]
    return result


def _phases(part: Array, strides: Pair, shape: Pair) -> dict[tuple[int, int], Array]:
    """For each first row and column below the strides, the flat images that start there and step by the strides."""
    if strides == (1, 1):
        return {(0, 0): part.reshape(len(part), -1)}
    phases: dict[tuple[int, int], Array] = {}
    for row, column in np.ndindex(*strides):
        phase = np.zeros((len(part), *shape), part.dtype)
        cut = part[:, row :: strides[0], column :: strides[1]]
        phase[:, : cut.shape[1], : cut.shape[2]] = cut
        phases[row, column] = phase.reshape(len(part), -1)
    return phases


def convolve_transposed(
    data: Array,
    weight: Array,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    output_padding: Pair = (0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
) -> Array:
    """The transpose of `convolve`: each input element adds the kernel, scaled, to a window of the output.

    Parameters
    ----------
    data
        Shape (n, channels, height, width).
    weight
        Shape (channels, out / groups, kh, kw).
    padding
        Top, left, bottom, right: what is cut off the result.
    output_padding
        Rows and columns added at the bottom and at the right.

    Returns
    -------
    Array
        Shape (n, out, out_height, out_width).
    """
    images, channels, height, width = data.shape
    _, per_group, kh, kw = weight.shape
    window = Window((kh, kw), strides, dilation=dilation)
    full_height = (height - 1) * strides[0] + window.reach[0] + output_padding[0]
    full_width = (width - 1) * strides[1] + window.reach[1] + output_padding[1]
    result = np.zeros((images, groups * per_group, full_height, full_width), data.dtype)
    kernel = weight.reshape(groups, channels // groups, -1).swapaxes(1, 2)
    rows, columns = window.taps(0, height), window.taps(1, width)
    for image, out in zip(data, result, strict=True):
        products = np.matmul(kernel, image.reshape(groups, channels // groups, -1))
        products = products.reshape(groups * per_group, kh, kw, height, width)
        for i, row in enumerate(rows):
            for j, column in enumerate(columns):
                out[:, row, column] += products[:, i, j]
    top, left, bottom, right = padding
    return result[:, :, top : full_height - bottom, left : full_width - right]
