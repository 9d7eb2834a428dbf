"""Sessions of models that were quantized before they were loaded."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from qbench.errors import ConfigError, SessionError
from qbench.ir.build import build, rebuild
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.passes.imported import integer_borders
from qbench.quant.arithmetic import dequantize, quantize
from qbench.runtime.interpreter import run
from qbench.session.session import Session
from tests.passes.quantizable import every_op, sample


@pytest.fixture(scope="module")
def realized() -> Graph:
    """A quantized graph of every op, as a frontend gives it."""
    graph = every_op()
    session = Session(graph, sample(graph, 8), preset="int8")
    return next(step.graph for step in session.graphs.steps if step.name == "realize")


@pytest.fixture(scope="module")
def x(realized: Graph) -> np.ndarray:
    return sample(realized, 6, seed=3)


def outputs(graph: Graph, x: np.ndarray) -> dict[str, np.ndarray]:
    return run(graph, {graph.inputs[0]: x})


def assert_same(one: Graph, other: Graph, x: np.ndarray) -> None:
    given, found = outputs(one, x), outputs(other, x)
    for name, array in given.items():
        np.testing.assert_array_equal(found[name], array)


def integers_in_and_out() -> tuple[Graph, np.ndarray]:
    """A concat of a convolution with its own input, integers from end to end; its bias needs more than 24 bits."""
    q = {
        "x": QParams(0.05, 120, "uint8"),
        "w": QParams((1e-6, 2e-6), (0, 0), "int8", 0),
        "c.accumulator": QParams((0.05 * float(np.float32(1e-6)), 0.05 * float(np.float32(2e-6))), (0, 0), "int32", 1),
        "y": QParams(0.05, 120, "uint8"),
        "c": QParams(0.05, 120, "uint8"),
    }
    q["c.sums"] = q["c.accumulator"]
    q["b"] = dataclasses.replace(q["c.accumulator"], axis=0)
    rng = np.random.default_rng(0)
    constants = {
        "w": Constant(rng.integers(-128, 128, (2, 2, 1, 1)).astype(np.int8)),
        "b": Constant(np.array([2**26 + 1, -(2**25) - 3], np.int32)),
    }
    nodes = [
        Node("conv", "qnn.conv2d", ("x", "w"), ("c.accumulator",)),
        Node("bias", "nn.bias_add", ("c.accumulator", "b"), ("c.sums",)),
        Node("narrow", "qnn.requantize", ("c.sums",), ("c",), FrozenMap({"rounding": "tflite_double"})),
        Node("concat", "concatenate", ("x", "c"), ("y",), FrozenMap({"axis": 1})),
    ]
    graph = build("integers", {"x": TensorType(("N", 2, 3, 3), "uint8")}, ["y"], nodes, constants, q)
    return graph, rng.integers(0, 256, (5, 2, 3, 3)).astype(np.uint8)


def test_an_untouched_import_computes_the_same_bits(realized: Graph, x: np.ndarray) -> None:
    session = Session(realized, x)
    assert_same(realized, session.graph, x)
    assert {encoding.reason for encoding in session.encodings.values()} == {"imported"}
    report = session.run(progress=False)
    assert report.output.agreement == 1
    assert all(layer.chosen_by in (None, "imported") for layer in report.by_layer)


def test_integer_inputs_and_outputs_stay_and_wide_biases_keep_every_bit() -> None:
    graph, x = integers_in_and_out()
    session = Session(graph, x)
    assert session.graph.types["x"].dtype == session.graph.types["y"].dtype == "uint8"
    assert_same(graph, session.graph, x)
    by_reals = Session(graph, dequantize(x, graph.qparams["x"]))
    assert by_reals.statistics == session.statistics
    assert session.run(progress=False).output.sqnr_db > 30


def test_sums_of_a_scale_for_each_channel_that_become_real_numbers_have_an_error_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("qbench.evaluate.evaluate._SMALL", 0)  # samples of values, as of large networks
    graph, x = integers_in_and_out()
    nodes = [
        *(node for node in graph.nodes if node.name in ("conv", "bias")),
        Node("reals", "qnn.dequantize", ("c.sums",), ("r",)),
        Node("cut", "squeeze", ("r",), ("s",), FrozenMap({"axes": (3,)})),
        Node("round", "qnn.quantize", ("s",), ("y",)),
    ]
    kinds, q = {"x": TensorType(("N", 2, 3, 1), "uint8")}, {**graph.qparams, "y": QParams(2e-6, 0, "int8")}
    session = Session(build("reals", kinds, ["y"], nodes, graph.constants, q), x[..., :1])
    assert session.graph.qparams["c.sums"].axis == 1
    (layer,) = (layer for layer in session.run(progress=False).by_layer if layer.name == "bias")
    assert layer.own_sqnr_db is not None
    assert layer.own_sqnr_db > 90


def test_a_file_of_uint16_is_tuned_in_uint16() -> None:
    q = QParams(2**-12, 30000, "uint16")
    nodes = [Node("in", "qnn.quantize", ("x",), ("a",)), Node("out", "qnn.dequantize", ("a",), ("b",))]
    nodes.append(Node("next", "nn.relu", ("b",), ("y",)))
    graph = build("wide", {"x": TensorType(("N", 6), "float32")}, ["y"], nodes, {}, {"a": q})
    x = np.random.default_rng(0).normal(size=(8, 6)).astype(np.float32)
    session = Session(graph, x)
    assert_same(graph, session.graph, x)
    session.override("x", scale=2**-11)
    assert session.encodings["x"].qparams == QParams(2**-11, 30000, "uint16")
    session.recalibrate("x")
    assert session.encodings["x"].qparams.dtype == "uint16"
    assert session.run(progress=False).output.sqnr_db > 70


def test_tensors_that_share_a_scale_go_together() -> None:
    graph, x = integers_in_and_out()
    session = Session(graph, x)
    session.override("conv", scale=0.1, zero_point=100)
    assert {session.graph.qparams[name] for name in ("x", "c", "y")} == {QParams(0.1, 100, "uint8")}
    with pytest.raises(ConfigError, match="one scale"):
        session.override("x", scale=0.2)
    session.recalibrate("concat")
    (q,) = {session.encodings[name].qparams for name in ("x", "c", "y")}
    assert session.encodings["x"].reason == "default: mse"
    assert q == session.graph.qparams["c"]


def test_an_override_changes_that_tensor_and_undo_brings_the_bits_back(realized: Graph, x: np.ndarray) -> None:
    session = Session(realized, x)
    session.override("relu1", scale=0.02, zero_point=3, dtype="uint8")
    assert session.encodings["r1"].qparams == QParams(0.02, 3, "uint8")
    assert session.encodings["k1"].reason == "imported"
    assert session.graph.qparams["r1"] == QParams(0.02, 3, "uint8")
    assert session.graph.qparams["w2"] == realized.qparams["w2"]
    assert outputs(session.graph, x)["f2"].tolist() != outputs(realized, x)["f2"].tolist()
    session.reset("relu1")
    assert session.config.tensors["r1"] == Session(realized, x).config.tensors["r1"]
    session.undo()
    session.undo()
    assert_same(realized, session.graph, x)


def test_recalibration_drops_scales(realized: Graph, x: np.ndarray) -> None:
    session = Session(realized, x)
    session.recalibrate("conv1")
    assert session.encodings["r1"].reason.startswith("default: mse")
    assert session.encodings["w1"].reason == "imported"
    session.recalibrate()
    assert "imported" not in {encoding.reason for encoding in session.encodings.values()}
    assert not session.config.tensors
    assert session.run(progress=False).output.sqnr_db > 25


@pytest.mark.parametrize(
    "name", ["conv1", "add", "sigmoid", "gate", "pool", "concat", "dilated", "lone_bias", "matmul"]
)
def test_any_layer_can_be_kept_in_float(realized: Graph, x: np.ndarray, name: str) -> None:
    session = Session(realized, x)
    node = session.prepared.by_name.get(name) or next(n for n in session.prepared.nodes if name in n.sources)
    session.override(node.name, keep_float=True)
    runs = {layer.name: layer.runs_as for layer in session.run(progress=False).by_layer}
    assert runs[node.name] == "float32"
    assert session.graph.by_name[node.name].reason == "excluded by the user"
    assert session.report is not None
    assert session.report.output.sqnr_db > 25


def test_every_layer_in_float_is_the_twin(realized: Graph, x: np.ndarray) -> None:
    session = Session(realized, x)
    session.edit("all", session.config.with_rule(op="*", keep_float=True))
    twin = outputs(session.prepared, dequantized_input(session, x))
    for name, array in outputs(session.graph, x).items():
        np.testing.assert_allclose(array, twin[name], rtol=1e-4, atol=1e-5)


def dequantized_input(session: Session, x: np.ndarray) -> np.ndarray:
    q = session.encodings["x"].qparams
    return dequantize(quantize(x, q), q)


def test_float_weights_by_name(realized: Graph, x: np.ndarray) -> None:
    graph = every_op()
    session = Session(realized, x, float_model=graph)
    np.testing.assert_array_equal(session.prepared.constants["w1"].array, graph.constants["w1"].array)
    assert_same(realized, session.graph, x)
    own = Session(graph, x)
    session.recalibrate("w1")
    assert session.encodings["w1"].qparams == own.encodings["w1"].qparams
    np.testing.assert_array_equal(session.graph.constants["w1"].array, own.graph.constants["w1"].array)


def test_a_float_model_of_something_else_is_named(realized: Graph, x: np.ndarray) -> None:
    graph = every_op()
    renamed = {name + "_": constant for name, constant in graph.constants.items()}
    nodes = [
        dataclasses.replace(
            node,
            name=node.name + "_",
            inputs=tuple(name + "_" if name in graph.constants else name for name in node.inputs),
        )
        for node in graph.nodes
    ]
    with pytest.raises(SessionError, match="weight 'w1' is not in it"):
        Session(realized, x, float_model=rebuild(graph, nodes=nodes, constants=renamed))
    with pytest.raises(SessionError, match="float itself"):
        Session(graph, x, float_model=graph)


def test_a_session_of_an_import_is_resumed(realized: Graph, x: np.ndarray, tmp_path: Path) -> None:
    session = Session(realized, x, path=tmp_path / "s", float_model=every_op())
    session.override("relu1", threshold=2.0)
    report = session.run(progress=False)
    again = Session.resume(tmp_path / "s")
    assert again.config == session.config
    assert again.report == report
    assert again.graph == session.graph
    assert again.run(progress=False).output == report.output
    again.undo()
    assert_same(realized, again.graph, x)


def test_integer_data_is_kept_for_the_next_time(tmp_path: Path) -> None:
    graph, x = integers_in_and_out()
    session = Session(graph, [x[:3], x[3:]], x, path=tmp_path / "s")
    report = session.run(progress=False)
    again = Session.resume(tmp_path / "s")
    assert again.run(progress=False).output == report.output
    assert_same(graph, again.graph, x)


def test_what_cannot_be_tuned_is_named() -> None:
    graph, x = integers_in_and_out()
    legal = Session(graph, x).graph
    with pytest.raises(SessionError, match="down to integers"):
        Session(legal, x)
    with pytest.raises(ConfigError, match="load it so"):
        Session(graph, x).edit("onnx", Session(graph, x).config.with_value("semantics", "onnx"))


def test_without_borders_nothing_changes() -> None:
    graph = every_op()
    assert integer_borders(graph, FrozenMap()) is graph
