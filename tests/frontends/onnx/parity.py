"""Quantized ONNX files in onnxruntime and in qbench, op by op: each of our ops is fed with onnxruntime's integers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import onnxruntime

from qbench.ir.graph import Graph, Node
from qbench.ir.op import Array
from qbench.runtime.feeds import check_feeds
from qbench.runtime.interpreter import specialized, step
from qbench.runtime.program import Program

FOLLOWERS = ("clip", "qnn.requantize", "integer.requantize_float32", "nn.bias_add")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int4", "uint4")


@dataclass(frozen=True)
class Compared:
    """One value of a graph against onnxruntime's."""

    name: str
    op: str
    """The op that decides about the value: the one before its requantize and clip."""
    elements: int
    different: int
    steps: int
    """The largest difference."""


def session(model: onnx.ModelProto, saved: Path | None = None) -> onnxruntime.InferenceSession:
    """onnxruntime with its default optimizations; what they make may be saved."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    if saved is not None:
        options.optimized_model_filepath = str(saved)
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def observed(model: onnx.ModelProto, graph: Graph) -> onnx.ModelProto:
    """The model with every integer value that is in the graph as an output."""
    wanted = onnx.ModelProto()
    wanted.CopyFrom(model)
    made = {name for node in model.graph.node for name in node.output}
    outputs = {output.name for output in model.graph.output}
    names = [v for v in graph.activations() if v in made - outputs and graph.types[v].dtype in INTEGERS]
    wanted.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    return wanted


def runtime_values(model: onnx.ModelProto, graph: Graph, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """What onnxruntime computes for each integer value that is in the graph, and for the outputs."""
    run = session(observed(model, graph))
    keys = [output.name for output in run.get_outputs()]
    return dict(zip(keys, run.run(keys, dict(feeds)), strict=True))


def fused_ops(model: onnx.ModelProto, graph: Graph) -> Counter[str]:
    """How often each op stands in what onnxruntime's default optimizations make of a model."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "optimized.onnx"
        session(observed(model, graph), saved=path)
        return Counter(node.op_type for node in onnx.load(path).graph.node)


def compare(graph: Graph, theirs: Mapping[str, Array], feeds: Mapping[str, Array]) -> list[Compared]:
    """Run a graph op by op; whatever onnxruntime has computed replaces our own result before the next op reads it."""
    graph = specialized(graph, check_feeds(graph, feeds))
    values: dict[str, Any] = dict(feeds) | {name: constant.array for name, constant in graph.constants.items()}
    found: list[Compared] = []
    for node in graph.nodes:
        for name, ours in zip(node.outputs, step(graph, node, [values[v] for v in node.inputs]), strict=True):
            values[name] = theirs.get(name, ours)
            if name in theirs and graph.types[name].dtype in INTEGERS:
                found.append(compared(graph, name, ours, theirs[name]))
    return found


def compare_program(program: Program, theirs: Mapping[str, Array], feeds: Mapping[str, Array]) -> list[Compared]:
    """Run a program value by value, each from all the others that onnxruntime has computed."""
    graph, found = program.graph, list[Compared]()
    for name, array in theirs.items():
        if graph.types[name].dtype in INTEGERS and name in graph.producers:
            start = {other: known for other, known in theirs.items() if other != name}
            ours = program.run(feeds, start=start, keep=[name], threads=1)[name]
            found.append(compared(graph, name, ours, array))
    return found


def compared(graph: Graph, name: str, ours: Array, theirs: Array) -> Compared:
    """How far apart a value of ours and of onnxruntime are."""
    assert theirs.dtype == ours.dtype and theirs.shape == ours.shape, name
    apart = np.abs(ours.astype(np.int64) - theirs.astype(np.int64))
    op = _deciding(graph, graph.producers[name])
    return Compared(name, op, apart.size, int((apart > 0).sum()), int(apart.max(initial=0)))


def _deciding(graph: Graph, node: Node) -> str:
    while node.op in FOLLOWERS and node.inputs[0] in graph.producers:
        before = graph.producers[node.inputs[0]]
        if len(graph.consumers[node.inputs[0]]) > 1:
            break
        node = before
    return node.op
