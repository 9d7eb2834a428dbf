"""Data beyond what calibration data reached: counted by hand, and told in every report."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import qbench as qb
from qbench.calibration.statistics import Statistics
from qbench.evaluate.measure import deviation
from qbench.evaluate.unlike import unlike_of
from qbench.ir.graph import Graph
from qbench.ir.qparams import QParams
from qbench.quant.config import QuantConfig
from qbench.quant.encodings import Encoding
from qbench.report.entries import Unlike
from qbench.report.report import Report
from tests.networks import mlp, residual, samples

IN_8_BITS = QuantConfig.of_preset("int8")
RNG = np.random.default_rng(2)
ENDS = QParams(2 / 255, 0, "int8")
"""From about -1 to 1."""


def told(values: np.ndarray, calibrated: np.ndarray, qparams: QParams = ENDS) -> tuple[Unlike, ...]:
    encoding = Encoding(qparams, "default: mse", 1.0, "mse")
    chunks = [deviation(part, part, qparams) for part in np.array_split(values.astype(np.float32), 3)]
    found = {("t", "t"): sum(chunks[1:], chunks[0])}
    return unlike_of(found, {"t": encoding}, {"t": Statistics.of(calibrated.astype(np.float32))})


def with_beyond(share: float, reaches: float, count: int = 3000) -> np.ndarray:
    """Values between -1 and 1, this share of them so far."""
    values = RNG.uniform(-1, 1, count)
    values[RNG.permutation(count)[: round(share * count)]] = reaches
    return values


CALIBRATED = np.append(RNG.uniform(-1, 1, 5000), [-1, 1])


@pytest.mark.parametrize("reaches", [1.5, -1.5])
def test_the_share_and_the_furthest_value_are_told(reaches: float) -> None:
    (found,) = told(with_beyond(0.1, reaches), CALIBRATED)
    assert (found.tensor, found.reaches, found.calibrated) == ("t", reaches, np.sign(reaches))
    assert found.clipped == pytest.approx(0.1)


def test_a_little_more_than_calibration_saw_is_no_news() -> None:
    assert told(with_beyond(0.015, 1.5), CALIBRATED) == (), "few values"
    assert told(with_beyond(0.1, 1.08), CALIBRATED) == (), "not far: white, where calibration saw nearly white"
    assert told(with_beyond(0.1, 1.5), CALIBRATED[-60:]) == (), "of 60 values none is a large one"
    per_channel = QParams((2 / 255,) * 1000, (0,) * 1000, "int8", axis=0)
    assert told(with_beyond(0.1, 1.5), CALIBRATED, per_channel) == (), "no one range"


def test_what_a_calibrator_clips_on_purpose_is_no_news() -> None:
    """As many of the calibration data lie beyond, or less far."""
    assert told(with_beyond(0.1, 1.5), with_beyond(0.08, 1.5)) == ()
    assert told(with_beyond(0.1, 1.5), with_beyond(0.001, 1.5)) == ()
    assert told(with_beyond(0.5, 2.5), with_beyond(0.08, 1.5)) != ()


def session(graph: Graph, factor: float, config: QuantConfig = IN_8_BITS) -> qb.Session:
    shape = graph.types["x"].shape[1:]
    data = [np.random.default_rng(seed).normal(size=(40, *shape)).astype(np.float32) for seed in (1, 2)]
    return qb.Session(graph, data[0] * np.float32(factor), data[1], config=config)


@pytest.mark.parametrize("graph", [mlp(), residual(), residual(blocks=9)], ids=["small", "images", "large"])
def test_a_session_tells_it_of_darker_calibration_data_and_of_no_other(graph: Graph) -> None:
    """Whether all elements are compared or, of a large network, some."""
    for made in (session(graph, 1), session(graph, 3)):
        assert made.run(progress=False).unlike == () == made.probe().unlike
        assert "clipped: they reach" not in str(made.report)
    dark = session(graph, 0.4)
    report = dark.run(progress=False)
    x, seen = np.stack([dark.sample(at)["x"] for at in range(40)]), dark.statistics["x"]
    first, ((low, high),) = report.unlike[0], dark.encodings["x"].qparams.ranges
    half = dark.encodings["x"].qparams.scales[0] / 2
    assert first.tensor == "x" and first.clipped == pytest.approx(np.mean((x < low - half) | (x > high + half)), 0.1)
    assert first.calibrated in (seen.min, seen.max) and abs(first.reaches) == pytest.approx(np.abs(x).max(), 0.1)
    assert f"{first.clipped:.1%} of the values of 'x' are clipped: they reach {first.reaches:.4g}" in str(report)
    assert dark.probe().unlike[0].tensor == "x"
    assert json.loads(report.to_json())["unlike"][0]["clipped"] == first.clipped
    assert Report.from_data(json.loads(json.dumps(report.to_data()))).unlike == report.unlike


@pytest.mark.parametrize("calibrator", [{"name": "percentile", "percentile": 95.0}, {"name": "kl"}])
def test_calibrators_that_clip_on_purpose_are_not_blamed(calibrator: dict[str, object]) -> None:
    config = IN_8_BITS.with_value("activations.calibrator", calibrator)
    made = session(mlp(), 1, config)
    report = made.run(progress=False)
    assert report.unlike == () and max(layer.clipped or 0 for layer in report.by_layer) > 0


def test_a_name_from_a_file_is_no_markup_and_not_long() -> None:
    report = session(mlp(), 1).run(progress=False)
    said = str(Report(by_layer=(), output=report.output, unlike=(Unlike("\x1b[31m" + "a" * 999, 0.5, 9, 1),)))
    assert "\x1b" not in said and "a" * 99 not in said and "50.0%" in said


def test_samples_of_a_kind_are_alike() -> None:
    """A session as in a README."""
    assert qb.Session(mlp(), samples(40), samples(400, seed=9)).run(progress=False).unlike == ()


def test_other_recordings_of_real_speech_are_alike_and_quieter_ones_are_not(shared_data: Path) -> None:
    """Of the held-out clips more than a hundredth of the input lies beyond the ranges, but not far."""
    graph = qb.load(shared_data / "models/audio/spelling_cnn_mel.onnx")
    calibration, others = (
        np.load(shared_data / "spelling" / f"{split}.npz")["log_mel"][:60].astype(np.float32)
        for split in ("calib", "dev")
    )
    for factor, is_told in ((1, False), (0.7, True)):
        made = qb.Session(graph, calibration * np.float32(factor), others, config=IN_8_BITS)
        assert bool(made.run(progress=False).unlike) is is_told
