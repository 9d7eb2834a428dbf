"""What rounding rows of numbers to integer grids costs each of them, on many grids at once."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.kernels.compiling import jitted

Floats = NDArray[np.float64]


def squared_errors(rows: NDArray[np.float32], scales: Floats, lows: Floats, highs: Floats) -> Floats:
    """Sum of ``(x - k s)**2`` over each row, where ``k = clip(round(x / s), low, high)``.

    The numbers of a row are added up one after the other, in double precision. ``x / s`` is x times a rounded
    ``1 / s``: where that makes another integer of it, x lies in the middle and is as far from both.

    Parameters
    ----------
    rows
        [rows, elements]
    scales, lows, highs
        float64[rows, grids]: the grids of each row; the bounds are integers.

    Returns
    -------
    ndarray
        float64[rows, grids].
    """
    errors = np.zeros(scales.shape)
    _add_squared_errors(np.ascontiguousarray(rows), scales, 1 / scales, lows, highs, errors)
    return errors


@jitted
def _add_squared_errors(rows: Any, scales: Any, inverses: Any, lows: Any, highs: Any, errors: Any) -> None:
    for r in range(rows.shape[0]):
        scale, inverse, low, high, error = scales[r], inverses[r], lows[r], highs[r], errors[r]
        for i in range(rows.shape[1]):
            x = np.float64(rows[r, i])
            for j in range(scale.size):  # the grids side by side in vector instructions
                k = min(max(np.rint(x * inverse[j]), low[j]), high[j])
                error[j] += (x - k * scale[j]) * (x - k * scale[j])
