"""Calibrators, one a file: statistics in, a threshold and the whole curve behind it out."""

from typing import assert_never

from qbench.calibration.calibrators.global_scale import GlobalScale
from qbench.calibration.calibrators.kl import Kl
from qbench.calibration.calibrators.max import Max
from qbench.calibration.calibrators.mse import MeanSquaredError
from qbench.calibration.calibrators.percentile import Percentile
from qbench.calibration.calibrators.power_of_two import PowerOfTwo
from qbench.calibration.calibrators.registered import Registered, register_calibrator
from qbench.calibration.curve import Calibrator
from qbench.quant.calibrator_specs import (
    CalibratorSpec,
    GlobalScaleSpec,
    KlSpec,
    MaxSpec,
    MseSpec,
    PercentileSpec,
    PowerOfTwoSpec,
    RegisteredSpec,
)

__all__ = [
    "GlobalScale",
    "Kl",
    "Max",
    "MeanSquaredError",
    "Percentile",
    "PowerOfTwo",
    "Registered",
    "calibrator_of",
    "register_calibrator",
]


def calibrator_of(spec: CalibratorSpec) -> Calibrator:
    """The calibrator that a config speaks of."""
    match spec:
        case MaxSpec():
            return Max()
        case PercentileSpec():
            return Percentile(spec.percentile)
        case MseSpec():
            return MeanSquaredError()
        case KlSpec():
            return Kl(spec.levels, spec.layout, spec.zero_bin, spec.folding, spec.smoothing, spec.tie)
        case PowerOfTwoSpec():
            return PowerOfTwo()
        case GlobalScaleSpec():
            return GlobalScale(spec.threshold)
        case RegisteredSpec():
            return Registered(spec.callable)
        case _:
            assert_never(spec)
