"""What is quantized here, written to a file and read back is the same integer graph: there is one road."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qbench.errors import ExportError
from qbench.exporters import write_onnx
from qbench.exporters.tflite import write_tflite
from qbench.frontends import load
from qbench.ir.graph import Graph
from qbench.ir.op import Array, bind
from qbench.passes.annotate import AnnotatePass, points, quantized_value
from qbench.passes.realize import RealizePass
from qbench.quant.semantics import Semantics
from qbench.runtime.interpreter import run
from tests.forms.nets import CASES
from tests.passes.quantizable import bind_qparams, every_value, min_max_qparams

KINDS = {
    "uint8": ("uint8", "int8", True, (False, True)),
    "uint8.tensor": ("uint8", "uint8", False, (False, False)),
    "int8": ("int8", "int8", True, (False, True)),
    "int8.tensor": ("int8", "int8", False, (False, False)),
    "int16": ("int16", "int8", True, (True, True)),
}  # fmt: skip
"""Types of activations and weights, whether scales run along channels, what is symmetric."""

ROUNDED_BY_CODE = ("average", "resize.linear")
SAID_OTHERWISE = ("dense", "matmul", "bias", "nn", "reshape")
"""What ONNX says in other ops: rows of a dense layer, a transposed factor, a product of x and sigmoid(x)."""


def quantized(graph: Graph, kind: str, semantics: Semantics) -> tuple[Graph, Graph, dict[str, Array]]:
    """The annotated graph with qparams, the qnn graph, and a batch."""
    dtype, weights, per_channel, symmetric = KINDS[kind]
    random = np.random.default_rng(3)
    feeds = {
        name: (random.normal(size=(2, *t.shape[1:])) * (1.5 if name == "x" else 0.7)).astype(np.float32)
        for name, t in graph.input_types().items()
    }
    annotated = AnnotatePass()(graph)
    values = every_value(graph, feeds)
    found = min_max_qparams(annotated, values, dtype, per_channel, weights, symmetric)
    bound = bind_qparams(annotated, found)
    return bound, RealizePass(semantics=semantics)(bound), {k: 1.3 * v for k, v in feeds.items()}


def integers(graph: Graph, tensors: list[str], feeds: dict[str, Array]) -> dict[str, Array]:
    """The integers of some tensors."""
    found = {tensor: quantized_value(graph, tensor) or f"{tensor}.quantized" for tensor in tensors}
    wanted = {tensor: value for tensor, value in found.items() if value in graph.types}
    made = run(graph, feeds, list(wanted.values()))
    return {tensor: made[value] for tensor, value in wanted.items()}


def summary(graph: Graph) -> list[str]:
    """What each node computes; clips that bound nothing are left out."""
    found: list[str] = []
    for node in graph.nodes:
        op, rank, q = bind(node, graph.qparams), graph.types[node.inputs[0]].rank, graph.qparams.get(node.outputs[0])
        said = {key: getattr(op, key) for key in op.attributes()}
        said |= {"axis": said["axis"] % rank} if said.get("axis") is not None else {}
        if node.op != "clip" or q is None or (said["a_min"], said["a_max"]) != (q.qmin, q.qmax):
            found.append(f"{node.op} {said}")
    return sorted(found)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CASES)
def test_onnx_gives_back_the_same_integers(tmp_path: Path, name: str, kind: str) -> None:
    annotated, ours, feeds = quantized(CASES[name](), kind, "onnx")
    theirs = load(write_onnx(annotated, tmp_path / "net.onnx"))
    tensors = [tensor for tensor, point in points(annotated).items() if point.kind == "activation"]
    wanted, found = integers(ours, tensors, feeds), integers(theirs, tensors, feeds)
    assert wanted
    assert wanted.keys() == found.keys()
    for tensor, array in wanted.items():
        np.testing.assert_array_equal(found[tensor].reshape(array.shape), array, err_msg=tensor)
    if name.partition(".")[0] not in SAID_OTHERWISE:
        assert summary(theirs) == summary(ours)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CASES)
def test_tflite_gives_back_the_same_integers(tmp_path: Path, name: str, kind: str) -> None:
    if name.startswith(ROUNDED_BY_CODE) and kind.startswith("uint8"):
        pytest.skip("TFLite rounds codes, not what they stand for, and uint8 becomes int8 in the file")
    annotated, ours, feeds = quantized(CASES[name](), kind, "tflite")
    if not in_tflite(name, kind):
        with pytest.raises(ExportError):
            write_tflite(ours, tmp_path / "net.tflite")
        return
    theirs = load(write_tflite(ours, tmp_path / "net.tflite"))
    tensors = [tensor for tensor, point in points(annotated).items() if point.kind == "activation"]
    wanted, found = integers(ours, tensors, feeds), integers(theirs, tensors, feeds)
    assert wanted.keys() & found.keys()
    for tensor in wanted.keys() & found.keys():
        array, given = wanted[tensor].astype(np.int64), found[tensor].astype(np.int64)
        if array.shape != given.shape:  # an image of the file, its last axis moved to the front
            given = given.transpose(0, 2, 3, 1)
        if wanted[tensor].dtype != found[tensor].dtype:  # kernels that take uint8 know no scales per channel
            array = array - 128
        np.testing.assert_array_equal(given, array, err_msg=tensor)


def in_tflite(name: str, kind: str) -> bool:
    """Whether TFLite has an operator for a network of these types."""
    head = name.partition(".")[0]
    if name.startswith(("average.padded", "average.counted")) or name == "resize":
        return False
    if name == "prelu":
        return kind != "int16"
    if head == "transposed":  # their files say how large the result is, and here the batch is open
        return False
    if kind == "uint8.tensor":
        return head != "matmul" or name.startswith("matmul.pair")
    if kind == "int8.tensor":
        return head not in ("conv", "depthwise", "dense", "softmax")  # their weights have zero points
    by_table = head in _TABLES or name.startswith("nn.")
    return kind != "int16" or not by_table or name in ("nn.hard_swish", "nn.leaky_relu", "nn.gelu", "abs", "exp")


_TABLES = {
    *("sigmoid", "tanh", "abs", "negative", "exp", "erf", "floor", "clip", "max", "reshape", "transpose", "pad"),
    *("slice", "resize"),
}
"""Networks with a function that TFLite computes by looking codes up, which takes 8 bits."""
