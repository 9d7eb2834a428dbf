"""Making small ONNX models, and checking that an imported graph gives onnxruntime's outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from qbench.frontends import load
from qbench.ir.graph import Graph
from qbench.runtime.interpreter import run

Shape = Sequence[int | str | None]


def node(op: str, inputs: Sequence[str], outputs: Sequence[str], name: str = "", **attrs: Any) -> NodeProto:
    return helper.make_node(op, list(inputs), list(outputs), name=name, **attrs)


def model(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Shape],
    outputs: Sequence[str] = ("y",),
    constants: Mapping[str, np.ndarray] | None = None,
    *,
    opset: int = 17,
    dtypes: Mapping[str, int] | None = None,
) -> ModelProto:
    types = dtypes or {}
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info(k, types.get(k, TensorProto.FLOAT), v) for k, v in inputs.items()],
        [helper.make_tensor_value_info(k, types.get(k, TensorProto.FLOAT), None) for k in outputs],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in (constants or {}).items()],
    )
    ir_version = 10 if opset > 9 else 4
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)


def save(proto: ModelProto, folder: Path, name: str = "model.onnx") -> Path:
    path = folder / name
    path.write_bytes(proto.SerializeToString())
    return path


def classifier(folder: Path, batch: int | str = "N") -> Path:
    """A small network of images in 4 classes: convolution, relu, average pool, dense."""
    nodes = [
        node("Conv", ["x", "w"], ["conv"], "conv", kernel_shape=[3, 3]),
        node("Relu", ["conv"], ["relu"], "relu"),
        node("GlobalAveragePool", ["relu"], ["pool"], "pool"),
        node("Flatten", ["pool"], ["flat"], "flat"),
        node("Gemm", ["flat", "v", "b"], ["logits"], "gemm"),
    ]
    constants = {"w": random(6, 3, 3, 3), "v": random(6, 4, seed=2), "b": random(4, seed=3)}
    return save(model(nodes, {"x": (batch, 3, 8, 8)}, ["logits"], constants), folder)


def reference(path: Path, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(feeds)), strict=True))


def check(path: Path, feeds: Mapping[str, np.ndarray], tolerance: float = 1e-4, **options: Any) -> Graph:
    """Import, run, compare with onnxruntime: within `tolerance` of the output's largest value."""
    graph = load(path, **options)
    got, want = run(graph, feeds), reference(path, feeds)
    assert list(got) == list(want)
    for name, expected in want.items():
        assert got[name].shape == expected.shape, name
        assert got[name].dtype == expected.dtype, name
        largest = np.abs(expected.astype(np.float64)).max(initial=1e-30)
        error = np.abs(got[name].astype(np.float64) - expected.astype(np.float64)).max(initial=0)
        assert error <= tolerance * largest, f"{name}: {error} of {largest}"
    return graph


def random(*shape: int, seed: int = 0, dtype: Any = np.float32) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).standard_normal(shape)).astype(dtype)
