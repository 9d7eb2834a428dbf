"""KL divergence of data from what an integer grid leaves of it, where each threshold has a histogram of its own.

Every integer stands for a cell: the values that are rounded to it. With as many bins in each cell as in every other,
whatever the threshold, the curve over thresholds shows the data and not how bins happen to fall into groups, and a
value that is very frequent costs the same under every threshold.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BINS_PER_CELL = 3
"""An odd number: what the integer itself stands for, a 6.0 after relu6, lies within a bin and not between two."""

_NOTHING = 1e-6  # counts: what rounding gives a bin that only touches a filled one


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
    below = np.concatenate([[0], np.cumsum(counts)])
    steps = (highs - lows) / (levels - 1)
    bounds = np.linspace(lows - steps / 2, highs + steps / 2, levels * BINS_PER_CELL + 1, axis=1)
    reached = np.interp(bounds, edges, below)
    data = np.diff(reached, axis=1)
    data[data < _NOTHING] = 0
    p = data.copy()
    if folding:
        p[:, 0] += reached[:, 0]
        p[:, -1] += below[-1] - reached[:, -1]
    shape = (len(lows), levels, BINS_PER_CELL)
    filled = (p > 0).reshape(shape)
    share = data.reshape(shape).sum(axis=2) / np.maximum(filled.sum(axis=2), 1)
    q = (filled * np.maximum(share, smoothing * (share == 0))[:, :, None]).reshape(p.shape)
    p /= p.sum(axis=1, keepdims=True)
    q /= q.sum(axis=1, keepdims=True)
    lost = ((p > 0) & (q == 0)).any(axis=1)
    known = (p > 0) & (q > 0)
    divergence = (p * np.log(np.divide(p, q, out=np.ones_like(p), where=known))).sum(axis=1)
    return np.where(lost, np.inf, np.maximum(divergence, 0.0))
