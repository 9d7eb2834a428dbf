"""Write trained parameters as ONNX files whose nodes and tensors have names that a person would give them.

A node's output has the node's name, a parameter the name of its node and its role: ``dense_1``, ``dense_1.weight``.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET, IR_VERSION = 17, 8

DIGITS = helper.make_tensor_value_info("x", TensorProto.FLOAT, ("N", 784))
CLASSES = helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ("N", 10))

Parameters = Mapping[str, np.ndarray]
Values = onnx.ValueInfoProto | list[onnx.ValueInfoProto]


class Writer:
    """Collects nodes and parameters in the order of the network, each node named as its output."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.nodes: list[onnx.NodeProto] = []
        self.parameters: list[onnx.TensorProto] = []

    def parameter(self, name: str, value: np.ndarray) -> str:
        self.parameters.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(self, op: str, name: str, *inputs: str, output: str | None = None, **attributes: object) -> str:
        self.nodes.append(helper.make_node(op, inputs, [output or name], name, **attributes))
        return output or name

    def model(self, x: Values = DIGITS, y: Values = CLASSES) -> onnx.ModelProto:
        inputs, outputs = (values if isinstance(values, list) else [values] for values in (x, y))
        graph = helper.make_graph(self.nodes, self.title, inputs, outputs, self.parameters)
        opset = helper.make_opsetid("", OPSET)
        model = helper.make_model(graph, producer_name="qbench", ir_version=IR_VERSION, opset_imports=[opset])
        onnx.checker.check_model(model, full_check=True)
        return model


def mlp(parameters: Parameters) -> onnx.ModelProto:
    """Return the MLP, each dense layer as MatMul, Add and Relu."""
    writer = Writer("mnist_mlp")
    h = "x"
    for number in (1, 2, 3):
        dense = f"dense_{number}"
        weight = writer.parameter(f"{dense}.weight", parameters[f"{dense}.weight"].T)
        bias = writer.parameter(f"{dense}.bias", parameters[f"{dense}.bias"])
        h = writer.node("MatMul", dense, h, weight)
        h = writer.node("Add", f"bias_add_{number}", h, bias)
        if number < 3:
            h = writer.node("Relu", f"relu_{number}", h)
    writer.node("Softmax", "softmax", h, output="probabilities", axis=-1)
    return writer.model()


def cnn(parameters: Parameters) -> onnx.ModelProto:
    """Return the CNN, batch norm as nodes of their own. It takes flat digits, as the MLP does."""
    writer = Writer("mnist_cnn")

    def block(name: str, h: str, *, stride: int = 1, group: int = 1) -> str:
        weight = parameters[f"{name}.weight"]
        kernel = weight.shape[2:]
        pads = [side // 2 for side in kernel] * 2
        weight = writer.parameter(f"{name}.weight", weight)
        h = writer.node("Conv", name, h, weight, kernel_shape=kernel, pads=pads, strides=(stride, stride), group=group)
        roles = {"gamma": "weight", "beta": "bias", "mean": "running_mean", "variance": "running_var"}
        norm = f"{name}_norm"
        stored = [writer.parameter(f"{norm}.{role}", parameters[f"{norm}.{key}"]) for role, key in roles.items()]
        return writer.node("BatchNormalization", norm, h, *stored, epsilon=1e-5)

    def relu(h: str, name: str) -> str:
        return writer.node("Relu", f"{name}_relu", h)

    shape = writer.parameter("image.shape", np.array([-1, 1, 28, 28], np.int64))
    h = writer.node("Reshape", "image", "x", shape)
    h = relu(block("conv_1", h), "conv_1")
    h = pooled = writer.node("MaxPool", "max_pool", h, kernel_shape=(2, 2), strides=(2, 2))
    h = relu(block("conv_2", h), "conv_2")
    h = relu(writer.node("Add", "add", block("conv_3", h), pooled), "add")
    h = relu(block("depthwise_1", h, stride=2, group=16), "depthwise_1")
    h = relu(block("pointwise_1", h), "pointwise_1")
    branches = [relu(block(name, h), name) for name in ("branch_1", "branch_2")]
    h = writer.node("Concat", "concat", *branches, axis=1)
    h = writer.node("GlobalAveragePool", "global_pool", h)
    h = writer.node("Flatten", "flatten", h)
    dense = [writer.parameter(f"dense.{role}", parameters[f"dense.{role}"]) for role in ("weight", "bias")]
    h = writer.node("Gemm", "dense", h, *dense, transB=1)
    writer.node("Softmax", "softmax", h, output="probabilities", axis=-1)
    return writer.model()
