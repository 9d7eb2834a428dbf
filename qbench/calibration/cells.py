"""KL divergence of data from what an integer grid leaves of it, where each threshold has a histogram of its own.

Every integer stands for a cell: the values that are rounded to it. With as many bins in each cell as in every other,
whatever the threshold, the curve over thresholds shows the data and not how bins happen to fall into groups, and a
value that is very frequent costs the same under every threshold.
"""

import numpy as np
from numpy.typing import NDArray

from qbench.kernels.cell_divergence import divergence_kernel

Floats = NDArray[np.float64]

BINS_PER_CELL = 3
"""An odd number: what the integer itself stands for, a 6.0 after relu6, lies within a bin and not between two."""


def cell_divergences(
    edges: Floats,
    counts: NDArray[np.int64],
    lows: Floats,
    highs: Floats,
    levels: int,
    smoothing: float,
    folding: bool,
) -> Floats:
    """KL divergence of p from q for each integer grid with steps of one size from ``lows[i]`` to ``highs[i]``.

    p is the data in `BINS_PER_CELL` bins per cell, with what lies beyond the cells added to its outermost bins where
    `folding`. q is the data within the cells, of each cell spread evenly over its bins that are not empty in p.

    Parameters
    ----------
    edges, counts
        float64[bins + 1] and int64[bins]: a histogram; the data of a bin counts as spread evenly over it.
    lows, highs
        float64[n]: what the least and the greatest integer stand for; some data is between them.
    levels
        Number of integers, at least 2.
    smoothing
        What q has, in counts, where it would be zero and p is not.
    folding
        See above.

    Returns
    -------
    ndarray
        float64[n], infinite where q is zero and p is not.
    """
    filled = np.flatnonzero(counts)
    parts, sizes = (
        np.stack([edges[filled], edges[filled + 1]], axis=1, dtype=np.float64),
        counts[filled].astype(np.float64),
    )
    bins, out = np.empty((2, levels * BINS_PER_CELL)), np.empty(len(lows))
    lows, highs = (np.ascontiguousarray(bounds, np.float64) for bounds in (lows, highs))
    histogram = {"edges": parts, "counts": sizes, "parts": len(sizes)}
    grids = {"lows": lows, "highs": highs, "grids": len(lows)}
    how = {"levels": levels, "per_cell": BINS_PER_CELL, "smoothing": smoothing, "folding": folding}
    divergence_kernel()(**histogram, **grids, **how, bins=bins, out=out)
    return out
