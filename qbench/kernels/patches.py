"""What windows see of an image, as whole numbers of 15 bits."""

from typing import Any

import numpy as np

from qbench.kernels.compiling import jitted

LARGEST = 2**15 - 1


@jitted
def take_whole(
    data: Any, corners: Any, size: Any, dilation: Any, factor: float, first: int, rows: Any, sums: Any
) -> None:
    """Round what windows see, times a factor, to whole numbers; zeros beyond the data.

    Parameters
    ----------
    data
        float32[samples, channels, height, width], of any strides.
    corners
        int64[places, 2]: row and column of each window's first element, perhaps beyond the data.
    size, dilation
        Of a window, in rows and columns.
    factor
        A power of two.
    first
        Number of the first group that is taken.
    rows
        float64[groups, samples * places, elements of a window in all channels of a group]: is set.
    sums
        float64[groups, elements]: grows by the sums of the rows.
    """
    height, width = data.shape[2:]
    channels = rows.shape[2] // (size[0] * size[1])
    for sample in range(data.shape[0]):
        for group in range(rows.shape[0]):
            image = data[sample, (first + group) * channels :]
            total = sums[group]
            for place in range(corners.shape[0]):
                row, at = rows[group, sample * corners.shape[0] + place], 0
                for c in range(channels):
                    for i in range(size[0]):
                        y = corners[place, 0] + i * dilation[0]
                        for j in range(size[1]):
                            x = corners[place, 1] + j * dilation[1]
                            whole = 0.0
                            if 0 <= y < height and 0 <= x < width:
                                whole = np.rint(np.float64(image[c, y, x]) * factor)
                                whole = min(max(whole, np.float64(-LARGEST)), np.float64(LARGEST))
                            row[at] = whole
                            total[at] += whole
                            at += 1
