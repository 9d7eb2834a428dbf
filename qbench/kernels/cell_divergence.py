"""KL divergence of a histogram from what an integer grid leaves of it: see `qbench.calibration.cells`."""

from typing import Any

import numpy as np

from qbench.kernels.compiling import jitted

_NOTHING = 1e-6  # counts: what rounding gives a bin that only touches a filled one


@jitted
def put_divergences(
    edges: Any,
    counts: Any,
    lows: Any,
    highs: Any,
    levels: int,
    per_cell: int,
    smoothing: float,
    folding: bool,
    bins: Any,
    out: Any,
) -> None:
    """Set the divergence of each grid; where there is no data, there is next to nothing to do.

    Parameters
    ----------
    edges, counts
        float64[parts, 2] and float64[parts]: the bins of the histogram that are not empty.
    lows, highs, levels, smoothing, folding
        As for :func:`~qbench.calibration.cells.cell_divergences`.
    per_cell
        Bins of a cell.
    bins
        float64[2, levels * per_cell]: room for p and q.
    out
        float64[grids].
    """
    p, q = bins[0], bins[1]
    for grid in range(lows.size):
        step = (highs[grid] - lows[grid]) / (levels - 1)
        start, stop = lows[grid] - step / 2, highs[grid] + step / 2
        width, under, over = (stop - start) / p.size, 0.0, 0.0
        p[:] = 0
        for part in range(counts.size):
            left, right = edges[part, 0], edges[part, 1]
            density = counts[part] / (right - left)
            under += density * max(min(right, start) - left, 0.0)
            over += density * max(right - max(left, stop), 0.0)
            k = max(int((left - start) / width), 0)
            while k < p.size and start + k * width < right:
                overlap = min(right, start + (k + 1) * width) - max(left, start + k * width)
                p[k] += density * max(overlap, 0.0)
                k += 1
        total_p = total_q = 0.0
        for cell in range(levels):
            share, filled = 0.0, 0
            for k in range(cell * per_cell, (cell + 1) * per_cell):
                if p[k] < _NOTHING:
                    p[k] = 0
                share += p[k]
                if folding and k == 0:
                    p[k] += under
                if folding and k == p.size - 1:
                    p[k] += over
                filled += p[k] > 0
            share = share / max(filled, 1)
            for k in range(cell * per_cell, (cell + 1) * per_cell):
                q[k] = 0.0 if p[k] == 0 else share if share > 0 else smoothing
                total_p += p[k]
                total_q += q[k]
        divergence = 0.0
        for k in range(p.size):
            if p[k] > 0:
                divergence += np.inf if q[k] == 0 else p[k] / total_p * np.log(p[k] / total_p * (total_q / q[k]))
        out[grid] = max(divergence, 0.0)
