from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from qbench.frontends import load
from tests.frontends.models import check, model, node, random, save


def test_the_mlp_keeps_its_names(data_dir: Path) -> None:
    graph = load(data_dir / "mnist_mlp.onnx")
    layers = [(n.name, n.op) for n in graph.nodes]
    assert layers[:3] == [("dense_1", "nn.dense"), ("bias_add_1", "nn.bias_add"), ("relu_1", "nn.relu")]
    assert layers[-1] == ("softmax", "nn.softmax")
    assert graph.outputs == ("probabilities",)
    assert graph.types["x"].shape == ("N", 784)
    assert graph.constants["dense_1.weight"].shape == (512, 784)
    x = np.load(data_dir / "mnist_evaluation.npz")["x"][:7]
    check(data_dir / "mnist_mlp.onnx", {"x": x})


def test_matmul_and_add_are_a_dense_layer_with_bias(tmp_path: Path) -> None:
    nodes = [node("MatMul", ["x", "w"], ["fc"], "fc_node"), node("Add", ["b", "fc"], ["y"])]
    path = save(model(nodes, {"x": ["batch size", 5, 3]}, constants={"w": random(3, 4), "b": random(1, 4)}), tmp_path)
    graph = check(path, {"x": random(2, 5, 3)})
    assert [(n.name, n.op, n.outputs, n.sources) for n in graph.nodes] == [
        ("fc_node", "nn.dense", ("fc",), ("fc_node",)),
        ("y", "nn.bias_add", ("y",), ("y",)),
    ]
    assert graph.types["x"].shape == ("batch_size", 5, 3)
    assert graph.constants["w"].array.tobytes() == random(3, 4).T.tobytes()


def test_a_matrix_that_is_named_anew_for_each_reader_is_held_once(tmp_path: Path) -> None:
    """As exporters name shared weights of unrolled loops; biases and tables as well."""
    nodes = list[onnx.NodeProto]()
    for turn, x in enumerate(("x", "y0", "y1")):
        nodes += [node("Identity", [name], [f"{name}{turn}"]) for name in "wvb"]
        nodes += [node("MatMul", [x, f"w{turn}"], [f"m{turn}"]), node("Gemm", [f"m{turn}", f"v{turn}"], [f"g{turn}"])]
        nodes += [node("Mul", [f"g{turn}", f"b{turn}"], [f"y{turn}"])]
    constants = {"w": random(3, 4), "v": random(4, 3), "b": random(3)}
    path = save(model(nodes, {"x": [2, 3]}, outputs=["y2"], constants=constants), tmp_path)
    graph = check(path, {"x": random(2, 3)})
    assert len(graph.constants) == 9
    assert len({id(constant.array) for constant in graph.constants.values()}) == 3


@pytest.mark.parametrize("attrs", [{}, {"transB": 1}, {"transA": 1, "alpha": 0.5, "beta": 2.0}])
@pytest.mark.parametrize("bias", [None, (4,), (1, 4), (), (3, 4)])
@pytest.mark.parametrize("constant", [True, False])
def test_gemm(tmp_path: Path, attrs: dict[str, float], bias: tuple[int, ...] | None, constant: bool) -> None:
    a = random(5, 3) if attrs.get("transA") else random(3, 5)
    b = random(4, 5) if attrs.get("transB") else random(5, 4)
    names = ["a", "b"] + ([] if bias is None else ["c"])
    arrays = {"b": b} | ({} if bias is None else {"c": random(*bias)})
    inputs = {"a": a.shape} | ({} if constant else {"b": b.shape})
    proto = model([node("Gemm", names, ["y"], "fc", **attrs)], inputs, constants=arrays)
    if not constant:
        del proto.graph.initializer[0]
    graph = check(save(proto, tmp_path), {"a": a} | ({} if constant else {"b": b}))
    if constant and bias not in (None, (3, 4)):
        assert [n.name for n in graph.nodes][-2:] == ["fc", "fc.bias_add"]
        assert [n.output for n in graph.nodes][-2:] == ["y.dense", "y"]


@pytest.mark.parametrize(
    ("left", "right"), [((2, 3), (3,)), ((3,), (3, 2)), ((4, 2, 3), (4, 3, 5)), ((2, 3), (4, 3, 5)), ((3,), (4, 3, 5))]
)
@pytest.mark.parametrize("constant", [True, False])
def test_matmul_of_any_rank(tmp_path: Path, left: tuple[int, ...], right: tuple[int, ...], constant: bool) -> None:
    arrays = {"a": random(*left), "b": random(*right, seed=1)}
    inputs = {"a": left} if constant else {"a": left, "b": right}
    constants = {"b": arrays["b"]} if constant else {}
    path = save(model([node("MatMul", ["a", "b"], ["y"])], inputs, constants=constants), tmp_path)
    check(path, {name: arrays[name] for name in inputs})


def test_one_weight_read_in_two_layouts_keeps_both(tmp_path: Path) -> None:
    nodes = [
        node("MatMul", ["x", "w"], ["a"]),
        node("Gemm", ["a", "w"], ["b"], transB=1),
        node("Mul", ["b", "w"], ["y"]),
    ]
    check(save(model(nodes, {"x": [3, 3]}, constants={"w": random(3, 3)}), tmp_path), {"x": random(3, 3)})
