"""Steps that want rows or windows, where these are parts of something larger, with gaps between them.

Images are cut and joined in place. Those of one row and one column lie alike in every order of their axes, so that
nothing but the gaps tells the parts from rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from qbench.ir.dtypes import DType
from qbench.ir.graph import Graph
from qbench.ir.qparams import QParams
from qbench.passes.annotate import AnnotatePass
from qbench.passes.legalize import LegalizePass
from tests.graphs import graph_of
from tests.passes.calibrated import Calibrated
from tests.passes.quantizable import every_value, min_max_qparams
from tests.runtime.lowerings.agree import assert_agree
from tests.runtime.lowerings.layers import node
from tests.runtime.lowerings.test_tflite import Arrays, agree, legal

Q = QParams(0.1, 3, "uint8")
NARROW, SUMS = QParams(1 / 256, 0, "uint8"), QParams(1e-6, 0, "int32")
X = np.random.default_rng(0).integers(0, 256, (6, 1, 1, 20)).astype(np.uint8)
CUT = ("strided_slice", "t", "s", {"begin": (5,), "end": (13,), "strides": (1,), "axes": (3,)})
GAMMA: Arrays = {"gamma": np.arange(8, dtype=np.int16) * 1000 - 3000}
ROWS: dict[str, tuple[str, str, dict[str, Any], QParams, Arrays]] = {
    "softmax": ("qnn.softmax", "s", {"semantics": "tflite"}, NARROW, {}),
    "softmax of onnx": ("qnn.softmax", "s", {"semantics": "onnx"}, NARROW, {}),
    "normalization": ("qnn.rms_norm", "s gamma", {"epsilon": 1e-5}, SUMS, GAMMA),
}


@pytest.mark.parametrize("kind", ROWS)
def test_what_is_read_was_cut_in_place(kind: str) -> None:
    op, reads, attrs, made, constants = ROWS[kind]
    before = ("qnn.unary", "x", "t", {"function": "nn.relu", "semantics": "tflite"})
    qs = {"x": Q, "t": Q, "s": Q, "y": made}
    agree(legal({"x": X}, qs, [before, CUT, (op, reads, "y", attrs)], constants), {"x": X})


def test_what_is_picked_from_was_cut_in_place() -> None:
    feeds = {"x": X.astype(np.float32), "at": np.array([2, 0, 7, -1], np.int64)}
    nodes = [
        node("nn.relu", "x", "t"),
        node("strided_slice", "t", "s", begin=(5,), end=(13,), strides=(1,), axes=(3,)),
        node("take", "s at", "y", axis=3),
    ]
    assert_agree(graph_of(feeds, nodes, "y", {}), feeds)


def quantized(graph: Graph, feeds: Arrays, dtype: DType = "uint8") -> Graph:
    values, annotated = every_value(graph, feeds), AnnotatePass()(graph)
    q = min_max_qparams(annotated, values, dtype, False, "int8", False)
    return LegalizePass()(Calibrated(graph, feeds, values, annotated, q, "tflite_double").realized)


@pytest.mark.parametrize("axis", [1, 2, 3])
@pytest.mark.parametrize("parts", ["t u", "t t"])
def test_convolutions_write_into_what_their_results_are_joined_to(axis: int, parts: str) -> None:
    rng = np.random.default_rng(0)
    feeds: Arrays = {"x": rng.normal(size=(2, 3, 4, 4)).astype(np.float32)}
    weights: Arrays = {name: rng.normal(size=(4, 3, 1, 1)).astype(np.float32) for name in "vw"}
    nodes = [
        node("nn.conv2d", "x v", "t"),
        node("nn.conv2d", "x w", "u"),
        node("concatenate", parts, "y", axis=axis),
    ]
    graph = graph_of(feeds, nodes, "y", **weights)
    agree(graph, feeds)
    agree(quantized(graph, feeds), feeds)


@pytest.mark.parametrize("axis", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_a_constant_is_joined_between_convolutions(axis: int, dtype: DType) -> None:
    """In their memory channels come last, and int8 lies as codes."""
    rng = np.random.default_rng(0)
    feeds: Arrays = {"x": rng.normal(size=(2, 3, 4, 4)).astype(np.float32)}
    shape = [2, 4, 4, 4]
    shape[axis] = 3
    constants: Arrays = {
        "v": rng.normal(size=(4, 3, 1, 1)).astype(np.float32),
        "k": rng.normal(size=shape).astype(np.float32),
        "w": rng.normal(size=(5, 7 if axis == 1 else 4, 3, 3)).astype(np.float32),
    }
    nodes = [
        node("nn.conv2d", "x v", "t"),
        node("concatenate", "k t", "u", axis=axis),
        node("nn.conv2d", "u w", "y"),
    ]
    graph = graph_of(feeds, nodes, "y", **constants)
    agree(graph, feeds)
    agree(quantized(graph, feeds, dtype), feeds)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_windows_over_a_few_of_the_channels(channels: int) -> None:
    rng = np.random.default_rng(0)
    feeds: Arrays = {"x": rng.normal(size=(2, 3, 4, 4)).astype(np.float32)}
    weights: Arrays = {
        "v": rng.normal(size=(6, 3, 1, 1)).astype(np.float32),
        "w": rng.normal(size=(5, channels, 3, 2)).astype(np.float32),
    }
    nodes = [
        node("nn.conv2d", "x v", "t"),
        node("strided_slice", "t", "s", begin=(1,), end=(1 + channels,), strides=(1,), axes=(1,)),
        node("nn.conv2d", "s w", "y"),
    ]
    graph = graph_of(feeds, nodes, "y", **weights)
    agree(graph, feeds)
    agree(quantized(graph, feeds), feeds)
