"""Every quantized op that onnxruntime's tool writes, on random integers and scales: onnxruntime's own integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

import qbench as qb
from qbench.ir.graph import Graph
from qbench.runtime.interpreter import run
from tests.frontends.models import node, save

MS = {"domain": "com.microsoft"}
ELEMENTS = {
    "int8": TensorProto.INT8,
    "uint8": TensorProto.UINT8,
    "float32": TensorProto.FLOAT,
    "bool": TensorProto.BOOL,
}
FEW = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
TYPES = st.sampled_from(["int8", "uint8"])
SEEDS = st.integers(0, 2**32)


@dataclass
class Draw:
    """Random scales, zero points and integers of one element type."""

    dtype: str
    rng: np.random.Generator

    def scale(self, around: float = 0.02) -> np.ndarray:
        return np.float32(around * np.exp(self.rng.normal()))

    def scales(self, count: int, around: float = 0.02) -> np.ndarray:
        return (around * np.exp(self.rng.normal(size=count))).astype(np.float32)

    def zero(self) -> np.ndarray:
        return self.integers(())

    def integers(self, shape: Sequence[int]) -> np.ndarray:
        info = np.iinfo(self.dtype)
        return np.asarray(self.rng.integers(info.min, info.max + 1, shape)).astype(self.dtype)


def proto(nodes: Sequence[NodeProto], feeds: Mapping[str, np.ndarray], constants: Mapping[str, Any]) -> ModelProto:
    inputs = [helper.make_tensor_value_info(k, ELEMENTS[v.dtype.name], v.shape) for k, v in feeds.items()]
    outputs = [helper.make_empty_tensor_value_info("y")]
    arrays = [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()]
    graph = helper.make_graph(list(nodes), "g", inputs, outputs, arrays)
    sets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=sets, ir_version=10)


def runtime(model: ModelProto, feeds: Mapping[str, np.ndarray]) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(["y"], dict(feeds))[0]


def exact(
    folder: Path,
    nodes: Sequence[NodeProto],
    feeds: Mapping[str, np.ndarray],
    constants: Mapping[str, Any],
    ties: np.ndarray | None = None,
) -> Graph:
    """Imported and run, the file gives what onnxruntime gives, bit for bit; at ties one step off at most."""
    model = proto(nodes, feeds, constants)
    graph, theirs = qb.load(save(model, folder)), runtime(model, feeds)
    ours = run(graph, feeds)["y"]
    assert ours.dtype == theirs.dtype
    if ties is not None:
        assert np.abs(ours[ties].astype(int) - theirs[ties]).max(initial=0) <= 1
        ours, theirs = ours[~ties], theirs[~ties]
    np.testing.assert_array_equal(ours, theirs)
    return graph


def q(name: str) -> list[str]:
    return [name, f"{name}s", f"{name}z"]


def per_tensor(draw: Draw, *names: str, around: float = 0.02) -> dict[str, Any]:
    return {f"{n}{part}": make() for n in names for part, make in (("s", lambda: draw.scale(around)), ("z", draw.zero))}


PAIRS = [
    ((256, 256), (256, 256)),
    ((2, 3, 5, 4), (2, 3, 5, 4)),
    ((2, 8, 3, 5), (1, 8, 1, 1)),
    ((8, 1, 1), (2, 8, 4, 4)),
    ((3, 40), ()),
]


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
@FEW
@given(dtype=TYPES, seed=SEEDS, shapes=st.sampled_from(PAIRS))
def test_sums_and_products(op: str, dtype: str, seed: int, shapes: Any, tmp_path: Path) -> None:
    draw = Draw(dtype, np.random.default_rng(seed))
    constants = per_tensor(draw, "a", "b", "y")
    if op == "QLinearMul":
        constants["ys"] = np.float32(constants["as"] * constants["bs"] * 100)
    feeds = {name: draw.integers(shape) for name, shape in zip("ab", shapes, strict=True)}
    exact(tmp_path, [node(op, [*q("a"), *q("b"), "ys", "yz"], ["y"], **MS)], feeds, constants)


@pytest.mark.usefixtures("exact_onnxruntime")
@FEW
@given(dtype=TYPES, seed=SEEDS, groups=st.sampled_from([1, 4]), bias=st.booleans(), channels=st.booleans())
def test_conv(dtype: str, seed: int, groups: int, bias: bool, channels: bool, tmp_path: Path) -> None:
    draw = Draw(dtype, np.random.default_rng(seed))
    weights = Draw("int8", draw.rng)
    constants = per_tensor(draw, "x", "y") | {"w": weights.integers((8, 4 // groups, 3, 2))}
    constants |= {"ws": draw.scales(8) if channels else draw.scale(), "ys": draw.scale(0.2)}
    constants["wz"] = np.zeros(8 if channels else (), np.int8)
    if bias:
        constants["b"] = draw.rng.integers(-3000, 3000, 8).astype(np.int32)
    made = node(
        "QLinearConv",
        [*q("x"), *q("w"), "ys", "yz", *["b"][: int(bias)]],
        ["y"],
        group=groups,
        strides=[2, 1],
        pads=[1, 0, 1, 1],
    )
    graph = exact(tmp_path, [made], {"x": draw.integers((2, 4, 7, 6))}, constants)
    assert [n.op for n in graph.nodes] == ["qnn.conv2d", *["nn.bias_add"][: int(bias)], "qnn.requantize"]


@pytest.mark.usefixtures("exact_onnxruntime")
@pytest.mark.parametrize("op", ["QLinearMatMul", "QGemm"])
@FEW
@given(dtype=TYPES, seed=SEEDS, channels=st.booleans())
def test_dense(op: str, dtype: str, seed: int, channels: bool, tmp_path: Path) -> None:
    draw = Draw(dtype, np.random.default_rng(seed))
    constants = per_tensor(draw, "a", "y") | {"b": Draw("int8", draw.rng).integers((16, 9)), "ys": draw.scale(0.2)}
    constants |= {"bs": draw.scales(9) if channels else draw.scale(), "bz": np.zeros(9 if channels else (), np.int8)}
    names, more = [*q("a"), *q("b")], {}
    if op == "QGemm":
        constants["c"] = draw.rng.integers(-3000, 3000, 9).astype(np.int32)
        names, more = [*names, "c"], MS
    graph = exact(tmp_path, [node(op, [*names, "ys", "yz"], ["y"], **more)], {"a": draw.integers((5, 16))}, constants)
    assert graph.nodes[0].op == "qnn.dense"


@FEW
@given(dtype=TYPES, seed=SEEDS)
def test_products_of_activations(dtype: str, seed: int, tmp_path: Path) -> None:
    draw = Draw(dtype, np.random.default_rng(seed))
    constants = per_tensor(draw, "a", "b", "y") | {"ys": draw.scale(0.2)}
    made = node("QLinearMatMul", [*q("a"), *q("b"), "ys", "yz"], ["y"])
    exact(tmp_path, [made], {"a": draw.integers((2, 3, 8)), "b": draw.integers((2, 8, 5))}, constants)


@FEW
@given(dtype=TYPES, seed=SEEDS, count=st.sampled_from([0, 1]))
def test_average_pool(dtype: str, seed: int, count: int, tmp_path: Path) -> None:
    draw = Draw(dtype, np.random.default_rng(seed))
    made = node(
        "QLinearAveragePool", [*q("x"), "ys", "yz"], ["y"], kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1],
        count_include_pad=count, **MS,
    )  # fmt: skip
    constants = per_tensor(draw, "x", "y")
    exact(tmp_path, [made], {"x": draw.integers((2, 16, 9, 7))}, constants)
    whole = node("QLinearAveragePool", [*q("x"), "ys", "yz"], ["y"], kernel_shape=[8, 8], **MS)
    exact(tmp_path, [whole], {"x": draw.integers((1, 64, 8, 8))}, constants | {"ys": constants["xs"]})


@FEW
@given(dtype=TYPES, seed=SEEDS, size=st.sampled_from([1, 7, 12]))
def test_global_average_pool(dtype: str, seed: int, size: int, tmp_path: Path) -> None:
    draw = Draw(dtype, np.random.default_rng(seed))
    made = node("QLinearGlobalAveragePool", [*q("x"), "ys", "yz"], ["y"], **MS)
    exact(tmp_path, [made], {"x": draw.integers((1, 64, size, 7))}, per_tensor(draw, "x", "y"))


@pytest.mark.parametrize(
    ("op", "attrs"), [("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.1}), ("QLinearLeakyRelu", {})]
)
@FEW
@given(dtype=TYPES, seed=SEEDS, fine=st.booleans())
def test_tables_for_every_integer(
    op: str, attrs: dict[str, float], dtype: str, seed: int, fine: bool, tmp_path: Path
) -> None:
    draw = Draw(dtype, np.random.default_rng(seed))
    constants = per_tensor(draw, "x", "y") | {"ys": draw.scale(1 / 300) if fine else draw.scale()}
    codes = np.arange(256).astype("uint8").view(dtype)
    exact(tmp_path, [node(op, [*q("x"), "ys", "yz"], ["y"], **attrs, **MS)], {"x": codes}, constants)


@pytest.mark.parametrize(
    "op", ["Tanh", "Relu", "HardSigmoid", "HardSwish", "Abs", "Clip", "Sqrt", "Exp", "Elu", "Erf", "Identity"]
)
@FEW
@given(dtype=TYPES, seed=SEEDS)
def test_functions_between_dequantize_and_quantize_for_every_integer(
    op: str, dtype: str, seed: int, tmp_path: Path
) -> None:
    draw = Draw(dtype, np.random.default_rng(seed))
    constants = per_tensor(draw, "x", "y") | {"low": np.float32(-0.7), "high": np.float32(1.3)}
    if op == "Sqrt":
        constants["xz"] = np.asarray(np.iinfo(dtype).min, dtype)
    real = [
        node("DequantizeLinear", q("x"), ["r"]),
        node(op, ["r", "low", "high"] if op == "Clip" else ["r"], ["f"]),
    ]
    codes = {"x": np.arange(256).astype("uint8").view(dtype)}
    steps = runtime(proto([*real, node("Identity", ["f"], ["y"])], codes, constants), codes) / constants["ys"]
    ties = np.abs(np.abs(steps) % 1 - 0.5) < 1e-4  # where the last bit of a function of floats decides
    exact(tmp_path, [*real, node("QuantizeLinear", ["f", "ys", "yz"], ["y"])], codes, constants, ties)


@FEW
@given(dtype=TYPES, seed=SEEDS, axis=st.sampled_from([-1, 1]), length=st.sampled_from([2, 10, 300]))
def test_softmax(dtype: str, seed: int, axis: int, length: int, tmp_path: Path) -> None:
    draw = Draw(dtype, np.random.default_rng(seed))
    constants = per_tensor(draw, "x", "y") | {"ys": np.maximum(draw.scale(1 / 200), np.float32(1 / 256))}
    shape = (20, length, 3) if axis == 1 else (20, length)
    made = node("QLinearSoftmax", [*q("x"), "ys", "yz"], ["y"], axis=axis, opset=13, **MS)
    exact(tmp_path, [made], {"x": draw.integers(shape)}, constants)


@FEW
@given(dtype=TYPES, seed=SEEDS, alike=st.booleans())
def test_concatenate(dtype: str, seed: int, alike: bool, tmp_path: Path) -> None:
    draw = Draw(dtype, np.random.default_rng(seed))
    constants = per_tensor(draw, "a", "b", "y")
    if alike:
        constants |= {"as": constants["ys"], "az": constants["yz"]}
    made = node("QLinearConcat", ["ys", "yz", *q("a"), *q("b")], ["y"], axis=1, **MS)
    exact(tmp_path, [made], {"a": draw.integers((2, 9)), "b": draw.integers((2, 256))}, constants)


@FEW
@given(dtype=TYPES, seed=SEEDS)
def test_where(dtype: str, seed: int, tmp_path: Path) -> None:
    draw = Draw(dtype, np.random.default_rng(seed))
    made = node("QLinearWhere", ["c", *q("a"), *q("b"), "ys", "yz"], ["y"], **MS)
    feeds = {"c": draw.rng.random((4, 64)) < 0.5, "a": draw.integers((4, 64)), "b": draw.integers((4, 64))}
    exact(tmp_path, [made], feeds, per_tensor(draw, "a", "b", "y"))


@pytest.mark.usefixtures("exact_onnxruntime")
@FEW
@given(dtype=TYPES, seed=SEEDS)
def test_integer_products_without_scales(dtype: str, seed: int, tmp_path: Path) -> None:
    draw = Draw(dtype, np.random.default_rng(seed))
    a, b = draw.integers((3, 8)), Draw("int8", draw.rng).integers((8, 5))
    zeros = {"az": draw.zero(), "bz": Draw("int8", draw.rng).integers((5,))}
    exact(tmp_path, [node("MatMulInteger", ["a", "b", "az", "bz"], ["y"])], {"a": a}, {"b": b, **zeros})
    exact(tmp_path, [node("MatMulInteger", ["a", "b"], ["y"])], {"a": a, "b": b}, {})
    if dtype == "uint8":
        x, w = draw.integers((1, 4, 6, 6)), draw.integers((3, 4, 3, 3))
        made = node("ConvInteger", ["x", "w", "xz"], ["y"], pads=[1, 1, 0, 0])
        exact(tmp_path, [made], {"x": x}, {"w": w, "xz": draw.zero()})


@pytest.mark.usefixtures("exact_onnxruntime")
@FEW
@given(seed=SEEDS, spread=st.sampled_from([0.0, 0.01, 1.0, 1e4]), shift=st.sampled_from([-3.0, 0.0, 5.0]))
def test_dynamic_quantization(seed: int, spread: float, shift: float, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=(6, 16)) * spread + shift).astype(np.float32)
    b = rng.integers(-127, 128, (16, 5)).astype(np.int8)
    made = [
        node("DynamicQuantizeLinear", ["x"], ["xq", "xs", "xz"]),
        node("MatMulInteger", ["xq", "b", "xz"], ["sums"]),
        node("Cast", ["sums"], ["real"], to=TensorProto.FLOAT),
        node("Mul", ["xs", "bs"], ["s"]),
        node("Mul", ["real", "s"], ["y"]),
    ]
    for output in ("xq", "xs", "xz"):
        exact(
            tmp_path,
            [node("DynamicQuantizeLinear", ["x"], ["y" if o == output else o for o in ("xq", "xs", "xz")])],
            {"x": x},
            {},
        )
    again(exact(tmp_path, made, {"x": x}, {"b": b, "bs": np.float32(0.03)}), {"x": x}, tmp_path)
    fused = node("DynamicQuantizeMatMul", ["x", "b", "bs", "", "c"], ["y"], **MS)
    exact(tmp_path, [fused], {"x": x}, {"b": b, "bs": np.float32(0.03), "c": np.ones(5, np.float32)})


def again(graph: Graph, feeds: dict[str, np.ndarray], folder: Path) -> None:
    """Written and run by onnxruntime, the graph gives the same."""
    written = onnx.load(qb.export_onnx(graph, folder / "again.onnx"))
    np.testing.assert_array_equal(runtime(written, feeds), run(graph, feeds)["y"])


def test_dynamic_convolution_is_written_as_it_was(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(1, 4, 9)).astype(np.float32), rng.integers(-127, 128, (6, 2, 3)).astype(np.int8)
    made = [
        node("DynamicQuantizeLinear", ["x"], ["xq", "xs", "xz"]),
        node("ConvInteger", ["xq", "w", "xz"], ["y"], pads=[1, 0], strides=[2], group=2),
    ]
    again(exact(tmp_path, made, {"x": x}, {"w": w}), {"x": x}, tmp_path)
