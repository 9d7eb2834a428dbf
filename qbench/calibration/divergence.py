"""KL divergence of a clipped histogram from its quantized form, for many clippings at once.

Within a group, q is constant, so that sums of p log q need only the sums of the groups; those are differences of
running sums. The one part that has to be computed bin by bin is the sum of p log p.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Grouping = Literal["floor", "even"]
Support = Literal["p", "sliced"]


def kl_divergences(
    counts: Ints,
    starts: Ints,
    stops: Ints,
    levels: int,
    grouping: Grouping,
    support: Support,
    smoothing: float,
    folding: bool,
) -> Floats:
    """KL divergence of p from q for each slice ``counts[start:stop]``.

    p is the slice, with what lies beyond it added to its outermost bins where `folding`. q is the slice merged into
    `levels` groups, each spread evenly over its bins that are not empty (in p, or in the slice: `support`). Smoothing
    takes counts from the bins that are not empty and gives each empty one that many.

    Parameters
    ----------
    counts
        int64[bins].
    starts, stops
        int64[n]: at least `levels` bins from one to the other.
    levels, grouping, support, smoothing, folding
        See `Kl`.

    Returns
    -------
    ndarray
        float64[n], infinite where q is zero and p is not.
    """
    total, filled = _running(counts), _running(counts != 0)
    bounds = _group_bounds(starts, stops, levels, grouping)
    sums, sizes = np.diff(total[bounds]).astype(np.float64), np.diff(filled[bounds]).astype(np.float64)
    beyond = np.stack([total[starts], total[-1] - total[stops]], axis=1) * folding
    edge = np.stack([counts[starts], counts[stops - 1]], axis=1)  # of the slice: its first and its last bin
    fresh = (edge == 0) & (beyond != 0)  # bins of p that hold nothing but what was folded into them
    if support == "p":
        sizes[:, 0] += fresh[:, 0]
        sizes[:, -1] += fresh[:, 1]

    length = stops - starts
    p_filled = filled[stops] - filled[starts] + fresh.sum(axis=1)
    q_filled = (sizes * (sums > 0)).sum(axis=1)
    p_loss = smoothing * (length - p_filled) / np.maximum(p_filled, 1)  # taken from each bin that is not empty
    q_loss = smoothing * (length - q_filled) / np.maximum(q_filled, 1)
    log_q = np.log(np.where(sums > 0, sums / np.maximum(sizes, 1) - q_loss[:, None], 1.0))
    # p by group, without the bins where q is empty
    mass = sums - p_loss[:, None] * np.diff(filled[bounds])
    lost = np.zeros(len(starts))  # p where q is empty
    for side, group in ((0, 0), (1, -1)):
        folded = beyond[:, side] - p_loss * fresh[:, side]
        in_q = (sums[:, group] > 0) & ((support == "p") | ~fresh[:, side])
        mass[:, group] += np.where(in_q, folded, 0.0)
        lost += np.where(in_q, 0.0, folded)
    # bins that are empty in p are so in q, and smoothing gives both the same: they cancel
    p_log_p = _sums_of_p_log_p(counts, starts, stops, p_loss, edge, beyond)
    p_log_q = (mass * log_q).sum(axis=1)
    if smoothing:
        p_log_q += lost * np.log(smoothing)
    else:
        p_log_q[lost > 0] = -np.inf
    p_sum, q_sum = sums.sum(axis=1) + beyond.sum(axis=1), sums.sum(axis=1)
    defined = q_sum > 0  # so is p_sum then
    p_sum, q_sum = np.where(defined, p_sum, 1.0), np.where(defined, q_sum, 1.0)
    divergence = (p_log_p - p_log_q) / p_sum - np.log(p_sum) + np.log(q_sum)
    return np.where(defined, np.maximum(divergence, 0.0), np.inf)


def _running(values: NDArray[np.generic]) -> Ints:
    return np.concatenate([[0], np.cumsum(values, dtype=np.int64)])


def _group_bounds(starts: Ints, stops: Ints, levels: int, grouping: Grouping) -> Ints:
    length, index = (stops - starts)[:, None], np.arange(levels + 1)
    bounds = -(-index * length // levels) if grouping == "even" else index * (length // levels)
    bounds[:, -1] = length[:, 0]
    return starts[:, None] + bounds


def _sums_of_p_log_p(counts: Ints, starts: Ints, stops: Ints, loss: Floats, edge: Ints, beyond: Ints) -> Floats:
    filled = counts[counts != 0].astype(np.float64)
    place = _running(counts != 0)
    sums = np.zeros(len(starts))
    for i, (start, stop, taken) in enumerate(zip(place[starts], place[stops], loss, strict=True)):
        values = filled[start:stop] - taken
        sums[i] = (values * np.log(values)).sum()
    taken = loss[:, None]
    return sums + (_x_log_x(edge + beyond, taken) - _x_log_x(edge, taken)).sum(axis=1)


def _x_log_x(counts: Ints, taken: Floats) -> Floats:
    values = np.where(counts > 0, counts - taken, 1.0)
    return values * np.log(values)
