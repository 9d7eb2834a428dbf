"""KL (entropy) calibration: the threshold whose quantized histogram tells the data's apart least."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from qbench.calibration.curve import ThresholdCurve, best_of
from qbench.calibration.divergence import Floats, Ints, kl_divergences
from qbench.calibration.edges import relaid, sides
from qbench.calibration.grid import Grid
from qbench.calibration.statistics import Statistics

__all__ = ["Kl"]

_BINS = 8001  # over both sides, an odd number: the middle bin lies around zero


@dataclass(frozen=True, slots=True)
class Kl:
    """The published algorithm (S. Migacz, 8-bit inference with TensorRT, 2017) as its implementations have it.

    For each number of bins, the data beyond them is folded into the outermost (p), the bins are merged into `levels`
    groups, and each group's data is spread over those of its bins that are not empty (q). The threshold with the least
    KL divergence of p from q wins. The defaults are those of MXNet and TVM (in Python).

    Parameters
    ----------
    levels
        Number of groups. None: what suits the dtype. Of two sides ``2^bits - 1``, or twice that plus one where no data
        is negative and the grid is asymmetric; of one side ``2^(bits - 1)``, or twice that.
    one_sided
        False: the histogram is laid over 8001 bins of both signs; groups have one size, but the last takes the rest; q
        is spread over the bins that p fills. True, as in NVIDIA's pytorch-quantization: the bins of the statistics,
        joined by absolute value; groups differ in size by at most one bin; q is spread over the bins that are filled
        before folding.
    zero_bin
        The bin at zero: kept, given its neighbour's count (NVIDIA), or emptied (TensorRT).
    folding
        Whether data beyond the threshold is folded into p's outermost bins; it is left out otherwise.
    smoothing
        What each empty bin is given at the cost of the others, in counts.
    tie
        Which of several equal minima wins.
    """

    levels: int | None = None
    one_sided: bool = False
    zero_bin: Literal["keep", "copy_next", "drop"] = "keep"
    folding: bool = True
    smoothing: float = 1e-4
    tie: Literal["first", "last"] = "first"

    def curve(self, statistics: Statistics, grid: Grid, tensor: str = "") -> ThresholdCurve:
        """See `Calibrator`. Where the histogram has fewer bins than there are levels, nothing is clipped."""
        levels = self.levels or self._levels_of(grid, positive=statistics.min >= 0)
        counts, candidates, starts, stops = self._slices(statistics, levels)
        if not len(starts) or not statistics.abs_max:
            largest = np.array([statistics.abs_max])
            return ThresholdCurve("kl", "KL divergence", largest, np.zeros(1), statistics.abs_max)
        grouping, support = ("even", "sliced") if self.one_sided else ("floor", "p")
        divergence = kl_divergences(counts, starts, stops, levels, grouping, support, self.smoothing, self.folding)
        best = best_of(candidates, divergence, self.tie) if np.isfinite(divergence).any() else statistics.abs_max
        return ThresholdCurve("kl", "KL divergence", candidates, divergence, best)

    def _levels_of(self, grid: Grid, positive: bool) -> int:
        whole_type = positive and not grid.symmetric
        if self.one_sided:
            return grid.levels if whole_type else grid.levels // 2
        return 2 * (grid.levels - 1) + 1 if whole_type else grid.levels - 1

    def _slices(self, statistics: Statistics, levels: int) -> tuple[Ints, Floats, Ints, Ints]:
        """Histogram, thresholds, and the first bin and the one after the last that each threshold keeps."""
        if self.one_sided:
            data = sides(statistics)
            kept = np.arange(levels, len(data.edges) + 1)
            return self._without_peak(data.both, 0), data.edges[kept - 1], np.zeros_like(kept), kept
        middle = _BINS // 2
        kept = np.arange(levels // 2, middle + 1)  # on each side of the middle one
        edges = statistics.abs_max * ((2 * kept + 1) / _BINS)
        return self._without_peak(relaid(statistics, _BINS), middle), edges, middle - kept, middle + kept + 1

    def _without_peak(self, counts: Ints, zero: int) -> Ints:
        if self.zero_bin != "keep" and zero + 1 < len(counts):
            counts[zero] = counts[zero + 1] if self.zero_bin == "copy_next" else 0
        return counts
