"""Normalizations in integers where the config says so: as good as those in float, and nothing else changes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import qbench as qb
from qbench.errors import ConfigError
from qbench.ir.build import build
from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph
from qbench.ir.types import TensorType
from qbench.quant.config import QuantConfig
from qbench.runtime.interpreter import run
from qbench.session.session import Session
from tests.exporters.parity import session
from tests.networks import node

WIDTH = 48
X = np.random.default_rng(1).normal(size=(64, 5, WIDTH)).astype(np.float32)
CHOSEN = {
    "rule": QuantConfig().with_value("rules", [{"op": "nn.*_norm", "keep_float": False}]),
    "override": QuantConfig().override_layer("norm", keep_float=False),
    "all in 8 bits": QuantConfig.of_preset("int8").override_layer("norm", keep_float=False),
}


def network(kind: str) -> Graph:
    rng = np.random.default_rng(0)
    constants = {
        "first.weight": rng.normal(size=(WIDTH, WIDTH)) / 7,
        "gamma": 1 + rng.normal(size=WIDTH) / 4,
        **({"beta": rng.normal(size=WIDTH)} if kind == "layer" else {}),
        "last.weight": rng.normal(size=(8, WIDTH)) / 7,
    }
    nodes = [
        node("nn.dense", ["x", "first.weight"], "first"),
        node(f"nn.{kind}_norm", ["first", *[name for name in constants if name in ("gamma", "beta")]], "norm", axis=-1),
        node("nn.dense", ["norm", "last.weight"], "y"),
    ]
    arrays = {name: Constant(array.astype(np.float32)) for name, array in constants.items()}
    return build(kind, {"x": TensorType(("N", 5, WIDTH), "float32")}, ["y"], nodes, arrays)


def of(kind: str, config: QuantConfig) -> Session:
    return Session(network(kind), X[:32], X[32:], config=config)


@pytest.mark.parametrize("kind", ["layer", "rms"])
@pytest.mark.parametrize("who", CHOSEN)
def test_it_runs_in_integers_and_loses_next_to_nothing(kind: str, who: str):
    plain, chosen = of(kind, QuantConfig()), of(kind, CHOSEN[who])
    assert f"nn.{kind}_norm" in [one.op for one in plain.quantized().graph.nodes]
    ops = [one.op for one in chosen.quantized().graph.nodes]
    assert "integer.normalize" in ops
    assert not [op for op in ops if op.startswith("nn.")]
    before, after = (s.run(progress=False).output.sqnr_db for s in (plain, chosen))
    assert before is not None
    assert after is not None
    assert after > before - 2.5  # what it reads is rounded to what comes out, too


def test_a_runtime_whose_arithmetic_is_asked_for_has_none():
    made = of("layer", CHOSEN["rule"].with_value("semantics", "tflite")).quantized()
    assert [one.reason for one in made.graph.nodes if one.op == "nn.layer_norm"]


def test_what_has_no_integer_form_cannot_be_chosen():
    graph = build("g", {"x": TensorType(("N", 4), "float32")}, ["y"], [node("cumsum", ["x"], "y", axis=1)], {})
    with pytest.raises(ConfigError, match="keep_float: cannot be false: unsupported"):
        Session(graph, X[:, 0, :4], config=QuantConfig().override_layer("y", keep_float=False)).run(progress=False)


def test_its_file_gives_the_same_numbers_but_for_roundings(tmp_path: Path):
    s = of("layer", CHOSEN["rule"])
    qb.export_onnx(s, tmp_path / "m.onnx")
    (found,) = session(tmp_path / "m.onnx").run(None, {"x": X[32:]})
    report = s.run(progress=False)
    assert report.output.sqnr_db is not None
    exact = run(s.prepared, {"x": X[32:]})["y"]
    noise = 10 * np.log10(np.square(exact).mean() / np.square(found - exact).mean())
    assert noise > report.output.sqnr_db - 0.5


def test_nothing_is_divided_by_zero_that_8_bits_made():
    """Series of levels far apart, each divided by its own: the lowest levels round to zero in 8 bits."""
    rng = np.random.default_rng(0)
    data = (10 ** rng.uniform(-2, 3, (64, 1)) * (1 + 0.1 * rng.normal(size=(64, 16)))).astype(np.float32)
    nodes = [
        node("abs", ["x"], "size"),
        node("mean", ["size"], "level", axes=(1,)),
        node("add", ["level", "least"], "more"),
        node("divide", ["x", "more"], "y"),
    ]
    constants = {"least": Constant(np.array(1e-9, np.float32))}
    graph = build("scaled", {"x": TensorType(("N", 16), "float32")}, ["y"], nodes, constants)
    for config in (QuantConfig.of_preset("int8"), QuantConfig()):
        found = Session(graph, data, config=config)
        report = found.run(progress=False)
        assert all(np.isfinite(qb.run(found.graph, row[None])).all() for row in data)
        assert report.output.sqnr_db is not None
