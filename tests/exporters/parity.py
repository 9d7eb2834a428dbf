"""Running exported models in onnxruntime, and the integer graph on its integers, layer by layer."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import helper

from qbench.calibration.collect import collect
from qbench.exporters import onnx_model
from qbench.ir.graph import Graph
from qbench.ir.specialize import specialize
from qbench.passes.prepare import prepare
from qbench.quant.config import QuantConfig
from qbench.quantize.quantized import Quantized, quantize_graph
from qbench.runtime.feeds import check_feeds
from qbench.runtime.interpreter import step


def quantized(graph: Graph, x: np.ndarray, config: QuantConfig | None = None) -> Quantized:
    """Calibrated on x by a config, by default with onnxruntime's rounding."""
    prepared = prepare(graph)
    return quantize_graph(prepared, collect(prepared.graph, x), config or QuantConfig(rounding="fp32_rne"))


def session(model: bytes | Path, optimized: Path | None = None, default: bool = True) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.x64quantprecision", "1")  # without VNNI its sums saturate otherwise
    if not default:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    if optimized is not None:
        options.optimized_model_filepath = str(optimized)
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def fused_ops(path: Path) -> Counter[str]:
    """How often each op stands in the model that onnxruntime's default optimizations make."""
    optimized = path.with_suffix(".optimized.onnx")
    session(path, optimized)
    return Counter(node.op_type for node in onnx.load(optimized).graph.node)


def runtime_integers(bound: Graph, x: np.ndarray) -> dict[str, np.ndarray]:
    """onnxruntime's own integers of every quantized activation, by float tensor."""
    model = onnx_model(bound)
    tensors = {n.output[0].removesuffix(".quantized"): n for n in model.graph.node if n.op_type == "QuantizeLinear"}
    tensors = {tensor: node for tensor, node in tensors.items() if tensor in bound.types}  # not the same once more
    for tensor, node in tensors.items():
        q = next(o for o in model.graph.initializer if o.name == node.input[2])
        shape = [None] * bound.types[tensor].rank
        model.graph.output.append(helper.make_tensor_value_info(node.output[0], q.data_type, shape))
    results = session(model.SerializeToString()).run([n.output[0] for n in tensors.values()], {bound.inputs[0]: x})
    return dict(zip(tensors, results, strict=True))


def layer_by_layer(model: Quantized, x: np.ndarray) -> dict[str, np.ndarray]:
    """What our integers differ by from onnxruntime's, by tensor, each layer fed with onnxruntime's integers."""
    sizes = check_feeds(model.graph, {model.graph.inputs[0]: x})
    graph, theirs = specialize(model.graph, sizes), runtime_integers(model.annotated, x)
    names = {tensor: f"{tensor}.quantized" for tensor in theirs}
    by_value = {name if name in graph.types else tensor: tensor for tensor, name in names.items()}
    values: dict[str, np.ndarray] = {graph.inputs[0]: x}
    values |= {name: constant.array for name, constant in graph.constants.items()}
    differences: dict[str, np.ndarray] = {}
    for node in graph.nodes:
        results = step(graph, node, [values[name] for name in node.inputs])
        for name, ours in zip(node.outputs, results, strict=True):
            tensor = by_value.get(name)
            if tensor is not None:
                assert ours.dtype == theirs[tensor].dtype
                differences[tensor] = ours.astype(np.int64) - theirs[tensor].astype(np.int64)
            values[name] = ours if tensor is None else theirs[tensor]
    return differences
