from __future__ import annotations

import numpy as np
import pytest

import qbench as qb
from qbench.cli import main
from qbench.errors import ConfigError, DataError, ModelError
from qbench.parity import LiteRT, Portion
from tests.frontends.tflite.loops import recurrent
from tests.frontends.tflite.test_functions import ROWS, handle, rows, streaming
from tests.tflite_files import Function, Operator, Tensor, constant, litert, model, operator

pytest.importorskip("ai_edge_litert", reason="ai-edge-litert has no wheel here")

RNG = np.random.default_rng(3)
X = RNG.integers(-128, 128, (4, 7, 6, 3)).astype(np.int8)


def network() -> bytes:
    """Two convolutions without relu, so that saturation hides nothing, then flat for a dense layer."""
    weights = [RNG.integers(-127, 128, (8, 3, 3, inputs)).astype(np.int8) for inputs in (3, 8)]
    scales = [tuple(RNG.uniform(0.002, 0.004, 8)) for _ in weights]
    flat = RNG.integers(-127, 128, (10, 7 * 6 * 8)).astype(np.int8)
    tensors = [
        Tensor("x", (1, 7, 6, 3), "int8", scale=0.05, zero_point=-4, signature=(-1, 7, 6, 3)),
        constant("w1", weights[0], scale=scales[0]),
        constant("b1", RNG.integers(-900, 900, 8).astype(np.int32), scale=tuple(0.05 * s for s in scales[0])),
        Tensor("first", (1, 7, 6, 8), "int8", scale=0.07, zero_point=3, signature=(-1, 7, 6, 8)),
        constant("w2", weights[1], scale=scales[1]),
        constant("b2", RNG.integers(-900, 900, 8).astype(np.int32), scale=tuple(0.07 * s for s in scales[1])),
        Tensor("second", (1, 7, 6, 8), "int8", scale=0.3, zero_point=-7, signature=(-1, 7, 6, 8)),
        constant("shape", np.array([-1, 7 * 6 * 8], np.int32)),
        Tensor("flat", (1, 7 * 6 * 8), "int8", scale=0.3, zero_point=-7, signature=(-1, 7 * 6 * 8)),
        constant("w3", flat, scale=0.003),
        Tensor("y", (1, 10), "int8", scale=0.9, zero_point=2, signature=(-1, 10)),
    ]
    operators = [
        operator("CONV_2D", ["x", "w1", "b1"], ["first"], padding="SAME", stride_w=1, stride_h=1),
        operator("CONV_2D", ["first", "w2", "b2"], ["second"], padding="SAME", stride_w=1, stride_h=1),
        operator("RESHAPE", ["second", "shape"], ["flat"], new_shape=(-1, 7 * 6 * 8)),
        operator("FULLY_CONNECTED", ["flat", "w3", ""], ["y"]),
    ]
    return model(tensors, operators)


DATA = network()


@pytest.fixture
def path(tmp_path):
    place = tmp_path / "small.tflite"
    place.write_bytes(DATA)
    return place


RESOLVERS = {"reference": "BUILTIN_REF", "builtin": "BUILTIN_WITHOUT_DEFAULT_DELEGATES"}


@pytest.mark.parametrize("kernels", RESOLVERS)
def test_every_tensor_is_seen_with_its_channels_first(path, kernels):
    runtime = LiteRT(path, kernels)
    assert {name: made.op for name, made in runtime.made.items()} == {
        "first": "CONV_2D", "second": "CONV_2D", "flat": "RESHAPE", "y": "FULLY_CONNECTED",
    }  # fmt: skip
    expected = litert(DATA, {"x": X}, RESOLVERS[kernels])
    found = runtime.run(Portion({"x": X}, 0, 4, 4), ["first", "flat", "y"])
    assert np.array_equal(found["first"], expected["first"].transpose(0, 3, 1, 2))
    assert np.array_equal(found["flat"], expected["flat"]) and np.array_equal(found["y"], expected["y"])


@pytest.mark.filterwarnings("ignore:Warning. Enabling:UserWarning")  # LiteRT's, of seeing tensors beside a delegate
def test_a_delegate_shows_every_tensor_too_and_gives_what_it_gives_alone(path):
    runtime = LiteRT(path, "xnnpack")
    found = runtime.run(Portion({"x": X}, 0, 4, 4), list(runtime.made))
    alone = litert(DATA, {"x": X[:1]}, "BUILTIN")["y"]
    assert np.array_equal(found["y"][:1], alone)
    assert [found[name].shape for name in runtime.made] == [(4, 8, 7, 6), (4, 8, 7, 6), (4, 336), (4, 10)]


def test_the_reference_kernels_are_matched_and_the_others_differ_about_as_often_as_predicted(path):
    graph, many = qb.load(path), np.random.default_rng(5).integers(-128, 128, (300, 7, 6, 3)).astype(np.int8)
    same = qb.compare(graph, LiteRT(path), many[:50])
    assert (same.different, same.different_end_to_end, same.missing) == (0, 0, ())
    assert [layer.op for layer in same.layers] == ["qnn.conv2d", "qnn.conv2d", "reshape", "qnn.dense"]
    other = qb.compare(graph, LiteRT(path, "builtin"), many)
    assert other.first is not None and other.first.tensor == "first"
    assert other.first.roundings == ("tflite_double", "litert_builtin")
    for layer in other.layers[:2]:
        expected = layer.predicted * layer.elements
        assert layer.different == pytest.approx(expected, abs=5 * np.sqrt(expected)) and expected > 20
        assert layer.max_lsb == 1
    neural = qb.compare(qb.load(path, semantics="onnx"), LiteRT(path, "xnnpack"), many[:50])
    assert neural.different == 0 and neural.layers[0].roundings == ("fp32_rne", "fp32_rne")


