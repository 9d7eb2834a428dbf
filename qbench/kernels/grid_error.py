"""What rounding rows of numbers to integer grids costs each of them, on many grids at once."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view

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
    grids = {"scales": scales, "inverses": 1 / scales, "lows": lows, "highs": highs}
    grids = {name: np.ascontiguousarray(grid, np.float64) for name, grid in grids.items()}
    (count, elements), each = rows.shape, scales.shape[1]
    grid_error_kernel()(
        x=np.ascontiguousarray(rows, np.float32), rows=count, elements=elements, grids=each, errors=errors, **grids
    )
    return errors


@makes_kernels
def grid_error_kernel() -> Kernel:
    """Adds the squared errors of float32[rows, elements] at x to float64[rows, grids] at `errors`.

    At `scales`, `inverses`, `lows` and `highs` there is float64[rows, grids] as well.
    """

    def run(args: Any, bases: Any, thread: int, threads: int) -> None:
        elements, grids = args.elements, args.grids
        rows, size = view(bases, args.x, args.rows * elements, np.float32), args.rows * grids
        scales, inverses = view(bases, args.scales, size, np.float64), view(bases, args.inverses, size, np.float64)
        lows, highs = view(bases, args.lows, size, np.float64), view(bases, args.highs, size, np.float64)
        errors = view(bases, args.errors, size, np.float64)
        for r in range(args.rows):
            here = slice(r * grids, (r + 1) * grids)
            scale, inverse, low, high, error = scales[here], inverses[here], lows[here], highs[here], errors[here]
            for i in range(elements):
                x = np.float64(rows[r * elements + i])
                for j in range(grids):  # side by side in vector instructions
                    k = min(max(np.rint(x * inverse[j]), low[j]), high[j])
                    error[j] += (x - k * scale[j]) * (x - k * scale[j])

    places = dict.fromkeys(("x", "scales", "inverses", "lows", "highs", "errors"), "i8")
    return Kernel("grid_error", record(rows="i8", elements="i8", grids="i8", **places), run)
