"""What windows see, as whole numbers, against NumPy's own sliding windows."""

from __future__ import annotations

import numpy as np
import pytest

from qbench.calibration.patches import Patches
from qbench.kernels.patches import LARGEST


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 3, 1), (3, 1, 2, 0)], ids=str)
@pytest.mark.parametrize(
    ("size", "dilation", "groups"), [((1, 1), (1, 1), 1), ((3, 2), (1, 1), 6), ((2, 3), (2, 1), 3)]
)
def test_all_windows_that_stand_anywhere(
    order: tuple[int, ...], size: tuple[int, int], dilation: tuple[int, int], groups: int
) -> None:
    rng, pad, unit = np.random.default_rng(0), 3, 2.0**-9
    data = (rng.standard_t(2, size=(2, 6, 5, 7)) * 16).astype(np.float32)
    lying = np.ascontiguousarray(data.transpose(order)).transpose(np.argsort(order))
    whole = np.clip(np.rint(data.astype(np.float64) / unit), -LARGEST, LARGEST)
    assert (np.abs(whole) == LARGEST).any()
    padded = np.pad(whole, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    reach = [(n - 1) * d + 1 for n, d in zip(size, dilation, strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(padded, reach, (2, 3))[..., :: dilation[0], :: dilation[1]]
    places = windows.shape[2:4]
    corners = np.stack(np.indices(places), axis=-1).reshape(-1, 2) - pad
    split = windows.reshape(2, groups, 6 // groups, len(corners), *size).transpose(1, 0, 3, 2, 4, 5)
    wanted = split.reshape(groups, 2 * len(corners), -1)
    rows, sums = np.full_like(wanted, np.nan), np.ones((groups, wanted.shape[2]))
    patches = Patches(lying, corners, unit, groups, size, dilation)
    for first in range(groups):
        one = slice(first, first + 1)
        patches.put(first, rows[one], sums[one])
    assert np.array_equal(rows, wanted)
    assert np.array_equal(sums, 1 + wanted.sum(axis=1))
