"""Sums of products that only layers in float read: they become real numbers without being rounded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from qbench.exporters import write_onnx
from qbench.frontends import load
from qbench.ir.build import build
from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph
from qbench.ir.types import TensorType
from qbench.quant.config import QuantConfig
from qbench.quantize.quantized import Quantized
from qbench.runtime.interpreter import run
from qbench.runtime.programs import plan
from qbench.session.export import export_tflite
from qbench.session.session import Session
from tests.exporters.parity import fused_ops
from tests.exporters.parity import session as onnxruntime
from tests.networks import node

WIDTH, ROWS = 32, 6
FEEDS = [{"x": np.random.default_rng(i).normal(size=(ROWS, WIDTH)).astype(np.float32)} for i in range(20)]


def stream() -> Graph:
    """Two normalized branches that are added to a stream of floats; one moves what it made, and both have biases."""
    random, shapes = np.random.default_rng(3), {"w1": (WIDTH, WIDTH), "w2": (WIDTH, WIDTH), "b1": WIDTH, "b2": WIDTH}
    held = {name: random.normal(size=shape) / np.sqrt(WIDTH) for name, shape in shapes.items()}
    held |= {"gamma": random.uniform(0.5, 2, WIDTH), "beta": random.normal(size=WIDTH)}
    nodes = [
        node("nn.layer_norm", ["x", "gamma", "beta"], "n1"),
        node("nn.dense", ["n1", "w1"], "d1"),
        node("nn.bias_add", ["d1", "b1"], "a1"),
        node("reshape", ["a1"], "m1", newshape=(ROWS, 2, WIDTH // 2)),
        node("reshape", ["m1"], "r1", newshape=(ROWS, WIDTH)),
        node("add", ["x", "r1"], "s1"),
        node("nn.layer_norm", ["s1", "gamma", "beta"], "n2"),
        node("nn.dense", ["n2", "w2"], "d2"),
        node("nn.bias_add", ["d2", "b2"], "a2"),
        node("add", ["s1", "a2"], "s2"),
        node("nn.layer_norm", ["s2", "gamma", "beta"], "y"),
    ]
    constants = {name: Constant(array.astype(np.float32)) for name, array in held.items()}
    return build("stream", {"x": TensorType((ROWS, WIDTH), "float32")}, ("y",), nodes, constants)


DEFAULT = QuantConfig.of_preset("default").with_value("weights.bias_correction", False)


def made(config: QuantConfig = DEFAULT) -> Quantized:
    return Session(stream(), FEEDS, config=config).quantized()


WIDE = DEFAULT.override_many("tensors", ["n1", "n2"], dtype="int16")


@pytest.mark.parametrize("config", [DEFAULT, WIDE], ids=["8 bits", "16 bits"])
def test_they_are_the_sums_times_their_scale(config: QuantConfig) -> None:
    model = made(config)
    assert model.encodings.keys() == {"n1", "n2", "w1", "w2"}
    feeds, kept = FEEDS[0], ("n1.quantized", "a1")
    values = run(model.graph, feeds, kept)
    q, w = model.encodings["n1"].qparams, model.encodings["w1"].qparams
    integers, weight = values["n1.quantized"].astype(np.int64), model.qnn.constants["w1"].array.astype(np.int64)
    scales = q.scales[0] * np.asarray(w.scales)
    bias = np.rint(stream().constants["b1"].array / scales)
    wanted = ((integers - q.zero_points[0]) @ weight.T + bias) * scales
    np.testing.assert_allclose(values["a1"], wanted, rtol=1e-6)
    program = plan(model.graph, keep=kept)
    assert not program.fallbacks
    np.testing.assert_array_equal(program.run(feeds, keep=kept)["a1"], values["a1"])


def test_onnxruntime_multiplies_integers_and_a_file_comes_back_as_it_was(tmp_path: Path) -> None:
    model = made()
    path = write_onnx(model.annotated, tmp_path / "int8.onnx")
    assert onnx.TensorProto.INT16 not in {held.data_type for held in onnx.load(path).graph.initializer}
    ops = fused_ops(path)
    assert ops["MatMulIntegerToFloat"] + ops["QGemm"] == 2 and not ops["MatMul"] + ops["Gemm"], ops
    ours = plan(model.graph).run(FEEDS[1])["y"]
    (theirs,) = onnxruntime(path).run(None, FEEDS[1])
    np.testing.assert_allclose(theirs, ours, rtol=0, atol=1e-4)
    again = load(path)
    np.testing.assert_array_equal(plan(again).run(FEEDS[1])["y"], ours)


def test_a_tflite_file_has_them_in_16_bits(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """TFLite's layers of integers make integers."""
    session = Session(stream(), FEEDS, config=DEFAULT)
    again = load(export_tflite(session, tmp_path / "int8.tflite"))
    ops = [made.op for made in again.nodes]
    assert ops.count("qnn.dense") == 2 and "nn.dense" not in ops and not caplog.records
    ours, theirs = (plan(graph).run(FEEDS[1])["y"] for graph in (session.graph, again))
    assert np.abs(theirs - ours).max() < 0.02 * np.abs(ours).max()


def test_a_threshold_that_somebody_gives_is_kept() -> None:
    model = made(DEFAULT.override_many("tensors", ["a1"], threshold=2.0, dtype="int8"))
    assert model.encodings["a1"].qparams.dtype == "int8" and "a2" not in model.encodings
    values = run(model.graph, FEEDS[0], ("a1",))
    assert model.graph.qparams["a1"] == model.encodings["a1"].qparams
    assert values["a1"].dtype == np.int8
