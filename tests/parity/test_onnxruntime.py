from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper, save

import qbench as qb
from qbench.errors import ConfigError, DataError, ModelError
from qbench.parity import OnnxRuntime, Portion

FLOAT, UINT8 = TensorProto.FLOAT, TensorProto.UINT8


@pytest.fixture(scope="module")
def digits(data_dir):
    return np.load(data_dir / "mnist_evaluation.npz")["x"][:16]


@pytest.fixture(scope="module")
def quantized(data_dir, tmp_path_factory, digits):
    """The CNN's first convolution as onnxruntime's own tools write it: QuantizeLinear, DequantizeLinear around."""
    path = tmp_path_factory.mktemp("qdq") / "model.onnx"
    rng = np.random.default_rng(0)
    constants = {
        "scale": np.float32(0.02), "zero": np.uint8(3), "w": rng.integers(-90, 90, (4, 2, 3, 3)).astype(np.int8),
        "w_scale": np.float32(0.01), "w_zero": np.int8(0), "y_scale": np.float32(0.05), "y_zero": np.uint8(128),
    }  # fmt: skip
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["x_q"]),
        helper.make_node("DequantizeLinear", ["x_q", "scale", "zero"], ["x_d"]),
        helper.make_node("DequantizeLinear", ["w", "w_scale", "w_zero"], ["w_d"]),
        helper.make_node("Conv", ["x_d", "w_d"], ["conv"], pads=[1, 1, 1, 1]),
        helper.make_node("QuantizeLinear", ["conv", "y_scale", "y_zero"], ["y_q"]),
        helper.make_node("DequantizeLinear", ["y_q", "y_scale", "y_zero"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", FLOAT, ("batch size", 2, 5, 5))],
        [helper.make_tensor_value_info("y", FLOAT, None)],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture
def x():
    return np.random.default_rng(1).normal(1, 1, (3, 2, 5, 5)).astype(np.float32)


def test_every_value_on_the_way_is_seen_and_integers_only_where_kernels_are_fused(quantized, x):
    plain, fused = OnnxRuntime(quantized, optimizations=False), OnnxRuntime(quantized)
    assert dict(plain.made) == {
        "x_q": ("QuantizeLinear", "uint8"), "x_d": ("DequantizeLinear", "float32"), "conv": ("Conv", "float32"),
        "y_q": ("QuantizeLinear", "uint8"), "y": ("DequantizeLinear", "float32"),
    }  # fmt: skip
    assert list(fused.made) == ["x_q", "y_q", "y"]
    assert str(plain.inputs["x"]) == "Tensor[(N, 2, 5, 5), float32]"
    portion = Portion({"x": x}, 0, 3, 3)
    (expected,) = onnxruntime.InferenceSession(quantized).run(None, {"x": x})
    found = fused.run(portion, ["y", "y_q"])
    assert np.array_equal(found["y"], expected)
    assert np.array_equal((found["y_q"].astype(np.float32) - 128) * np.float32(0.05), expected)
    conv = plain.run(portion, ["conv"])["conv"]
    assert np.array_equal(np.clip(np.rint(conv / np.float32(0.05)) + 128, 0, 255), plain.run(portion, ["y_q"])["y_q"])


def test_a_graph_is_compared_with_its_own_file(quantized, x):
    found = qb.compare(qb.lab.Ours(qb.load(quantized), "interpreter"), OnnxRuntime(quantized), x)
    assert [layer.tensor for layer in found.layers] == ["x_q", "y_q", "y"]
    assert [layer.op for layer in found.layers] == ["qnn.quantize", "qnn.conv2d", "qnn.dequantize"]
    assert found.layers[1].max_lsb <= 1 and found.right == "onnxruntime"


def test_float_models_are_seen_whole(data_dir, digits):
    path = data_dir / "mnist_cnn.onnx"
    found = qb.compare(qb.load(path), OnnxRuntime(path), digits)
    assert len(found.layers) == len(OnnxRuntime(path).made) and (found.different, found.missing) == (0, ())


def test_two_runtimes_are_compared_with_each_other(quantized, x):
    found = qb.compare(OnnxRuntime(quantized), OnnxRuntime(quantized, optimizations=False), x)
    assert (found.fed, [layer.op for layer in found.layers]) == (
        "", ["QuantizeLinear", "QuantizeLinear", "DequantizeLinear"],
    )  # fmt: skip
    assert found.missing == (
        ("x_d", "only onnxruntime without optimizations has it"),
        ("conv", "only onnxruntime without optimizations has it"),
    )


@pytest.fixture
def saturating(tmp_path):
    """A layer whose pairs of products are 64,770 each, far more than 16 bits hold."""
    constants = {
        "scale": np.float32(1), "zero": np.uint8(0), "w": np.full((16, 64), 127, np.int8), "w_zero": np.int8(0),
        "y_scale": np.float32(64 * 127),
    }  # fmt: skip
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["x_q"]),
        helper.make_node("DequantizeLinear", ["x_q", "scale", "zero"], ["x_d"]),
        helper.make_node("DequantizeLinear", ["w", "scale", "w_zero"], ["w_d"]),
        helper.make_node("Gemm", ["x_d", "w_d"], ["product"], transB=1),
        helper.make_node("QuantizeLinear", ["product", "y_scale", "zero"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "saturating",
        [helper.make_tensor_value_info("x", FLOAT, ("N", 64))],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, None)],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "s.onnx")
    return tmp_path / "s.onnx"


def test_where_sums_saturate_it_is_said_and_exact_ones_do_not(saturating, onnxruntime_saturates):
    x = np.full((2, 64), 255, np.float32)
    plain, exact = (qb.compare(qb.load(saturating), OnnxRuntime(saturating, exact=each), x) for each in (False, True))
    assert exact.different == 0 and not exact.caveats and "x64quantprecision" in exact.right
    assert (plain.different > 0) == onnxruntime_saturates == ("they saturate" in str(plain))
    assert any("which has no VNNI" in caveat for caveat in plain.to_dict()["caveats"]) == onnxruntime_saturates


def test_what_is_wrong_is_said(tmp_path, quantized, x, monkeypatch):
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no model")
    with pytest.raises(ModelError, match=r"cannot load .*broken\.onnx"):
        _ = OnnxRuntime(broken).made
    with pytest.raises(DataError, match="cannot run"):
        OnnxRuntime(quantized).run(Portion({"x": x[:, :1]}, 0, 3, 3), ["y"])
    monkeypatch.setattr("qbench.parity.peers.import_module", _absent)
    with pytest.raises(ConfigError, match="pip install onnx"):
        _ = OnnxRuntime(quantized).made


def _absent(name):
    raise ImportError(name)
