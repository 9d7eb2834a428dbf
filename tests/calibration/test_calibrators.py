"""Each calibrator against an obvious search on the same histogram, and against the figures of FIELD_NOTES section 2."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbench.calibration.calibrators import (
    GlobalScale,
    Kl,
    Max,
    MeanSquaredError,
    Percentile,
    PowerOfTwo,
    Registered,
    calibrator_of,
    register_calibrator,
)
from qbench.calibration.grid import Grid
from qbench.calibration.loss import loss
from qbench.calibration.statistics import Statistics
from qbench.errors import CalibrationError
from qbench.ir.qparams import QParams
from qbench.kernels.tally import BINS
from qbench.quant.calibrator_specs import CALIBRATOR_PRESETS
from qbench.quant.config import QuantConfig
from tests.calibration.test_kl import drawn

GRIDS = [Grid("uint8"), Grid("int8", True), Grid("int8"), Grid("int16", True), Grid("int4", True, power_of_two=True)]
ALL = [Max(), Percentile(), Percentile(90), MeanSquaredError(), Kl(), Kl(levels=8, layout="one_sided"), PowerOfTwo()]
numbers = st.floats(-100, 100, width=32) | st.sampled_from([0.0, 6.0])
samples = st.lists(numbers, min_size=1, max_size=40).map(lambda x: np.array(x, np.float32))


@given(samples, st.sampled_from([50.0, 90.0, 99.9, 100.0]))
def test_percentile_is_the_lowest_edge_that_gives_up_no_more(x, percentile):
    statistics = Statistics.of(x)
    curve = Percentile(percentile).curve(statistics, GRIDS[0])
    width = statistics.bin_width
    # an element counts with the edge at or beyond it: the one beyond for positives, which lie in [k w, (k + 1) w)
    reach = [
        min((math.floor(v / width) + 1) * width if v >= 0 else -math.floor(v / width) * width, statistics.abs_max)
        for v in map(float, x)
    ]
    edges = sorted({min(k * width, statistics.abs_max) for k in range(1, BINS + 1)})
    allowed = len(x) * (100 - Fraction(str(percentile))) / 100
    assert curve.best == next(edge for edge in edges if sum(r > edge for r in reach) <= allowed)
    assert curve.candidates.tolist() == edges
    assert curve.divergence.tolist() == [sum(r > edge for r in reach) / len(x) for edge in edges]


@given(samples)
def test_max(x):
    curve = Max().curve(Statistics.of(x), GRIDS[0])
    assert curve.best == curve.candidates[-1] == abs(x).max()
    assert np.array_equal(curve.divergence, abs(x).max() - curve.candidates)


@settings(max_examples=40)
@given(samples, st.sampled_from(GRIDS))
def test_mse_is_the_least_loss_of_all_its_candidates(x, grid):
    statistics = Statistics.of(x)
    curve = MeanSquaredError().curve(statistics, grid)
    losses = np.array([loss(statistics, grid.qparams(statistics, t)).error for t in curve.candidates])
    np.testing.assert_allclose(curve.divergence, losses, rtol=1e-6, atol=1e-12 * statistics.abs_max**2)
    least = curve.divergence.min()
    assert curve.best == max(t for t, d in zip(curve.candidates, curve.divergence, strict=True) if d == least)
    assert statistics.abs_max in curve.candidates


rows_of_weights = st.integers(1, 12).flatmap(
    lambda n: st.lists(st.lists(numbers, min_size=n, max_size=n), min_size=1, max_size=3)
)


@settings(max_examples=20)
@given(rows_of_weights, st.sampled_from([*GRIDS, Grid("int8", True, narrow=True), Grid("uint4", power_of_two=True)]))
def test_mse_of_known_values_is_the_obvious_search(rows, grid):
    rows = np.array(rows, np.float32)
    assert MeanSquaredError().thresholds(rows, grid).tolist() == [searched(row, grid) for row in rows.tolist()]


def searched(row, grid):
    """The threshold of least squared error among the candidates, each tried on all values one after the other."""
    largest = max(map(abs, row))

    def error(threshold):
        q, total = grid.of_range(max(min(row), -threshold), min(max(row), threshold)), 0.0
        for x in row:
            k = min(max(round(x * (1 / q.scales[0])), q.qmin - q.zero_points[0]), q.qmax - q.zero_points[0])
            total += (x - k * q.scales[0]) * (x - k * q.scales[0])
        return total

    coarse = (2.0 ** (np.arange(-8 * 12, 1) / 12) * largest).tolist()
    best = min(reversed(coarse), key=error)
    fine = np.minimum(2.0 ** (np.arange(-11, 12) / 144) * best, largest).tolist()
    return min(sorted(coarse + fine, reverse=True), key=error)


@given(samples, st.sampled_from(GRIDS))
def test_power_of_two_is_tvms_rule(x, grid):
    statistics = Statistics.of(x)
    curve = PowerOfTwo().curve(statistics, grid)
    low, high = min(float(x.min()), 0.0), max(float(x.max()), 0.0)
    width = Fraction(2 * statistics.abs_max if grid.symmetric else high - low)
    if width < Fraction(2) ** -110:
        return  # below the smallest scale
    power = Fraction(2) ** -200
    while power < width:
        power *= 2
    assert Fraction(curve.qparams.scales[0]) == power / grid.levels


@pytest.mark.parametrize("calibrator", ALL)
@settings(max_examples=20)
@given(x=samples, grid=st.sampled_from(GRIDS))
def test_every_curve_is_ascending_and_holds_its_best(calibrator, x, grid):
    curve = calibrator.curve(Statistics.of(x), grid, "t")
    assert len(curve.candidates) == len(curve.divergence) >= 1
    assert (np.diff(curve.candidates) > 0).all()
    assert curve.best in curve.candidates
    assert not np.isnan(curve.divergence).any()
    assert curve == calibrator.curve(Statistics.of(x), grid, "t")
    assert hash(curve) == hash(calibrator.curve(Statistics.of(x[::-1]), grid, "t"))
    with pytest.raises(ValueError, match="read-only"):
        curve.candidates[0] = 0


@pytest.mark.parametrize("calibrator", ALL)
@pytest.mark.parametrize("value", [0.0, -2.5, 1e-38, 3e38])
def test_constant_tensors(calibrator, value):
    statistics = Statistics.of(np.full(7, value, np.float32))
    for grid in GRIDS:
        curve = calibrator.curve(statistics, grid)
        qparams = curve.qparams or grid.qparams(statistics, curve.best)
        assert qparams.scales[0] > 0


def test_mse_figures_of_field_notes():
    for x, threshold, sqnr in zip(drawn(), (3.931, 9.671, 3.902), (40.6, 35.8, 40.5), strict=True):
        statistics, grid = Statistics.of(x), Grid("int8", symmetric=True)
        best = MeanSquaredError().curve(statistics, grid).best
        assert best == pytest.approx(threshold, rel=0.01)
        assert loss(statistics, grid.qparams(statistics, best)).sqnr_db == pytest.approx(sqnr, abs=0.1)


def test_kl_does_not_maximise_sqnr():
    x = np.append(drawn()[0], np.float32(50))
    statistics, grid = Statistics.of(x), Grid("int8", symmetric=True)
    sqnr = {
        type(c).__name__: loss(statistics, grid.qparams(statistics, c.curve(statistics, grid).best)).sqnr_db
        for c in (Kl(), MeanSquaredError(), Max())
    }
    assert sqnr["MeanSquaredError"] > max(sqnr["Kl"], sqnr["Max"])


@pytest.mark.parametrize(
    ("grid", "x", "zero_point"),
    [
        (Grid("int8", True), [1.0], 0),
        (Grid("uint8"), [1.0], 0),
        (Grid("uint8"), [-1.0], 128),
        (Grid("int8"), [1.0], -128),
        (Grid("uint8", True), [1.0], 128),
    ],
)
def test_global_scale(grid, x, zero_point):
    curve = GlobalScale(8.0).curve(Statistics.of(np.array(x, np.float32)), grid)
    assert curve.qparams == QParams(1 / 16, zero_point, grid.dtype)


def test_registered():
    statistics, grid = Statistics.of(np.arange(10, dtype=np.float32)), Grid("uint8")
    asked = []
    register_calibrator("half", lambda tensor, stats: asked.append(tensor) or np.float32(stats.max / 2))
    curve = Registered("half").curve(statistics, grid, "conv1")
    assert (curve.best, asked, curve.qparams) == (4.5, ["conv1"], None)
    register_calibrator("half", lambda tensor, stats: QParams(0.5, 3, "uint8"))
    assert Registered("half").curve(statistics, grid, "conv1").qparams == QParams(0.5, 3, "uint8")


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (0.0, "positive"),
        (math.nan, "positive"),
        ("3", "gave str"),
        (None, "gave NoneType"),
        (True, "gave bool"),
        (QParams((1.0,), (0,), "int8", 0), "along an axis"),
    ],
)
def test_registered_results_are_checked(result, message):
    register_calibrator("bad", lambda tensor, stats: result)
    with pytest.raises(CalibrationError, match=rf"calibrator 'bad', asked about tensor 'x', .*{message}"):
        Registered("bad").curve(Statistics.of(np.ones(1, np.float32)), Grid(), "x")


def test_what_cannot_be_called_is_not_registered():
    with pytest.raises(CalibrationError, match="'mine' must be callable, not int"):
        register_calibrator("mine", 3)


def test_an_unregistered_name_says_how_to_register():
    register_calibrator("mine", lambda tensor, stats: 1.0)
    with pytest.raises(CalibrationError, match=r"did you mean 'mine'.*qbench.register_calibrator\('mime', function\)"):
        Registered("mime").curve(Statistics.of(np.ones(1, np.float32)), Grid(), "x")


def test_an_error_of_the_users_own_says_which_tensor():
    register_calibrator("fails", lambda tensor, stats: 1 / 0)
    with pytest.raises(ZeroDivisionError) as caught:
        Registered("fails").curve(Statistics.of(np.ones(1, np.float32)), Grid(), "x")
    assert caught.value.__notes__ == ["calibrator 'fails', asked about tensor 'x'"]


@pytest.mark.parametrize("name", CALIBRATOR_PRESETS)
def test_every_name_of_a_config_is_a_calibrator(name):
    spec = QuantConfig().with_value("activations.calibrator", name).activations.calibrator
    assert calibrator_of(spec).curve(Statistics.of(np.ones(3, np.float32)), Grid()).candidates.size


@pytest.mark.parametrize("percentile", [0, -1, 101])
def test_percentiles_out_of_range(percentile):
    with pytest.raises(CalibrationError, match="percentile"):
        Percentile(percentile)
