"""KL divergence of a histogram from what an integer grid leaves of it: see `qbench.calibration.cells`."""

from typing import Any

import numpy as np

from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view

_NOTHING = 1e-6  # counts: what rounding gives a bin that only touches a filled one


@makes_kernels
def divergence_kernel() -> Kernel:
    """Sets the divergence of each grid; where there is no data, there is next to nothing to do.

    At `edges` and `counts` lie float64[parts, 2] and float64[parts]: the bins of the histogram that are not empty. At
    `lows`, `highs` and `out` float64[grids], at `bins` float64[2, levels * per_cell]: room for p and q. All else is as
    for :func:`~qbench.calibration.cells.cell_divergences`.
    """

    def run(args: Any, bases: Any, thread: int, threads: int) -> None:
        levels, per_cell, smoothing, folding = args.levels, args.per_cell, args.smoothing, args.folding
        edges = view(bases, args.edges, 2 * args.parts, np.float64)
        counts = view(bases, args.counts, args.parts, np.float64)
        lows, highs = view(bases, args.lows, args.grids, np.float64), view(bases, args.highs, args.grids, np.float64)
        out, size = view(bases, args.out, args.grids, np.float64), levels * per_cell
        bins = view(bases, args.bins, 2 * size, np.float64)
        p, q = bins[:size], bins[size:]
        for grid in range(lows.size):
            step = (highs[grid] - lows[grid]) / (levels - 1)
            start, stop = lows[grid] - step / 2, highs[grid] + step / 2
            width, under, over = (stop - start) / p.size, 0.0, 0.0
            p[:] = 0
            for part in range(counts.size):
                left, right = edges[2 * part], edges[2 * part + 1]
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

    places = dict.fromkeys(("edges", "counts", "lows", "highs", "bins", "out"), "i8")
    sizes = dict.fromkeys(("parts", "grids", "levels", "per_cell", "folding"), "i8")
    return Kernel("cell_divergence", record(**places, **sizes, smoothing="f8"), run)
