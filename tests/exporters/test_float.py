"""Every float op can be written as ONNX and comes back from there; onnxruntime agrees with the graph."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qbench.exporters import onnx_model, write_onnx
from qbench.frontends import load
from qbench.ir.build import build
from qbench.ir.dtypes import dtype_of
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.op import OPS, QuantRule
from qbench.ir.types import TensorType
from qbench.passes.prepare import prepare
from qbench.runtime.interpreter import run
from tests.frontends.models import random, reference
from tests.graphs import masked_softmax
from tests.ops.samples import SAMPLES


def close(got: dict[str, np.ndarray], want: dict[str, np.ndarray], tolerance: float = 1e-5) -> None:
    assert list(got) == list(want)
    for name, expected in want.items():
        assert got[name].shape == expected.shape
        assert got[name].dtype == expected.dtype
        np.testing.assert_allclose(got[name], expected, rtol=1e-4, atol=tolerance * np.abs(expected).max(initial=1e-9))


def round_trip(graph: Graph, feeds: dict[str, np.ndarray], folder: Path) -> Graph:
    """The graph after export and import; both, and onnxruntime, give the same outputs."""
    path = write_onnx(graph, folder / "model.onnx")
    again = load(path)
    want = run(graph, feeds)
    close(reference(path, feeds), want)
    close(run(again, feeds), want)
    return again


def one_node(op: str) -> tuple[Graph, dict[str, np.ndarray]]:
    sample = SAMPLES[op]
    feeds = {f"x{i}": np.asarray(array) for i, array in enumerate(sample.operands)}
    types = {name: TensorType(array.shape, dtype_of(array.dtype)) for name, array in feeds.items()}
    if sample.symbolic:
        types["x0"] = TensorType(("N", *types["x0"].shape[1:]), types["x0"].dtype)
    outputs = tuple(f"y{i}" for i in range({"split": 3, "nn.lstm": 3, "nn.gru": 2, "nn.rnn": 2, "topk": 2}.get(op, 1)))
    node = Node("the node", op, tuple(feeds), outputs, FrozenMap(sample.attrs))
    return build("g", types, outputs, [node]), feeds


ONE_WAY = {"vision.detections", "nn.dynamic_lstm"}
"""Tested where they are read."""
FLOAT_OPS = [name for name, op in OPS.items() if op.rule != QuantRule.INTERNAL and name not in ONE_WAY]


@pytest.mark.parametrize("op", FLOAT_OPS)
def test_op(tmp_path: Path, op: str) -> None:
    graph, feeds = one_node(op)
    if op in ("sqrt", "log", "power", "rsqrt"):
        feeds["x0"] = np.abs(feeds["x0"]) + np.float32(0.1)
    again = round_trip(graph, feeds, tmp_path)
    assert not graph.inputs or "the node" in again.by_name  # what has no input is a constant again
    assert again.outputs == graph.outputs
    assert again.types["y0"].shape == graph.types["y0"].shape


@pytest.mark.parametrize("op", ["nn.conv2d", "nn.dense", "nn.batch_matmul", "nn.relu", "nn.softmax", "add", "mean"])
def test_half_precision(tmp_path: Path, op: str) -> None:
    graph, feeds = one_node(op)
    feeds = {name: array.astype(np.float16) for name, array in feeds.items()}
    half = build("g", {n: t.with_dtype("float16") for n, t in graph.input_types().items()}, graph.outputs, graph.nodes)
    path = write_onnx(half, tmp_path / "half.onnx")
    got, want = reference(path, feeds)["y0"], run(half, feeds)["y0"]
    np.testing.assert_allclose(got.astype(np.float32), want.astype(np.float32), rtol=5e-3, atol=5e-3)
    assert load(path).types["y0"].dtype == "float16"


def test_a_row_that_is_masked_altogether(tmp_path: Path) -> None:
    x = random(2, 3, 4, 5)
    graph = prepare(masked_softmax(x.shape)).graph
    assert graph.nodes[-1].attrs["safe"]
    again = round_trip(graph, {"x": x}, tmp_path)
    assert prepare(again).graph.nodes[-1].attrs == graph.nodes[-1].attrs


MODELS = {
    "cifar/resnet20_cifar10_bn.onnx": (2, 3, 32, 32),
    "mlperf_tiny/kws_dscnn_fp32_bn.onnx": (2, 1, 49, 10),
    "zoo/mtcnn_onet.onnx": (2, 48, 48, 3),
    "zoo/rapidocr_cls.onnx": (1, 3, 48, 192),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("prepared", [False, True])
def test_real_models_go_there_and_back(shared_data: Path, tmp_path: Path, name: str, prepared: bool) -> None:
    graph = load(shared_data / "models" / name)
    if prepared:
        graph = prepare(graph).graph
    again = round_trip(graph, {graph.inputs[0]: random(*MODELS[name])}, tmp_path)
    assert again.input_types() == graph.input_types()


def test_the_networks_of_the_repository_keep_their_layers(data_dir: Path, tmp_path: Path) -> None:
    x = np.load(data_dir / "mnist_evaluation.npz")["x"][:4]
    for name in ("mnist_mlp", "mnist_cnn"):
        graph = load(data_dir / f"{name}.onnx")
        again = round_trip(graph, {"x": x}, tmp_path)
        layers = [(n.name, n.op) for n in graph.nodes if n.op in ("nn.conv2d", "nn.dense")]
        assert [(n.name, n.op) for n in again.nodes if n.op in ("nn.conv2d", "nn.dense")] == layers
        assert {n.output for n in graph.nodes if n.op == "nn.relu"} <= set(again.types)


def test_dense_on_more_than_a_matrix_and_a_bias_along_its_last_axis(tmp_path: Path) -> None:
    from tests.frontends.models import model, node, save

    nodes = [node("MatMul", ["x", "w"], ["m"], "fc"), node("Add", ["m", "b"], ["y"], "bias")]
    proto = model(nodes, {"x": ["N", 5, 3]}, constants={"w": random(3, 4), "b": random(4)})
    graph = load(save(proto, tmp_path))
    again = round_trip(graph, {"x": random(2, 5, 3)}, tmp_path)
    assert again == graph
    assert [n.op_type for n in onnx_model(graph).graph.node] == ["MatMul", "Add"]


def test_open_sizes_and_hostile_names(tmp_path: Path) -> None:
    name = "<script>\n\N{SNOWMAN}" + "x" * 1000
    node = Node(name, "nn.relu", (name,), (f"{name}2",))
    graph = build(name, {name: TensorType(("N", 3), "float32")}, [f"{name}2"], [node])
    again = round_trip(graph, {name: random(4, 3)}, tmp_path)
    assert again.nodes[0].name == name
    assert again.input_types() == graph.input_types()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
@pytest.mark.parametrize(("op", "attrs"), [("nn.relu", {}), ("clip", {"a_min": -2.0, "a_max": 5.0})])
def test_bounds_of_integers(tmp_path: Path, op: str, attrs: dict[str, float], dtype: str) -> None:
    node = Node(
        "the node", op, ("x",), ("y",), FrozenMap(attrs if dtype != "uint8" else attrs and {**attrs, "a_min": 2.0})
    )
    graph = build("g", {"x": TensorType(("N", 4), dtype_of(np.dtype(dtype)))}, ["y"], [node])
    round_trip(graph, {"x": np.array([[-3, 0, 1, 7]]).astype(dtype)}, tmp_path)


@pytest.mark.parametrize("op", ["nn.max_pool2d", "nn.avg_pool2d"])
@pytest.mark.parametrize(("size", "padding"), [((1, 6), (1, 1, 1, 1)), ((5, 6), (0, 0, 0, 0)), ((4, 7), (1, 0, 0, 1))])
def test_ceil_mode_is_written_as_padding(
    tmp_path: Path, op: str, size: tuple[int, int], padding: tuple[int, int, int, int]
) -> None:
    """ONNX's shapes count a last window that starts behind the data, onnxruntime's kernels do not."""
    attrs = {"pool_size": (2, 2), "strides": (2, 2), "padding": padding, "ceil_mode": True}
    x = random(2, 3, *size)
    rows = build(
        "g", {"x": TensorType(x.shape, "float32")}, ["p"], [Node("pool", op, ("x",), ("p",), FrozenMap(attrs))]
    )
    cuts = tuple(range(1, int(rows.types["p"].shape[2])))
    parts = [f"y{i}" for i in range(len(cuts) + 1)]
    split = Node("split", "split", ("p",), tuple(parts), FrozenMap({"cuts": cuts, "axis": 2}))
    graph = build("g", rows.input_types(), parts, [*rows.nodes, split])
    round_trip(graph, {"x": x}, tmp_path)
    (pool,) = [n for n in onnx_model(graph).graph.node if n.op_type != "Split"]
    assert {a.name: a.i for a in pool.attribute}["ceil_mode"] == 0
