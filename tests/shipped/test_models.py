from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

MLP_NODES = [
    *(("MatMul", "dense_1"), ("Add", "bias_add_1"), ("Relu", "relu_1")),
    *(("MatMul", "dense_2"), ("Add", "bias_add_2"), ("Relu", "relu_2")),
    *(("MatMul", "dense_3"), ("Add", "bias_add_3"), ("Softmax", "softmax")),
]
CNN_OPS = {
    "Reshape": 1,
    "Conv": 7,
    "BatchNormalization": 7,
    "Relu": 7,
    "MaxPool": 1,
    "Add": 1,
    "Concat": 1,
    "GlobalAveragePool": 1,
    "Flatten": 1,
    "Gemm": 1,
    "Softmax": 1,
}


def load(data_dir: Path, name: str) -> onnx.ModelProto:
    return onnx.load(data_dir / f"{name}.onnx")


@pytest.mark.parametrize("name", ["mnist_mlp", "mnist_cnn", "mnist_uneven"])
def test_model_is_valid_with_symbolic_batch(data_dir: Path, name: str) -> None:
    model = load(data_dir, name)
    onnx.checker.check_model(model, full_check=True)
    for value, tensor, size in ((model.graph.input, "x", 784), (model.graph.output, "probabilities", 10)):
        (only,) = value
        dims = only.type.tensor_type.shape.dim
        assert (only.name, dims[0].dim_param, dims[1].dim_value) == (tensor, "N", size)


@pytest.mark.parametrize("name", ["mnist_mlp", "mnist_cnn", "mnist_uneven"])
def test_each_node_and_tensor_is_named_once(data_dir: Path, name: str) -> None:
    graph = load(data_dir, name).graph
    names = [node.name for node in graph.node]
    assert len(set(names)) == len(names)
    assert [node.output[0] for node in graph.node] == [*names[:-1], "probabilities"]
    owners = {constant.name.rpartition(".")[0] for constant in graph.initializer}
    assert owners <= set(names)


def test_mlp_is_784_512_512_10(data_dir: Path) -> None:
    graph = load(data_dir, "mnist_mlp").graph
    assert [(node.op_type, node.name) for node in graph.node] == MLP_NODES
    assert {constant.name: tuple(constant.dims) for constant in graph.initializer} == {
        "dense_1.weight": (784, 512),
        "dense_1.bias": (512,),
        "dense_2.weight": (512, 512),
        "dense_2.bias": (512,),
        "dense_3.weight": (512, 10),
        "dense_3.bias": (10,),
    }


def test_cnn_has_each_kind_of_layer(data_dir: Path) -> None:
    graph = load(data_dir, "mnist_cnn").graph
    assert Counter(node.op_type for node in graph.node) == CNN_OPS
    nodes = {node.name: node for node in graph.node}
    groups = {attribute.name: attribute for attribute in nodes["depthwise_1"].attribute}["group"].i
    weight = next(item for item in graph.initializer if item.name == "depthwise_1.weight")
    assert groups == numpy_helper.to_array(weight).shape[0] == 16
    assert nodes["pointwise_1"].input[0] == "depthwise_1_relu"
    assert list(nodes["add"].input) == ["conv_3_norm", "max_pool"]


@pytest.mark.parametrize(("name", "wanted"), [("mnist_mlp", 0.95), ("mnist_cnn", 0.97)])
def test_accuracy_on_digits_not_trained_on(data_dir: Path, name: str, wanted: float) -> None:
    with np.load(data_dir / "mnist_evaluation.npz") as digits:
        x, y = digits["x"], digits["y"]
    session = onnxruntime.InferenceSession(data_dir / f"{name}.onnx", providers=["CPUExecutionProvider"])
    (probabilities,) = session.run(["probabilities"], {"x": x})
    assert np.mean(probabilities.argmax(1) == y) >= wanted


def test_the_uneven_network_computes_what_the_cnn_does(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(data_dir)
    from uneven import uneven

    assert load(data_dir, "mnist_uneven") == uneven(load(data_dir, "mnist_cnn"))
    with np.load(data_dir / "mnist_evaluation.npz") as digits:
        feeds = {"x": digits["x"][:100]}
    even, other = (
        onnxruntime.InferenceSession(data_dir / f"{name}.onnx").run(None, feeds)[0]
        for name in ("mnist_cnn", "mnist_uneven")
    )
    np.testing.assert_allclose(even, other, rtol=1e-3, atol=1e-5)
