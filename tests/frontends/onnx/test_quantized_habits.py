"""QDQ files in the habits of onnxruntime, OpenVINO's NNCF, PyTorch and TensorRT."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ml_dtypes import int4, uint4
from onnx import NodeProto, TensorProto, helper, numpy_helper

import qbench as qb
from qbench.errors import UnsupportedOpsError
from qbench.ir.graph import Graph
from qbench.passes.annotate import points
from qbench.passes.imported import AnnotateTwinPass, RealizeTwinPass, find_twin
from qbench.runtime.interpreter import run
from tests.frontends.models import node, reference, save
from tests.passes.quantizable import bind_qparams

RNG = np.random.default_rng(3)


def load(
    folder: Path,
    nodes: Sequence[NodeProto],
    constants: Mapping[str, Any],
    shape: Sequence[int] = (1, 3, 8, 8),
    *,
    opset: int = 21,
    inputs: Mapping[str, tuple[int, Sequence[int]]] | None = None,
) -> tuple[Graph, Path]:
    made = inputs or {"x": (TensorProto.FLOAT, shape)}
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info(name, *kind) for name, kind in made.items()],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    sets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    path = save(helper.make_model(graph, opset_imports=sets, ir_version=10), folder)
    return qb.load(path), path


def close(graph: Graph, path: Path, x: np.ndarray, steps: float = 0.0) -> None:
    """The outputs are those of onnxruntime without optimizations, but for some size of a step."""
    np.testing.assert_allclose(run(graph, {"x": x})["y"], reference(path, {"x": x})["y"], rtol=1e-5, atol=steps + 1e-6)


def ops(graph: Graph) -> Counter[str]:
    return Counter(n.op.removeprefix("qnn.").removeprefix("nn.") for n in graph.nodes)


def pair(x: str, y: str, scale: str, zero: str = "", **attrs: Any) -> list[NodeProto]:
    """QuantizeLinear and DequantizeLinear of x."""
    more = [zero] if zero else []
    return [
        node("QuantizeLinear", [x, scale, *more], [f"{y}.q"], f"{y}.Q", **attrs),
        node("DequantizeLinear", [f"{y}.q", scale, *more], [y], f"{y}.DQ", **attrs),
    ]


X = RNG.normal(size=(1, 3, 8, 8)).astype(np.float32)
W = RNG.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8)
WS = (RNG.random(4) * 0.01 + 0.005).astype(np.float32)
S, Z = np.float32(0.03), np.uint8(128)
BIAS = RNG.integers(-500, 500, 4).astype(np.int32)
CONV: dict[str, Any] = {
    "s": S,
    "z": Z,
    "w": W,
    "ws": WS,
    "wz": np.zeros(4, np.int8),
    "ys": np.float32(0.05),
    "yz": np.uint8(120),
}


def test_onnxruntime_stores_weights_and_int32_biases(tmp_path: Path) -> None:
    nodes = [
        *pair("x", "xd", "s", "z"),
        node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=0),
        node("DequantizeLinear", ["b", "bs", "bz"], ["bd"], axis=0),
        node("Conv", ["xd", "wd", "bd"], ["c"], "conv"),
        node("Relu", ["c"], ["r"], "relu"),
        *pair("r", "y", "ys", "yz"),
    ]
    graph, path = load(tmp_path, nodes, {**CONV, "b": BIAS, "bs": S * WS, "bz": np.zeros(4, np.int32)})
    assert ops(graph) == {"quantize": 1, "conv2d": 1, "bias_add": 1, "requantize": 1, "clip": 1, "dequantize": 1}
    assert {"w", "b"} <= graph.constants.keys()
    np.testing.assert_array_equal(graph.constants["b"].array, BIAS)
    assert graph.node("conv").sources == ("conv",)
    assert {"y.q", "xd.q"} <= graph.types.keys()
    close(graph, path, X, steps=0.05)


def test_nncf_stores_float_weights_behind_quantize_and_dequantize_and_float_biases(tmp_path: Path) -> None:
    real = W.astype(np.float32) * WS.reshape(4, 1, 1, 1)
    nodes = [
        *pair("x", "xd", "s", "z"),
        *pair("wf", "wd", "ws", "wz", axis=0),
        node("Conv", ["xd", "wd", "bf"], ["c"], "conv"),
        *pair("c", "y", "ys", "yz"),
    ]
    constants = {**CONV, "wf": real, "bf": (BIAS * S * WS).astype(np.float32)}
    del constants["w"]
    graph, path = load(tmp_path, nodes, constants)
    assert ops(graph) == {"quantize": 1, "conv2d": 1, "bias_add": 1, "requantize": 1, "dequantize": 1}
    (weight,) = (n.inputs[1] for n in graph.nodes if n.op == "qnn.conv2d")
    np.testing.assert_array_equal(graph.constants[weight].array, W)
    np.testing.assert_array_equal(graph.constants["bf"].array, BIAS)
    close(graph, path, X, steps=0.05)


def test_pytorch_shares_scales_transposes_weights_and_omits_zero_points(tmp_path: Path) -> None:
    w = RNG.integers(-127, 128, (5, 8)).astype(np.int8)
    nodes = [
        *pair("x", "xd", "s", "sz"),
        node("DequantizeLinear", ["w", "ws"], ["wd"]),
        node("Transpose", ["wd"], ["wt"], perm=[1, 0]),
        node("MatMul", ["xd", "wt"], ["m"], "fc"),
        node("Add", ["bf", "m"], ["a"], "bias"),
        *pair("a", "y", "s", "sz"),
    ]
    constants = {"s": S, "sz": np.int8(0), "w": w, "ws": np.float32(0.01), "bf": np.ones(5, np.float32)}
    x = RNG.normal(size=(3, 8)).astype(np.float32)
    graph, path = load(tmp_path, nodes, constants, (3, 8))
    assert ops(graph) == {"quantize": 1, "dense": 1, "bias_add": 1, "requantize": 1, "dequantize": 1}
    assert graph.constants["w"].shape == (5, 8)
    assert graph.qparams["xd.q"] == graph.qparams["y.q"]
    close(graph, path, x, steps=0.03)


def test_tensorrt_quantizes_before_a_conv_only_and_leaves_reals_behind_it(tmp_path: Path) -> None:
    w = RNG.integers(-127, 128, (3, 3, 3, 3)).astype(np.int8)
    nodes = [
        *pair("x", "xd", "s", "sz"),
        *pair("wf", "wd", "ws", "wz", axis=0),
        node("Conv", ["xd", "wd", "bf"], ["c"], "conv", pads=[1, 1, 1, 1]),
        node("Add", ["c", "xd"], ["sum"], "residual"),
        node("Relu", ["sum"], ["r"], "relu"),
        *pair("r", "y", "ys", "sz"),
    ]
    constants = {
        "s": S, "sz": np.int8(0), "wf": w * WS[:3].reshape(3, 1, 1, 1), "ws": WS[:3], "wz": np.zeros(3, np.int8),
        "bf": np.ones(3, np.float32), "ys": np.float32(0.05),
    }  # fmt: skip
    graph, path = load(tmp_path, nodes, constants)
    assert graph.types[graph.node("conv").output].dtype == "int32"
    assert (
        "not quantized" in graph.node("residual").reason
        or "has a scale for each index" in graph.node("residual").reason
    )
    close(graph, path, X, steps=0.05)


def test_one_dequantize_feeds_several_ops_and_reads_with_other_scales_than_were_written(tmp_path: Path) -> None:
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"], "Q"),
        node("DequantizeLinear", ["q", "s", "z"], ["d"], "same"),
        node("DequantizeLinear", ["q", "other", "z"], ["e"], "other"),
        node("Add", ["d", "e"], ["sum"], "add"),
        node("Mul", ["d", "sum"], ["p"], "product"),
        *pair("p", "y", "ys", "yz"),
    ]
    graph, path = load(tmp_path, nodes, {"s": S, "z": Z, "other": np.float32(0.04), "ys": S, "yz": Z})
    assert ops(graph)["reinterpret"] == 1
    (again,) = (n for n in graph.nodes if n.op == "qnn.reinterpret")
    assert graph.qparams[again.output].scale == float(np.float32(0.04))
    close(graph, path, X, steps=1e-6)


@pytest.mark.parametrize("dtype", [int4, uint4])
@pytest.mark.parametrize("channels", [False, True])
def test_weights_of_four_bits(dtype: Any, channels: bool, tmp_path: Path) -> None:
    low, high = (-8, 7) if dtype is int4 else (0, 15)
    w = RNG.integers(low, high + 1, (8, 6)).astype(dtype)
    scale = (RNG.random(6) * 0.1 + 0.05).astype(np.float32) if channels else np.float32(0.1)
    zero = np.full(6 if channels else (), 0 if dtype is int4 else 7).astype(dtype)
    nodes = [
        *pair("x", "xd", "s", "z"),
        node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=1),
        node("MatMul", ["xd", "wd"], ["m"], "fc"),
        *pair("m", "y", "ys", "yz"),
    ]
    constants = {"s": S, "z": Z, "w": w, "ws": scale, "wz": zero, "ys": np.float32(0.05), "yz": Z}
    graph, path = load(tmp_path, nodes, constants, (4, 8))
    assert graph.constants["w"].dtype == np.dtype(dtype).name
    assert ops(graph) == {"quantize": 1, "dense": 1, "requantize": 1, "dequantize": 1}
    close(graph, path, RNG.normal(size=(4, 8)).astype(np.float32), steps=0.05)


def test_the_ops_of_com_microsoft_are_the_same(tmp_path: Path) -> None:
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"], domain="com.microsoft"),
        node("DequantizeLinear", ["q", "s", "z"], ["d"], domain="com.microsoft"),
        node("MaxPool", ["d"], ["m"], kernel_shape=[2, 2]),
        node("QuantizeLinear", ["m", "s", "z"], ["r"], domain="com.microsoft"),
        node("DequantizeLinear", ["r", "s", "z"], ["y"], domain="com.microsoft"),
    ]
    graph, path = load(tmp_path, nodes, {"s": S, "z": np.uint16(9000)})
    assert ops(graph) == {"quantize": 1, "max_pool2d": 1, "dequantize": 1}
    close(graph, path, X)


def test_integers_may_come_in_and_go_out(tmp_path: Path) -> None:
    nodes = [
        node("DequantizeLinear", ["x", "s", "z"], ["d"]),
        node("Relu", ["d"], ["r"], "relu"),
        node("QuantizeLinear", ["r", "s", "z"], ["y"]),
    ]
    graph, path = load(tmp_path, nodes, {"s": S, "z": Z}, inputs={"x": (TensorProto.UINT8, (2, 3))})
    assert graph.types["x"].dtype == graph.types["y"].dtype == "uint8" and ops(graph) == {"clip": 1}
    x = RNG.integers(0, 256, (2, 3)).astype(np.uint8)
    np.testing.assert_array_equal(run(graph, {"x": x})["y"], reference(path, {"x": x})["y"])


def test_a_missing_zero_point_is_zero_of_uint8_or_of_the_wanted_type(tmp_path: Path) -> None:
    for attrs, dtype in (({}, "uint8"), ({"output_dtype": TensorProto.INT8}, "int8")):
        nodes = [node("QuantizeLinear", ["x", "s"], ["q"], **attrs), node("DequantizeLinear", ["q", "s"], ["y"])]
        graph, path = load(tmp_path, nodes, {"s": S})
        assert graph.types["q"].dtype == dtype
        close(graph, path, X)


def test_scales_of_half_precision_give_reals_of_half_precision(tmp_path: Path) -> None:
    nodes = [node("DequantizeLinear", ["x", "s", "z"], ["d"]), node("Abs", ["d"], ["y"])]
    inputs = {"x": (TensorProto.UINT8, (4,))}
    graph, path = load(tmp_path, nodes, {"s": np.float16(0.25), "z": Z}, inputs=inputs)
    assert graph.types["y"].dtype == "float16"
    close(graph, path, np.arange(4, dtype=np.uint8) * 60)


def test_a_constant_that_an_op_wants_as_numbers_may_be_stored_as_integers(tmp_path: Path) -> None:
    nodes = [
        *pair("x", "xd", "s", "z"),
        node("DequantizeLinear", ["b", "bs"], ["bound"]),
        node("Clip", ["xd", "", "bound"], ["c"], "clip"),
        *pair("c", "y", "s", "z"),
    ]
    graph, path = load(tmp_path, nodes, {"s": S, "z": Z, "b": np.int8(40), "bs": np.float32(0.02)})
    assert ops(graph) == {"quantize": 1, "clip": 1, "dequantize": 1}
    close(graph, path, X)


def test_the_users_choice_of_arithmetic(tmp_path: Path) -> None:
    nodes = [*pair("x", "a", "s", "z"), node("Mul", ["a", "a"], ["m"], "product"), *pair("m", "y", "ys", "z")]
    _, path = load(tmp_path, nodes, {"s": S, "z": Z, "ys": np.float32(0.05)})
    for semantics, rounding in (("onnx", "fp32_rne"), ("tvm", "tvm_upward"), ("tflite", "tflite_double")):
        graph = qb.load(path, semantics=semantics)
        assert {n.attrs["rounding"] for n in graph.nodes if n.op == "qnn.requantize"} == {rounding}


def test_a_quantized_number_without_axes_makes_none(tmp_path: Path) -> None:
    nodes = [
        node("DequantizeLinear", ["half", "scale"], ["factor"], "factor"),
        node("ReduceSum", ["x"], ["sum"], "sum", keepdims=0),
        node("Mul", ["sum", "factor"], ["y"], "scaled"),
    ]
    graph, path = load(tmp_path, nodes, {"half": np.int8(5), "scale": np.float32(0.1)}, shape=(2, 3))
    x = RNG.normal(size=(2, 3)).astype(np.float32)
    assert graph.types["y"].shape == ()
    close(graph, path, x)


@pytest.mark.parametrize("zero_point", [np.uint8(120), np.int8(-9)])
def test_stored_integers_are_interpolated_as_between_onnxruntimes_operators(tmp_path: Path, zero_point: Any) -> None:
    """It cuts off what is behind the point; the integers' scales can be tuned as all others."""
    resized = node("Resize", ["q", "", "twice"], ["r"], "resize", mode="linear")
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"], "in"),
        resized,
        node("DequantizeLinear", ["r", "s", "z"], ["y"], "out"),
    ]
    twice = np.array([1, 1, 2, 2], np.float32)
    graph, path = load(tmp_path, nodes, {"s": np.float32(0.03), "z": zero_point, "twice": twice})
    assert ops(graph) == {"quantize": 1, "resize_linear": 1, "dequantize": 1}
    close(graph, path, X)
    template = find_twin(graph)
    annotated = AnnotateTwinPass(template)(template.twin)
    own = {name: graph.qparams[template.values[name]] for name in points(annotated)}
    assert run(RealizeTwinPass(template)(bind_qparams(annotated, own)), {"x": X})["y"].tolist() == (
        run(graph, {"x": X})["y"].tolist()
    )
    whole = {"x": (TensorProto.UINT8, (1, 3, 8, 8))}
    alone = [node("Resize", ["x", "", "twice"], ["y"], "resize", mode="linear")]
    with pytest.raises(UnsupportedOpsError, match="'x' holds uint8, and nothing says which real numbers"):
        load(tmp_path, alone, {"twice": twice}, inputs=whole)
