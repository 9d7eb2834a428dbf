"""Networks with recurrent layers: their weights in 8 bits, what they read as integers, and what comes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from qbench.exporters import write_onnx
from qbench.frontends import load
from qbench.ir.build import build
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.types import TensorType
from qbench.quant.config import QuantConfig
from qbench.runtime.programs import plan
from qbench.session.export import export_tflite
from qbench.session.session import Session
from tests.exporters.parity import session as onnxruntime
from tests.networks import node

STEPS, N, INPUTS, UNITS = 6, 4, 5, 24
GATES = {"nn.lstm": 4, "nn.gru": 3, "nn.rnn": 1}
WEIGHTS = "w0", "r0", "w1", "r1"


def network(op: str, **attrs: Any) -> Graph:
    """Two layers, the first one of both directions, and a dense layer on all steps; samples lie along axis 1."""
    random, rows = np.random.default_rng(7), GATES[op] * UNITS

    def reals(*shape: int) -> np.ndarray:
        return random.standard_normal(shape) / np.sqrt(shape[-1])

    held = {
        "w0": reals(2, rows, INPUTS), "r0": reals(2, rows, UNITS), "o0": reals(2, 2 * rows) * 4,
        "w1": reals(1, rows, 2 * UNITS), "r1": reals(1, rows, UNITS), "o1": reals(1, 2 * rows) * 4,
        "h0": np.zeros((2, N, UNITS)), "h1": np.zeros((1, N, UNITS)), "wd": reals(3, UNITS),
    }  # fmt: skip

    def recurrent(name: str, inputs: list[str], outputs: tuple[str, ...], **more: Any) -> Node:
        return Node(name, op, tuple(inputs), outputs, FrozenMap({**attrs, **more}))

    states = 2 if op == "nn.lstm" else 1
    last = [f"last {i}" for i in range(states)]
    nodes = [
        recurrent("first", ["x", "w0", "r0", "o0", *["h0"] * states], ("both", *last), direction="bidirectional"),
        node("transpose", ["both"], "turned", axes=(0, 2, 1, 3)),
        node("reshape", ["turned"], "side by side", newshape=(STEPS, N, 2 * UNITS)),
        recurrent("second", ["side by side", "w1", "r1", "o1", *["h1"] * states], ("one", *(f"{x}!" for x in last))),
        node("squeeze", ["one"], "rows", axes=(1,)),
        node("nn.dense", ["rows", "wd"], "y"),
    ]
    constants = {name: Constant(array.astype(np.float32)) for name, array in held.items()}
    return build("recurrent", {"x": TensorType((STEPS, N, INPUTS), "float32")}, ("y",), nodes, constants)


FEEDS = [{"x": np.random.default_rng(i).normal(size=(STEPS, N, INPUTS)).astype(np.float32)} for i in range(8)]
LAYERS = pytest.mark.parametrize(
    ("op", "attrs"), [("nn.lstm", {}), ("nn.rnn", {}), ("nn.gru", {}), ("nn.gru", {"linear_before_reset": True})]
)


def decibels(wanted: np.ndarray, got: np.ndarray) -> float:
    return float(10 * np.log10((wanted**2).sum() / max(1e-30, ((got - wanted) ** 2).sum())))


@LAYERS
def test_int8_multiplies_integers_and_stays_near_the_float_network(op: str, attrs: dict[str, Any]) -> None:
    graph = network(op, **attrs)
    session = Session(graph, FEEDS, preset="int8")
    report, model = session.run(progress=False), session.quantized()
    ops = [made.op for made in model.graph.nodes]
    assert ops.count(op.replace("nn.", "integer.")) == 2 and op not in ops and ops.count("integer.dense") == 3
    for name in WEIGHTS:
        qparams = model.encodings[name].qparams
        assert (qparams.dtype, qparams.axis, len(qparams.scales)) == ("int8", 1, GATES[op] * UNITS)
    assert {"x", "side by side"} <= model.encodings.keys()  # what the layers read has a threshold of its own
    layers = [layer for layer in report.by_layer if layer.op == op]
    assert [layer.runs_as for layer in layers] == ["int8", "int8"]
    assert all("its weights have 8 bits" in (layer.reason or "") for layer in layers)
    wanted, got = plan(graph).run(FEEDS[0])["y"], plan(model.graph).run(FEEDS[0])["y"]
    assert 30 < decibels(wanted, got) < 60
    assert not plan(model.graph).fallbacks


@LAYERS
def test_onnxruntime_computes_the_exported_file_alike(op: str, attrs: dict[str, Any], tmp_path: Path) -> None:
    session = Session(network(op, **attrs), FEEDS, preset="int8")
    model = session.quantized()
    path = write_onnx(model.annotated, tmp_path / "int8.onnx")
    stored = {made.name: made.data_type for made in onnx.load(path).graph.initializer}
    assert list(stored.values()).count(onnx.TensorProto.INT8) >= len(WEIGHTS)
    wanted = plan(model.graph).run(FEEDS[1])["y"]
    (theirs,) = onnxruntime(path).run(None, FEEDS[1])
    step = model.encodings["y"].qparams.scales[0]
    assert np.abs(theirs - wanted).max() <= 1.01 * step  # a state that differs in its last bit may round the other way
    assert np.mean(np.abs(theirs - wanted) > step / 2) < 0.01
    again = load(path)
    np.testing.assert_array_equal(plan(again).run(FEEDS[1])["y"], wanted)
    assert any(step.kernel.startswith("float.") and ".stored." in step.kernel for step in plan(again).profile(FEEDS[1]))


def test_a_layer_kept_in_float_has_real_weights() -> None:
    graph = network("nn.gru")
    session = Session(graph, FEEDS, preset="int8")
    session.override("first", keep_float=True)
    model = session.quantized()
    assert not {"w0", "r0"} & model.encodings.keys() and {"w1", "r1"} <= model.encodings.keys()
    assert [made.op for made in model.graph.nodes if made.name == "first"] == ["nn.gru"]


def test_weights_alone_are_stored_where_that_is_asked() -> None:
    graph = network("nn.lstm")
    model = Session(graph, FEEDS, config=QuantConfig.of_preset("weight_only")).quantized()
    assert model.encodings.keys() == {*WEIGHTS, "wd"}
    ops = [made.op for made in model.graph.nodes]
    assert ops.count("integer.lstm") == 2 and "qnn.quantize" not in ops
    assert decibels(plan(graph).run(FEEDS[0])["y"], plan(model.graph).run(FEEDS[0])["y"]) > 40


def test_tflite_files_hold_such_layers_as_real_numbers(tmp_path: Path) -> None:
    session = Session(network("nn.lstm"), FEEDS, preset="int8")
    path = export_tflite(session, tmp_path / "m.tflite")
    assert decibels(plan(session.quantized().graph).run(FEEDS[0])["y"], plan(load(path)).run(FEEDS[0])["y"]) > 30
