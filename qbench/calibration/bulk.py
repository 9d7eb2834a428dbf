"""How much of a tensor 8 bits keep: a few outliers stretch the steps, and most values then fall between them.

The ratio of all signal to the rounding does not show it, since the outliers are most of the signal: 192 among values
around 0.5 keeps 23 dB of a residual stream's energy, and 2 dB of what the layers after it work with.
"""

import math
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from qbench.calibration.statistics import Statistics
from qbench.ir.dtypes import integer_range
from qbench.ir.frozen import FrozenMap
from qbench.ir.memo import Memo
from qbench.ir.qparams import QParams
from qbench.kernels.tally import BINS
from qbench.quant.encodings import Encodings
from qbench.quant.points import Point

UNMEASURED_DB = 20.0
"""What "measured" stands for where nothing was measured: below it, 8 bits spoiled each network that was tried."""

_SHARE = 0.995
"""Of the values that are not zero, the smallest: what lies beyond are outliers."""


def rounds_to_zero(statistics: Statistics, qparams: QParams) -> bool:
    """Whether a per-tensor grid makes zero of values that are none."""
    least = max(statistics.min, -statistics.max)
    if least <= 0:
        seen = _folded(statistics)
        least = int(np.argmax(seen > 0)) * statistics.bin_width if seen.any() else math.inf
    return least < qparams.scales[0] / 2


def bulk_db(statistics: Statistics, qparams: QParams) -> float:
    """Mean square of the bulk of the values over that of rounding to the steps of a per-tensor grid, in dB.

    Measured with the default calibrator: 33 dB and more for each tensor of EfficientNet-Lite0; 25 where YOLOX-nano's
    stem spoils it; -2 to 7 for Whisper's attention probabilities and last feed-forward sum.
    """
    folded = _folded(statistics)
    total = statistics.count - statistics.zeros
    if not total:
        return math.inf
    last = int(np.searchsorted(np.cumsum(folded), _SHARE * total))
    kept, middles = folded[: last + 1], (np.arange(last + 1) + 0.5) * statistics.bin_width
    signal = float((kept * middles**2).sum() / kept.sum())
    return 10 * math.log10(12 * signal / qparams.scales[0] ** 2)


def _folded(statistics: Statistics) -> NDArray[np.int64]:
    """How many values have each magnitude, in bins; zeros are none."""
    counts = statistics.counts
    folded = counts[BINS:] + counts[BINS - 1 :: -1]
    folded[0] -= statistics.zeros
    return folded


def wide_tensors(
    points: Iterable[Point],
    encodings: Encodings,
    statistics: Mapping[str, Statistics],
    least: float,
    chosen: Iterable[str],
    memo: Memo,
) -> FrozenMap[str, str]:
    """The activations of which 8 bits keep less than `least` dB, each with the reason to give for it.

    Parameters
    ----------
    points, encodings, statistics
        Of an annotated graph.
    least
        In dB.
    chosen
        Tensors that the user has decided about: these count as they are.
    memo
        Of earlier calls.
    """
    found: dict[str, str] = {}
    decided = {*chosen}
    for point in points:
        tensor, seen = point.tensor, statistics.get(point.tensor)
        qparams = encodings[tensor].qparams
        low, high = integer_range(qparams.dtype)
        if point.kind == "weight" or seen is None or tensor in decided or high - low > 255:
            continue
        kept = memo.recall(("bulk", tensor), (seen, qparams), lambda seen=seen, q=qparams: bulk_db(seen, q))
        if kept < least:
            found[tensor] = f"default: 8 bits keep {kept:.0f} dB of {tensor!r}, less than {least:g}"
    return FrozenMap(found)
