"""Modes beside static integers: weights that are only stored, data that are quantized by the range of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qbench.errors import ConfigError, DataError, GraphError
from qbench.exporters import write_onnx
from qbench.frontends import load
from qbench.ir.build import build
from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph
from qbench.ir.types import Dim, TensorType
from qbench.quant.config import Preset, QuantConfig
from qbench.quantize.quantized import Quantized
from qbench.runtime.interpreter import run
from qbench.runtime.programs import Programs
from qbench.session.session import Session
from tests.exporters.parity import session as onnxruntime
from tests.networks import node

RNG = np.random.default_rng(5)
IDS = np.arange(24, dtype=np.int64).reshape(4, 6) % 20


def network(*batch: Dim) -> Graph:
    """A table, two dense layers (64 to 96 to 32) and a bias; constants lie at all magnitudes."""
    random = np.random.default_rng(5)  # the same whatever other tests have drawn
    constants = {
        "table": random.standard_normal((20, 64)) * random.uniform(0.1, 3, (20, 1)),
        "w1": random.standard_normal((96, 64)) * random.uniform(0.01, 3, (96, 1)),
        "b1": random.standard_normal(96),
        "w2": random.standard_normal((32, 96)),
    }
    nodes = [
        node("take", ["table", "ids"], "x"),
        node("nn.dense", ["x", "w1"], "a"),
        node("nn.bias_add", ["a", "b1"], "b", axis=len(batch)),
        node("nn.relu", ["b"], "c"),
        node("nn.dense", ["c", "w2"], "y"),
    ]
    stored = {name: Constant(array.astype(np.float32)) for name, array in constants.items()}
    return build("g", {"ids": TensorType(batch, "int64")}, ("y",), nodes, stored)


def made(config: QuantConfig, *batch: Dim) -> tuple[Session, Quantized]:
    graph = network(*(batch or ("N", 6)))
    session = Session(graph, {"ids": IDS if len(graph.types["ids"].shape) == 2 else IDS.ravel()}, config=config)
    return session, session.quantized()


def rounded(weight: np.ndarray, block: int, low: int, high: int, symmetric: bool) -> np.ndarray:
    """A matrix rounded block by block, the slow and obvious way."""
    out = np.empty_like(weight)
    for row in range(weight.shape[0]):
        for first in range(0, weight.shape[1], block):
            part = weight[row, first : first + block]
            if symmetric:
                scale, zero = np.float32(float(np.abs(part).max()) / high), 0
            else:
                least, most = min(float(part.min()), 0.0), max(float(part.max()), 0.0)
                scale = np.float32((most - least) / (high - low))
                zero = round(low - least / ((most - least) / (high - low)))
            integers = np.clip(np.rint(part / scale) + zero, low, high)
            out[row, first : first + block] = (integers - zero).astype(np.float32) * scale
    return out


@pytest.mark.parametrize(
    ("weights", "levels"),
    [
        ({"dtype": "int8", "axis": "channel"}, (None, -127, 127, True)),
        ({"dtype": "int8", "axis": 32}, (32, -127, 127, True)),
        ({"dtype": "int4", "axis": 16}, (16, -7, 7, True)),
        ({"dtype": "uint4", "axis": 32, "symmetric": False, "narrow": False}, (32, 0, 15, False)),
    ],
)
@pytest.mark.parametrize("nbits", [False, True])
@pytest.mark.parametrize("batch", [("N", 6), ("N", "S"), ("N",)])
def test_stored_weights_are_those_of_the_oracle_here_and_in_the_file(
    weights: dict[str, Any], levels: tuple[Any, ...], nbits: bool, batch: tuple[Dim, ...], tmp_path: Path
) -> None:
    config = QuantConfig.from_data({"mode": "weight_only", "weights": {**weights, "bias_correction": False}})
    session, model = made(config, *batch)
    block, *rest = levels
    floats = {name: model.prepared.constants[name].array for name in ("w1", "w2")}
    expected = {name: rounded(array, block or array.shape[1], *rest) for name, array in floats.items()}
    for name, array in expected.items():
        reader = next(n for n in model.graph.nodes if n.op == "nn.dense" and n.inputs[1].startswith(name))
        np.testing.assert_array_equal(model.graph.constants[reader.inputs[1]].array, array)
        assert model.qnn.constants[name].dtype == weights["dtype"]
        assert model.qnn.qparams[name].block == block
    feeds = {"ids": IDS if len(batch) == 2 else IDS.ravel()}
    ours = run(model.graph, feeds)["y"]
    np.testing.assert_allclose(Programs(model.graph).of(feeds).run(feeds)["y"], ours, rtol=1e-4, atol=1e-4)
    path = write_onnx(model.annotated, tmp_path / "stored.onnx", nbits=nbits)
    (theirs,) = onnxruntime(path).run(None, feeds)
    assert np.abs(theirs - ours).max() <= 1e-5 * np.abs(ours).max()
    again = load(path)
    assert [n.op for n in again.nodes if n.op != "qnn.dequantize"] == [n.op for n in model.prepared.nodes]
    assert np.abs(run(again, feeds)["y"] - ours).max() <= 1e-5 * np.abs(ours).max()
    tuned = Session(again, feeds).quantized()
    assert {q for name, q in tuned.qnn.qparams.items()} == {q for name, q in again.qparams.items()}
    if not nbits:
        assert {q for name, q in again.qparams.items()} == {model.qnn.qparams[name] for name in ("w1", "w2")}
    assert {layer.runs_as for layer in session.run(progress=False).by_layer} == {"float32"}


def test_every_float_has_its_reason() -> None:
    _, model = made(QuantConfig.of_preset("weight_only"))
    reasons = {n.output: n.reason for n in model.annotated.nodes if n.op != "qnn.fake_quantize"}
    assert reasons["a"] == reasons["y"] == "weight only: default"
    assert reasons["b"] == reasons["c"] == reasons["x"] == "weight only: activations stay in float"
    assert "table" not in model.encodings


def test_a_layer_alone_is_stored_beside_static_ones() -> None:
    _, model = made(QuantConfig().with_rule(name="y", mode="weight_only", weights_dtype="int4", weights_axis=32))
    reasons = {n.output: n.reason for n in model.annotated.nodes if n.op == "nn.dense"}
    assert sorted(reasons.values()) == ["", "weight only: rule 0"]
    assert model.encodings["w2"].qparams.block == 32
    assert model.encodings["w2"].reason == "default: max; rule 0: dtype=int4; rule 0: axis=32"
    assert model.encodings["w1"].qparams.block is None
    assert [n.op for n in model.qnn.nodes].count("qnn.dense") == 1


def test_a_static_layer_beside_stored_ones_and_one_in_float() -> None:
    config = QuantConfig.of_preset("weight_only_int4").with_rule(name="y", keep_float=True)
    _, model = made(config)
    assert next(n.reason for n in model.annotated.nodes if n.output == "y") == "excluded by rule 0"
    assert "w2" not in model.encodings and model.encodings["w1"].qparams.block == 32
    _, model = made(QuantConfig.of_preset("weight_only_int4").with_rule(op="nn.dense", mode="static"))
    assert model.encodings["w1"].qparams.block is None
    assert "blocks are for weights that are only stored: axis=channel" in model.encodings["w1"].reason


def test_a_table_is_stored_where_a_rule_asks() -> None:
    session, model = made(QuantConfig().with_rule(op="take", mode="weight_only"))
    table, q = model.prepared.constants["table"].array, model.encodings["table"].qparams
    assert q.axis == 0 and len(q.scales) == 20
    expected = run(model.qnn, {"ids": IDS}, keep=["x"])["x"]
    np.testing.assert_array_equal(expected, rounded(table, 64, -127, 127, True)[IDS])
    session.override("table", dtype="int4")
    assert session.quantized().encodings["table"].qparams.dtype == "int4"


def test_in_place_of_blocks_that_do_not_divide_go_such_as_do_unless_they_are_asked_for() -> None:
    config = QuantConfig(mode="weight_only").with_value("weights.axis", 64)
    session, model = made(config)
    assert model.encodings["w1"].qparams.block == 64
    assert model.encodings["w2"].qparams.block == 48
    assert "blocks of 64 do not divide its 96 inputs: axis=48" in model.encodings["w2"].reason
    many = made(config.with_value("weights.axis", 1000))[1].encodings["w2"]
    assert many.qparams.block is None
    assert "blocks of 1000 do not divide its 96 inputs: axis=channel" in many.reason
    with pytest.raises(ConfigError, match=r"tensors\.w2\.axis: cannot be 64: blocks of 64 do not divide its 96 inputs"):
        session.override("w2", axis=64)
    session.override("w2", axis=48)
    assert session.quantized().encodings["w2"].qparams.block == 48


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s.override("c", mode="weight_only"), r"layers\.\w+\.mode: nn\.relu has no form of weight_only"),
        (
            lambda s: s.edit("", s.config.with_rule(op="nn.relu", mode="weight_only")),
            r"rules\[0\]\.mode: none of the 1",
        ),
        (
            lambda s: s.edit("", s.config.with_rule(op="nn.dense", mode="weight_only", weights_axis=7919)),
            r"rules\[0\]\.weights_axis: none of the 2 weights can have it: blocks of 7919 do not divide its 64 inputs",
        ),
        (lambda s: s.edit("", s.config.with_rule(op="take", mode="dynamic")), r"rules\[0\]\.mode: none of the 1"),
        (lambda s: s.edit("", s.config.with_rule(op="*", mode="int4")), r"rules\[0\]\.mode"),
        (lambda s: s.edit("", s.config.with_value("weights.axis", 1)), r"weights\.axis"),
        (lambda s: s.edit("", s.config.with_value("mode", "float")), r"mode"),
    ],
)
def test_what_no_layer_can_do_is_refused(change: Any, words: str) -> None:
    session, _ = made(QuantConfig())
    with pytest.raises(ConfigError, match=words):
        change(session)


@pytest.mark.parametrize("preset", ["dynamic", "weight_only", "weight_only_int4"])
def test_presets_read_back(preset: Preset) -> None:
    config = QuantConfig.of_preset(preset)
    assert QuantConfig.from_json(config.to_json()) == config
    assert QuantConfig.from_data({"version": 1}).mode == "static"


def test_convolutions_are_stored_with_a_scale_for_each_channel(tmp_path: Path) -> None:
    weight = RNG.standard_normal((8, 3, 3, 3)).astype(np.float32)
    nodes = [node("nn.conv2d", ["x", "w"], "y", padding=(1, 1, 1, 1))]
    graph = build("g", {"x": TensorType(("N", 3, 8, 8), "float32")}, ("y",), nodes, {"w": Constant(weight)})
    x = RNG.standard_normal((4, 3, 8, 8)).astype(np.float32)
    model = Session(graph, x, preset="weight_only_int4").quantized()
    q = model.encodings["w"].qparams
    assert (q.axis, q.block, len(q.scales)) == (0, None, 8)
    ours = run(model.graph, {"x": x})["y"]
    (theirs,) = onnxruntime(write_onnx(model.annotated, tmp_path / "conv.onnx")).run(None, {"x": x})
    assert np.abs(theirs - ours).max() <= 1e-5 * np.abs(ours).max()


def by_hand(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """One dense layer on one sample, number by number as onnxruntime computes it."""
    scales = np.float32(np.abs(weight).max(axis=1).astype(np.float64) / 127)
    integers = np.clip(np.rint(weight / scales[:, None]), -127, 127).astype(np.int64)
    low, high = np.float32(min(float(x.min()), 0.0)), np.float32(max(float(x.max()), 0.0))
    step = np.float32(high - low) / np.float32(255) if low != high else np.float32(1)
    zero = int(np.rint(-low / step))
    codes = np.clip(np.rint(x / step).astype(np.int64) + zero, 0, 255)
    return ((codes - zero) @ integers.T).astype(np.float32) * (step * scales)


@pytest.mark.parametrize("batch", [("N", 6), ("N", "S"), ("N",)])
def test_data_are_quantized_by_the_range_of_each_sample(batch: tuple[Dim, ...], tmp_path: Path) -> None:
    session, model = made(QuantConfig.of_preset("dynamic"), *batch)
    feeds = {"ids": IDS if len(batch) == 2 else IDS.ravel()}
    found = run(model.graph, feeds, keep=["x", "a", "c"])
    for data, weight, out in (("x", "w1", "a"), ("c", "w2", "y")):
        array = model.prepared.constants[weight].array
        expected = np.stack([by_hand(sample, array) for sample in found[data]])
        np.testing.assert_array_equal(found[out], expected)
    np.testing.assert_array_equal(Programs(model.graph).of(feeds).run(feeds)["y"], found["y"])
    faked = run(model.annotated, feeds)["y"]
    assert np.abs(faked - found["y"]).max() <= 1e-5 * np.abs(faked).max()
    path = write_onnx(model.annotated, tmp_path / "dynamic.onnx")
    runtime, again = onnxruntime(path), load(path)
    for first in range(2):  # a file has one range for all that it is given
        one = {"ids": feeds["ids"][first : first + 1]}
        (theirs,) = runtime.run(None, one)
        np.testing.assert_allclose(theirs, found["y"][first : first + 1], rtol=1e-6, atol=1e-6 * np.abs(theirs).max())
    (together,) = runtime.run(None, feeds)
    for ours in (run(again, feeds)["y"], Programs(again).of(feeds).run(feeds)["y"]):
        np.testing.assert_allclose(ours, together, rtol=1e-6, atol=1e-6 * np.abs(together).max())
    layers = {layer.tensor: layer for layer in session.run(progress=False).by_layer}
    assert (layers["a"].runs_as, layers["a"].reason) == ("uint8", "dynamic: default")
    assert (layers["c"].runs_as, layers["c"].reason) == ("float32", "dynamic: activations stay in float")


@pytest.mark.parametrize("weights", [{"dtype": "int4"}, {"dtype": "uint4", "symmetric": False}, {"axis": None}])
def test_weights_of_fewer_bits_and_scales(weights: dict[str, Any], tmp_path: Path) -> None:
    _, model = made(QuantConfig.from_data({"mode": "dynamic", "weights": weights}))
    ours = run(model.graph, {"ids": IDS[:1]})["y"]
    np.testing.assert_array_equal(Programs(model.graph).of({"ids": IDS[:1]}).run({"ids": IDS[:1]})["y"], ours)
    (theirs,) = onnxruntime(write_onnx(model.annotated, tmp_path / "few.onnx")).run(None, {"ids": IDS[:1]})
    np.testing.assert_allclose(theirs, ours, rtol=1e-6, atol=1e-6 * np.abs(ours).max())


def test_weights_that_are_too_wide_are_refused() -> None:
    with pytest.raises(GraphError, match=r"is uint8 with a zero point.*mode dynamic needs int8 or 4 bits"):
        made(QuantConfig.from_data({"mode": "dynamic", "weights": {"dtype": "uint8", "symmetric": False}}))


@pytest.mark.parametrize("extreme", [0.0, 3e38, 1e-42])
def test_data_at_the_ends_of_float32(extreme: float) -> None:
    weight = Constant(RNG.standard_normal((5, 40)).astype(np.float32))
    nodes = [node("nn.dense", ["x", "w"], "y"), node("nn.relu", ["y"], "z")]
    graph = build("g", {"x": TensorType(("N", 3, 40), "float32")}, ("z",), nodes, {"w": weight})
    model = Session(graph, RNG.standard_normal((4, 3, 40)).astype(np.float32), preset="dynamic").quantized()
    x = (RNG.uniform(-1, 1, (3, 3, 40)) * extreme).astype(np.float32)
    x[0] = 0
    with np.errstate(all="ignore"):
        expected = run(model.graph, {"x": x})["z"]
    np.testing.assert_array_equal(Programs(model.graph).of({"x": x}).run({"x": x})["z"], expected)


def test_nan_within_is_told() -> None:
    weight = Constant(RNG.standard_normal((5, 40)).astype(np.float32))
    nodes = [node("sqrt", ["x"], "r"), node("nn.dense", ["r", "w"], "y")]
    graph = build("g", {"x": TensorType(("N", 3, 40), "float32")}, ("y",), nodes, {"w": weight})
    x = RNG.uniform(1, 2, (4, 3, 40)).astype(np.float32)
    model = Session(graph, x, preset="dynamic").quantized()
    x[1, 2, 3] = -1
    for compute in (lambda: run(model.graph, {"x": x}), lambda: Programs(model.graph).of({"x": x}).run({"x": x})):
        with np.errstate(invalid="ignore"), pytest.raises(DataError, match="NaN"):
            compute()


def test_dynamic_beside_static_and_stored_layers() -> None:
    config = QuantConfig().with_rule(name="a", mode="dynamic").with_rule(op="take", mode="weight_only")
    _, model = made(config)
    ops = [n.op for n in model.graph.nodes]
    assert "qnn.dynamic_dense" in ops and "integer.dense" in ops
    assert model.encodings["table"].qparams.axis == 0
    ours = run(model.graph, {"ids": IDS})["y"]
    np.testing.assert_allclose(Programs(model.graph).of({"ids": IDS}).run({"ids": IDS})["y"], ours, rtol=1e-5)


def test_stored_blocks_are_rounded_with_the_data_in_mind() -> None:
    """Inputs that go together leave room that rounding to the nearest does not use."""
    mixed = RNG.standard_normal((64, 12)) @ RNG.standard_normal((12, 64)) + 0.1 * RNG.standard_normal((64, 64))
    nodes = [node("nn.dense", ["x", "w"], "y")]
    weight = Constant(RNG.standard_normal((24, 64)).astype(np.float32))
    graph = build("g", {"x": TensorType(("N", 64), "float32")}, ("y",), nodes, {"w": weight})
    x = (RNG.standard_normal((400, 64)) @ mixed).astype(np.float32)
    nearest = QuantConfig.from_data({"mode": "weight_only", "weights": {"dtype": "int4", "axis": 16}})
    errors = list[float]()
    for config in (nearest, nearest.with_value("weights.rounding", "sequential")):
        model = Session(graph, x, config=config).quantized()
        q = model.encodings["w"].qparams
        made = model.qnn.constants["w"].array
        assert (q.block, len(q.scales), int(made.min()) >= -7) == (16, 96, True)
        errors.append(float(np.square(run(model.graph, {"x": x})["y"] - run(graph, {"x": x})["y"]).mean()))
    assert errors[1] < errors[0] / 2


def test_weights_behind_what_hangs_on_an_open_length_are_rounded_sequentially() -> None:
    nodes = [
        node("sizes", [], "s", values=("S",), shape=(1,), dtype="int64"),
        node("cast", ["s"], "f", dtype="float32"),
        node("add", ["x", "f"], "a"),
        node("nn.dense", ["a", "w"], "y"),
    ]
    weight = Constant(RNG.standard_normal((8, 16)).astype(np.float32))
    graph = build("g", {"x": TensorType(("N", "S", 16), "float32")}, ("y",), nodes, {"w": weight})
    x = RNG.standard_normal((20, 7, 16)).astype(np.float32)
    config = QuantConfig.of_preset("weight_only").with_value("weights.rounding", "sequential")
    model = Session(graph, x, config=config).quantized()
    assert "rounded sequentially" in model.encodings["w"].reason
