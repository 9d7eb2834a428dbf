"""Weights that a config gives another type, or blocks, are rounded on data where that helps, and once."""

from __future__ import annotations

import numpy as np
import pytest

from qbench.quant.config import QuantConfig
from qbench.session import quantizer
from qbench.session.session import Session
from tests.networks import mlp

RNG = np.random.default_rng(7)
MIX = RNG.normal(size=(6, 12)) @ np.diag(np.geomspace(2, 0.2, 12))
GRAPH = mlp(sizes=(12, 32, 24, 8))


def samples(count: int, seed: int) -> np.ndarray:
    """Inputs that go together, which nearest rounding knows nothing of."""
    return (np.random.default_rng(seed).normal(size=(count, 6)) @ MIX).astype(np.float32)


CONFIGS = {
    "weights alone": QuantConfig.of_preset("weight_only_int4").with_value("weights.axis", 8),
    "int4": QuantConfig.of_preset().with_value("weights.dtype", "int4"),
}


@pytest.mark.parametrize("kind", CONFIGS)
def test_weights_of_4_bits_are_rounded_on_data(kind: str) -> None:
    ratios = list[float]()
    for rounding in ("nearest", "measured"):
        config = CONFIGS[kind].with_value("weights.rounding", rounding)
        ratio = Session(GRAPH, samples(96, 1), samples(200, 2), config=config).run().output.sqnr_db
        assert ratio is not None
        ratios.append(ratio)
    assert ratios[1] > ratios[0] + 1


@pytest.mark.parametrize("kind", CONFIGS)
def test_they_are_rounded_once(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(GRAPH, samples(96, 1), samples(20, 2), config=CONFIGS[kind])
    session.run()
    first = session.encodings["dense_1.weight"]
    assert "rounded sequentially" in first.reason
    monkeypatch.setattr(quantizer, "measure_rounding", None)
    session.override("dense_0", keep_float=True)
    session.config = session.config.with_value("activations.calibrator", "max")
    session.run()
    assert session.encodings["dense_1.weight"].qparams == first.qparams


def test_good_outputs_and_weights_that_nobody_left_to_be_measured_are_left_alone() -> None:
    wide = QuantConfig(mode="weight_only").with_value("weights.rounding", "measured")
    for config in (wide, CONFIGS["int4"].with_value("weights.rounding", "nearest")):
        session = Session(GRAPH, samples(96, 1), config=config)
        assert "rounded" not in session.encodings["dense_1.weight"].reason
