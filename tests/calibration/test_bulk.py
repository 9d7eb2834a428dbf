"""What 8 bits keep of the bulk of a tensor, against the values themselves."""

from __future__ import annotations

import numpy as np
import pytest

from qbench.calibration.bulk import bulk_db, rounds_to_zero, wide_tensors
from qbench.calibration.statistics import Statistics
from qbench.ir.memo import Memo
from qbench.ir.qparams import QParams
from qbench.quant.encodings import Encoding, Encodings
from qbench.quant.points import Point

RNG = np.random.default_rng(0)
CALM = RNG.normal(size=100_000).astype(np.float32)
STRETCHED = np.concatenate([CALM, np.full(200, 150, np.float32)])


def encoding(array: np.ndarray, dtype: str = "uint8") -> Encoding:
    scale = float(np.ptp(array)) / (255 if dtype == "uint8" else 65535)
    qparams = QParams(scale, 128 if dtype == "uint8" else 0, "uint8" if dtype == "uint8" else "int16")
    return Encoding(qparams, "default: max", None, "max")


@pytest.mark.parametrize("array", [CALM, STRETCHED, np.maximum(STRETCHED, 0), STRETCHED * 1e-3], ids=str)
def test_is_the_ratio_without_the_outliers(array: np.ndarray) -> None:
    qparams = encoding(array).qparams
    real = np.sort(np.abs(array[array != 0].astype(np.float64)))
    signal = np.mean(np.square(real[: int(0.995 * len(real))]))
    assert bulk_db(Statistics.of(array), qparams) == pytest.approx(
        10 * np.log10(signal / (qparams.scales[0] ** 2 / 12)), abs=0.5
    )


@pytest.mark.parametrize("least", [0.001, 0.49, 0.51, 2.0])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("others", [[], [0.0], [-7.0, 7.0]], ids=["alone", "zeros", "both sides"])
def test_a_grid_makes_zero_of_what_is_none(least: float, sign: int, others: list[float]) -> None:
    """Of steps of 1; exact zeros are no loss."""
    values = np.array([sign * least, sign * 100, *others], np.float32)
    qparams = QParams(1.0, 128, "uint8")
    rounded = np.rint(values)
    assert rounds_to_zero(Statistics.of(values), qparams) is bool(((rounded == 0) & (values != 0)).any())


def test_of_zeros_nothing_is_lost() -> None:
    assert bulk_db(Statistics.of(np.zeros(7, np.float32)), QParams(1.0, 0, "uint8")) == float("inf")


def test_wide_are_activations_that_nobody_has_decided_about() -> None:
    arrays = {"calm": CALM, "stretched": STRETCHED, "mine": STRETCHED, "sixteen": STRETCHED, "weight": STRETCHED}
    points = [Point(name, "weight" if name == "weight" else "activation", name) for name in arrays]
    encodings = Encodings(
        {name: encoding(array, "int16" if name == "sixteen" else "uint8") for name, array in arrays.items()}
    )
    statistics = {name: Statistics.of(array) for name, array in arrays.items() if name != "weight"}
    found = wide_tensors(points, encodings, statistics, 24.0, ["mine"], Memo())
    assert dict(found) == {"stretched": "default: 8 bits keep 15 dB of 'stretched', less than 24"}
