"""The workbench with sessions, numbers and events that nobody wishes for."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qbench.ir.build import build, rebuild
from qbench.ir.frozen import Constant
from qbench.ir.types import TensorType
from qbench.session.session import Session
from qbench.widgets import Workbench
from tests.conftest import ROOT
from tests.networks import mlp, node, samples

PATIENCE = 60
KILLED = """
import os, signal, sys
from qbench.session.session import Session
from qbench.widgets import Workbench
from tests.networks import mlp, samples
session = Session(mlp(), samples(20), samples(30, seed=5), path=sys.argv[1])
bench = Workbench(session, layer="relu_1")
session.snapshot("kept")
session.run = lambda **_: os.kill(os.getpid(), signal.SIGKILL)
settings = {"threshold": 0.25}
bench._receive(None, {"do": "override", "layer": "relu_1", "part": "activation", "settings": settings}, None)
bench.wait()
"""


def send(bench: Workbench, **message: Any) -> None:
    bench._receive(None, message, None)
    assert bench.wait(PATIENCE)


def behaves(bench: Workbench) -> None:
    """Every layer can be looked at, what is sent is strict JSON, and there is a picture for places without a kernel."""
    for row in bench.layers["rows"]:
        send(bench, do="select", layer=row["name"])
        assert (bench.status["error"], bench.tensor["layer"]) == (None, row["name"])
        json.dumps(bench.tensor, allow_nan=False)
    for name in ("layers", "result", "graph", "history", "status"):
        json.dumps(getattr(bench, name), allow_nan=False)
    assert "image/png" in bench._repr_mimebundle_()[0]


def test_no_evaluation_data_and_no_labels():
    bench = Workbench(Session(mlp(), samples(20)))
    assert (bench.result["data"], bench.result["now"]["top1"]) == ("calibration", None)
    behaves(bench)
    unlabelled = Workbench(Session(mlp(), samples(20), samples(30, seed=5)))
    assert (unlabelled.result["data"], unlabelled.result["now"]["top1"]) == ("evaluation", None)
    assert unlabelled.result["now"]["agreement"] is not None


def test_one_layer():
    weight = {"w": Constant(np.ones((3, 12), np.float32))}
    graph = build("one", {"x": TensorType(("N", 12), "float32")}, ["y"], [node("nn.dense", ["x", "w"], "y")], weight)
    bench = Workbench(Session(graph, samples(9), preset="int8"))
    behaves(bench)
    send(bench, do="override", layer="y", part="weight", settings={"threshold": 0.5})
    assert bench.status["error"] is None
    assert set(bench._session.config.tensors) == {"w"}


def test_five_hundred_layers():
    session = Session(mlp(sizes=(12,) * 168), samples(4), preset="int8")
    bench = Workbench(session)
    assert len(bench.layers["rows"]) == 501
    send(bench, do="override", layer="relu_80", part="activation", settings={"threshold": 0.5})
    assert (bench.status["error"], bench.status["undo"]) == (None, "override 'relu_80': threshold=0.5")
    assert "image/png" in bench._repr_mimebundle_()[0]


@pytest.mark.parametrize("value", [np.nan, -np.inf, np.inf])
def test_a_ratio_that_is_no_number(value: float):
    session = Session(mlp(), samples(20), samples(30, seed=5))
    report = session.run(progress=False)
    layers = tuple(
        replace(layer, sqnr_db=value, own_sqnr_db=value, inherited_sqnr_db=value) for layer in report.by_layer
    )
    bench = Workbench(session)
    broken = replace(report, by_layer=layers, output=replace(report.output, sqnr_db=value))
    bench._live._full.keep(session.config, broken)
    bench._live._draw()
    behaves(bench)


@pytest.mark.parametrize("key", ["scale", "threshold"])
@pytest.mark.parametrize("value", [np.inf, np.nan, 0.0, 1e-60])
def test_a_scale_that_is_no_positive_number_is_refused_where_it_was_typed(key: str, value: float):
    session = Session(mlp(), samples(20))
    bench = Workbench(session, layer="relu_1")
    send(bench, do="override", layer="relu_1", part="activation", settings={key: value}, where="tensor")
    assert "relu_1" in bench.status["error"]["text"]
    assert (bench.status["error"]["where"], session.config.tensors) == ("tensor", {})


@pytest.mark.parametrize("number", [0.0, 3.0])
def test_constant_tensors(number: float):
    graph = mlp()
    constants = {**graph.constants, "dense_1.weight": Constant(np.full((8, 16), number, np.float32))}
    bench = Workbench(Session(rebuild(graph, constants=constants), np.full((20, 12), number, np.float32)))
    behaves(bench)
    send(bench, do="select", layer="dense_1", part="weight")
    json.dumps(bench.tensor, allow_nan=False)


def test_a_kernel_that_is_killed_while_it_evaluates_loses_no_edit(tmp_path: Path):
    path = tmp_path / "s.session"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], cwd=ROOT, timeout=300, check=False)
    assert killed.returncode == -signal.SIGKILL
    bench = Workbench(Session.resume(path), layer="relu_1")
    assert bench.tensor["histogram"]["threshold"] == 0.25
    assert [one["name"] for one in bench.history["snapshots"]] == ["kept"]
    send(bench, do="undo")
    assert bench.status["undo"] is None
