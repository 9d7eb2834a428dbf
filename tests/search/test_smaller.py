"""Which weights go to 4 bits is told by what is lost once they are rounded with care."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import numpy as np

import qbench as qb
from qbench.ir.build import build
from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph
from qbench.ir.types import TensorType
from qbench.quant.config import QuantConfig
from qbench.search.front import Found
from qbench.search.smaller import smaller
from qbench.search.subject import Subject
from qbench.session.session import Session
from tests.passes.quantizable import node

_WIDE, _ROWS = 16, 96


def network() -> Graph:
    """Two dense layers beside each other, their results joined; both of the same size."""
    rng = np.random.default_rng(3)
    constants = {name: Constant(rng.normal(size=(_WIDE, _WIDE)).astype(np.float32)) for name in ("wa", "wb")}
    nodes = [
        node("a", "nn.dense", "alike wa", "a"),
        node("b", "nn.dense", "apart wb", "b"),
        node("both", "concatenate", "a b", "y", axis=1),
    ]
    types = {name: TensorType(("N", _WIDE), "float32") for name in ("alike", "apart")}
    return build("beside", types, ["y"], nodes, constants)


def subject() -> Subject:
    """One layer's inputs are nearly one number, 16 times; the other's have nothing to do with each other, and are
    a little smaller: to the nearest integers, the first loses more, but its weights can make up for each other."""
    rng = np.random.default_rng(7)
    alike = rng.normal(size=(_ROWS, 1)) + 0.05 * rng.normal(size=(_ROWS, _WIDE))
    data = {"alike": alike.astype(np.float32), "apart": (0.7 * rng.normal(size=(_ROWS, _WIDE))).astype(np.float32)}
    return Session(network(), data, preset="int8")._subject(None, None, None)


def start(asked: Subject) -> Found:
    config, nothing = QuantConfig.of_preset("int8"), {"metric_chosen_on": None, "metric_held_back": None}
    cost = asked.cost(config)
    return Found(label="start", config=config, metric=0.0, sqnr_db=None, ms=cost.ms, bytes=cost.bytes, **nothing)


def test_weights_that_make_up_for_each_other_go_first_though_the_nearest_integers_lose_more_there():
    asked = subject()
    found = start(asked)
    nearest, careful = (found.config.with_value("weights.rounding", how) for how in ("nearest", "sequential"))
    rung = asked.rung(_ROWS)
    by_itself = {
        how: rung([how.override_many("tensors", [name], dtype="int4") for name in ("wa", "wb")])
        for how in (nearest, careful)
    }
    assert by_itself[nearest][0].noise > by_itself[nearest][1].noise
    assert by_itself[careful][0].noise < by_itself[careful][1].noise
    _, config = next(smaller(asked, found, found.bytes - _WIDE * _WIDE // 4))
    assert config.weights.rounding == "sequential"
    assert [name for name, tensor in config.tensors.items() if tensor.dtype == "int4"] == ["wa"]


def test_what_each_loses_is_asked_once():
    asked = subject()
    found = start(asked)
    first = [config for _, config in smaller(asked, found, found.bytes - 10)]

    def refuse(*asked: object) -> NoReturn:
        raise AssertionError("it was measured again")

    assert [config for _, config in smaller(replace(asked, statistics=refuse), found, found.bytes - 10)] == first


def test_integers_that_came_with_the_model_are_narrowed_as_they_are(tmp_path: Path):
    rng = np.random.default_rng(0)
    data = {name: rng.normal(size=(24, _WIDE)).astype(np.float32) for name in ("alike", "apart")}
    qb.export_onnx(Session(network(), data, preset="int8"), tmp_path / "model.onnx")
    session = Session(qb.load(tmp_path / "model.onnx"), data)
    assert session.is_imported
    first = session.search(seconds=1e-9).rows[0]
    front = session.search(at_least=1e6, max_bytes=first.bytes - _WIDE * _WIDE // 4)
    assert any("int4 weights" in row.label for row in front.rows)
    assert min(row.bytes for row in front.rows) <= first.bytes - _WIDE * _WIDE // 4
    assert all(row.config.weights.rounding != "sequential" for row in front.rows)
