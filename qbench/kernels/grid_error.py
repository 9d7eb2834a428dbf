"""What rounding to integer grids costs rows of numbers, or a density: on many grids at once."""

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


def integrated_errors(edges: Floats, jumps: Floats, scales: Floats, lows: Floats, highs: Floats) -> Floats:
    """The integral of ``(x - k s)**2``, where ``k = clip(round(x / s), low, high)``, over a density made of steps.

    It is the sum of ``-jump * (k s**3 / 12 + (x - k s)**3 / 3)`` over its edges x, which are added up one after the
    other, in double precision: what is integrated has no jumps where k has.

    Parameters
    ----------
    edges, jumps
        float64[edges]: where the density jumps, and by how much.
    scales, lows, highs
        float64[grids]; the bounds are integers.

    Returns
    -------
    ndarray
        float64[grids].
    """
    errors = np.zeros(scales.shape)
    given = {"edges": edges, "jumps": jumps, "scales": scales, "inverses": 1 / scales, "lows": lows, "highs": highs}
    given = {name: np.ascontiguousarray(numbers, np.float64) for name, numbers in given.items()}
    integrated_error_kernel()(count=edges.size, grids=scales.size, errors=errors, **given)
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


@makes_kernels
def integrated_error_kernel() -> Kernel:
    """Takes what each of `count` edges says from float64[grids] at `errors`: float64[count] at `edges` and `jumps`.

    At `scales`, `inverses`, `lows` and `highs` there is float64[grids].
    """

    def run(args: Any, bases: Any, thread: int, threads: int) -> None:
        count, grids = args.count, args.grids
        edges, jumps = view(bases, args.edges, count, np.float64), view(bases, args.jumps, count, np.float64)
        scale, inverse = view(bases, args.scales, grids, np.float64), view(bases, args.inverses, grids, np.float64)
        low, high = view(bases, args.lows, grids, np.float64), view(bases, args.highs, grids, np.float64)
        error = view(bases, args.errors, grids, np.float64)
        for i in range(count):
            x, jump = edges[i], jumps[i]
            for j in range(grids):  # side by side in vector instructions
                s = scale[j]
                k = min(max(np.rint(x * inverse[j]), low[j]), high[j])
                rest = x - k * s
                error[j] -= jump * (k * (s * s * s / 12) + rest * rest * rest / 3)

    places = dict.fromkeys(("edges", "jumps", "scales", "inverses", "lows", "highs", "errors"), "i8")
    return Kernel("integrated_error", record(count="i8", grids="i8", **places), run)
