"""The estimated loss against the quantizer itself, run on data that is spread as the histogram says."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbench.calibration.grid import Grid
from qbench.calibration.loss import Density, loss
from qbench.calibration.statistics import Statistics
from qbench.errors import CalibrationError
from qbench.ir.qparams import QParams
from qbench.kernels.tally import BINS
from qbench.quant.arithmetic import dequantize, quantize

GRIDS = [
    Grid("uint8", symmetric=False),
    Grid("int8", symmetric=True),
    Grid("int8", symmetric=True, power_of_two=True),
    Grid("int4", symmetric=True),
    Grid("int16", symmetric=True),
    Grid("uint8", symmetric=True),
]


def by_pieces(statistics, qparams):
    """Mean squared error and clipped fraction of the model, piece by piece between rounding borders, exactly."""
    scale = Fraction(qparams.scales[0])
    low, high = qparams.qmin - qparams.zero_points[0], qparams.qmax - qparams.zero_points[0]
    width = Fraction(2) ** statistics.exponent
    error = clipped = Fraction(0)
    for k in range(-BINS, BINS):
        count = int(statistics.counts[BINS + k]) - (statistics.zeros if k == 0 else 0)
        if not count:
            continue
        a, b = max(k * width, Fraction(statistics.min)), min((k + 1) * width, Fraction(statistics.max))
        if a == b:
            step = min(max(round(a / scale), low), high)
            error += count * (a - step * scale) ** 2
            clipped += count * (not (low - Fraction(1, 2)) * scale <= a <= (high + Fraction(1, 2)) * scale)
            continue
        steps = range(floor(a / scale) - 1, floor(b / scale) + 3)
        borders = sorted({a, b, *(x for n in steps if a < (x := (n + Fraction(1, 2)) * scale) < b)})
        for left, right in pairwise(borders):
            nearest = round((left + right) / 2 / scale)
            step = min(max(nearest, low), high)
            error += count / (b - a) * ((right - step * scale) ** 3 - (left - step * scale) ** 3) / 3
            clipped += count / (b - a) * (right - left) * (nearest != step)
    return float(error / statistics.count), float(clipped / statistics.count)


values = st.floats(-50, 50, width=32) | st.sampled_from([0.0, 6.0])


@given(st.lists(values, min_size=1, max_size=12), st.sampled_from(GRIDS), st.floats(0.05, 1.2))
def test_is_the_integral_over_each_piece(numbers, grid, part):
    statistics = Statistics.of(np.array(numbers, np.float32))
    qparams = grid.qparams(statistics, max(part * statistics.abs_max, 1e-3))
    found = loss(statistics, qparams)
    error, clipped = by_pieces(statistics, qparams)
    assert found.error == pytest.approx(error, rel=1e-6, abs=1e-12 * max(statistics.abs_max, 1e-30) ** 2)
    assert found.clipped == pytest.approx(clipped, rel=1e-9, abs=1e-9)
    assert Density.of(statistics).squared_errors(qparams)[0] == pytest.approx(found.error, rel=1e-9, abs=1e-30)


@pytest.mark.parametrize("grid", GRIDS[:4])
@pytest.mark.parametrize("part", [0.3, 0.8, 1.0])
@pytest.mark.parametrize("name", ["normal", "relu", "relu6", "shifted"])
def test_is_near_what_the_quantizer_does(grid, part, name):
    x = np.random.default_rng(0).normal(size=50_000) * 3
    x = {"normal": x, "relu": np.maximum(x, 0), "relu6": np.clip(x, 0, 6), "shifted": x + 5}[name].astype(np.float32)
    statistics = Statistics.of(x)
    qparams = grid.qparams(statistics, part * statistics.abs_max)
    found, real = loss(statistics, qparams), dequantize(quantize(x, qparams), qparams)
    assert found.error == pytest.approx(float(np.mean((x.astype(np.float64) - real) ** 2)), rel=0.02)
    assert found.signal == pytest.approx(float(np.mean(x.astype(np.float64) ** 2)), rel=1e-4)
    assert found.sqnr_db == pytest.approx(10 * np.log10(found.signal / found.error))


def test_nothing_clipped_is_exactly_nothing():
    statistics = Statistics.of(np.random.default_rng(0).normal(size=999).astype(np.float32))
    found = loss(statistics, GRIDS[1].qparams(statistics, statistics.abs_max))
    assert (found.clipped, found.clipping) == (0.0, 0.0)


@pytest.mark.parametrize(("value", "sqnr"), [(0.0, np.inf), (1.0, 100.0)])
def test_constant_tensors(value, sqnr):
    statistics = Statistics.of(np.full(10, value, np.float32))
    found = loss(statistics, GRIDS[0].qparams(statistics, value))
    assert found.clipped == 0
    assert found.sqnr_db > sqnr or found.error == 0


def test_refuses_qparams_along_an_axis():
    with pytest.raises(CalibrationError, match="along an axis"):
        loss(Statistics.of(np.ones(1, np.float32)), QParams((1.0,), (0,), "int8", 0))
