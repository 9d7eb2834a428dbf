"""Curves are remembered for as long as their statistics are there."""

import gc
import weakref

import numpy as np

from qbench.calibration.calibrators.mse import MeanSquaredError
from qbench.calibration.calibrators.percentile import Percentile
from qbench.calibration.curves import threshold_curve
from qbench.calibration.grid import Grid
from qbench.calibration.statistics import Statistics


def test_a_curve_is_made_once_for_each_calibrator_and_grid():
    one, other = (Statistics.of(np.linspace(-1, end, 999, dtype=np.float32)) for end in (2, 3))
    first = threshold_curve(one, MeanSquaredError(), Grid())
    assert threshold_curve(one, MeanSquaredError(), Grid()) is first
    assert first == MeanSquaredError().curve(one, Grid())
    for statistics, calibrator, grid in (
        (one, MeanSquaredError(), Grid("int16")),
        (one, Percentile(99.0), Grid()),
        (other, MeanSquaredError(), Grid()),
    ):
        assert threshold_curve(statistics, calibrator, grid) == calibrator.curve(statistics, grid) != first


def test_curves_go_with_their_statistics():
    statistics = Statistics.of(np.arange(9, dtype=np.float32))
    curve = weakref.ref(threshold_curve(statistics, MeanSquaredError(), Grid()).candidates)
    gc.collect()
    assert curve() is not None
    del statistics
    gc.collect()
    assert curve() is None