def test_layouts_follow_the_graph(path):
    graph = qb.load(path, layout="NCHW")
    runtime = LiteRT(path, layout="NCHW")
    assert str(runtime.inputs["x"]) == str(graph.types["x"]) == "Tensor[(N, 3, 7, 6), int8]"
    assert str(LiteRT(path).inputs["x"]) == "Tensor[(N, 7, 6, 3), int8]"
    assert qb.compare(graph, runtime, np.ascontiguousarray(X.transpose(0, 3, 1, 2))).different == 0


def test_two_sets_of_kernels_are_compared_with_each_other(path):
    found = qb.compare(LiteRT(path), LiteRT(path, "builtin"), X)
    assert (found.fed, found.left, found.right) == ("", "LiteRT reference", "LiteRT builtin")
    assert [layer.op for layer in found.layers] == ["CONV_2D", "CONV_2D", "RESHAPE", "FULLY_CONNECTED"]


def test_what_is_wrong_is_said(path, tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match="'fast' is none of reference, builtin, xnnpack"):
        LiteRT(path, "fast")
    with pytest.raises(DataError, match=r"LiteRT cannot run .*small\.tflite"):
        LiteRT(path).run(Portion({"x": X.astype(np.float32)}, 0, 4, 4), ["y"])
    with pytest.raises(ModelError, match="cannot read"):
        _ = LiteRT(tmp_path / "missing.tflite").made
    broken = tmp_path / "broken.tflite"
    broken.write_bytes(DATA[:200])
    with pytest.raises(ModelError, match="damaged"):
        _ = LiteRT(broken).made

    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr("qbench.parity.peers.import_module", absent)
    with pytest.raises(ConfigError, match="pip install ai-edge-litert"):
        LiteRT(path).run(Portion({"x": X}, 0, 4, 4), ["y"])


def test_the_command_checks_kernels_and_semantics(path, tmp_path, capsys):
    np.save(tmp_path / "x.npy", X)
    words = ["check", str(path), "--against", "litert", "--input", str(tmp_path / "x.npy")]
    assert main(words) == 0
    assert main([*words, "--kernels", "builtin"]) == 1
    assert "first divergent op: first (qnn.conv2d): tflite_double against litert_builtin" in capsys.readouterr().out
    assert main([*words, "--kernels", "xnnpack", "--semantics", "onnx"]) == 0
    np.save(tmp_path / "real.npy", (X.astype(np.float32) + 4) * np.float32(0.05))
    assert main([*words[:-1], str(tmp_path / "real.npy")]) == 0  # real numbers are quantized as the model says


def remembering() -> bytes:
    """The last rows of all runs beside the new one, doubled."""
    tensors = [
        *(rows("x", 1), rows("old", ROWS), rows("all", ROWS + 1), rows("left", ROWS), Tensor("h", (), "resource")),
        Tensor("y", (1, ROWS + 1, 3), "int8", scale=1.0, zero_point=-3),
        *(constant("begin", np.int32([0, 1, 0])), constant("size", np.int32([1, ROWS, 3]))),
    ]
    operators = [
        Operator("CALL_ONCE", [], [], {"init_subgraph_index": 1}),
        handle("h", "rows"),
        operator("READ_VARIABLE", ["h"], ["old"]),
        operator("CONCATENATION", ["old", "x"], ["all"], axis=1),
        operator("SLICE", ["all", "begin", "size"], ["left"]),
        operator("ASSIGN_VARIABLE", ["h", "left"], []),
        operator("ADD", ["all", "all"], ["y"]),
    ]
    values = [constant("rows.first", np.full((1, ROWS, 3), -7, np.int8), scale=0.5)]
    begin = [handle("a", "rows"), operator("ASSIGN_VARIABLE", ["a", "rows.first"], [])]
    return model(tensors, operators, functions=[Function([Tensor("a", (), "resource"), *values], begin)])


@pytest.mark.parametrize("kernels", RESOLVERS)
def test_what_a_variable_holds_is_fed_to_both(tmp_path, kernels):
    path = tmp_path / "streaming.tflite"
    path.write_bytes(remembering())
    x, old = (RNG.integers(-128, 128, (3, count, 3)).astype(np.int8) for count in (1, ROWS))
    feeds = [{"x": x[at : at + 1], "old": old[at : at + 1]} for at in range(3)]
    found = qb.compare(qb.load(path), LiteRT(path, kernels), feeds)
    assert {layer.tensor for layer in found.layers} == {"all", "left", "y"}
    assert found.samples == 3 and found.different == 0 and found.different_end_to_end == 0
    whole = LiteRT(path, kernels).run(Portion(feeds[0], 0, 1, 1), ["all"])["all"]
    assert np.array_equal(whole, np.concatenate([old[:1], x[:1]], axis=1))


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn"])
def test_of_a_loop_is_compared_what_something_reads(tmp_path, kind):
    """LiteRT gives no other state of it any memory."""
    path = tmp_path / "loop.tflite"
    path.write_bytes(recurrent(kind))
    graph = qb.load(path)
    shape = graph.types[graph.inputs[0]].shape
    found = qb.compare(graph, LiteRT(path), RNG.normal(size=shape).astype(np.float32))
    assert "y" in {layer.tensor for layer in found.layers} and found.different == 0


def test_a_variable_that_is_read_again_after_it_was_assigned_is_refused(tmp_path):
    path = tmp_path / "again.tflite"
    path.write_bytes(streaming())
    feeds = {"x": np.zeros((1, 1, 3), np.int8), "old": np.zeros((1, ROWS, 3), np.int8)}
    with pytest.raises(ModelError, match="reads a variable twice, or one that nothing assigns"):
        qb.compare(qb.load(path), LiteRT(path), feeds)
