"""What networks rarely do with their operands, quantized: the integers are as accurate as the fake-quantized floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from qbench.ir.graph import Graph
from qbench.passes.annotate import AnnotatePass, points
from qbench.passes.legalize import LegalizePass
from qbench.passes.realize import RealizePass
from qbench.runtime.interpreter import run
from tests.passes.graphs import array, feeds, graph, node
from tests.passes.quantizable import bind_qparams, every_value, min_max_qparams, sqnr

SQUARE = array(4, 4, seed=1)
ROOTS = ("sqrt", "log", "reciprocal")
POOL = {"strides": (1, 1), "ceil_mode": True}


def dense(output: str = "y") -> Any:
    return node(output, "nn.dense", "x", "w")


GRAPHS = {
    "matmul by a constant on the left": graph(node("y", "nn.batch_matmul", "w", "x"), x=("N", 4, 4), w=SQUARE),
    "dense layer of a constant": graph(node("y", "nn.dense", "w", "x"), x=(5, 4), w=SQUARE),
    "convolution of a constant": graph(node("y", "nn.conv2d", "w", "x"), x=(4, 4, 3, 3), w=array(1, 4, 6, 6)),
    "weight that a matmul reads, too": graph(
        dense("d"), node("y", "nn.batch_matmul", "d", "w"), x=("N", 4, 4), w=SQUARE
    ),
    "weight that is added, too": graph(dense("d"), node("y", "add", "d", "w"), x=("N", 4, 4), w=SQUARE),
    "weight that is an output": graph(dense(), x=("N", 4), w=SQUARE, outputs=("y", "w")),
    "bias that is added, too": graph(
        node("s", "add", "x", "b"), node("y", "nn.bias_add", "s", "b"), x=("N", 4), b=array(4)
    ),
    "large bias alone": graph(node("t", "tanh", "x"), node("y", "nn.bias_add", "t", "b"), b=array(4, high=3e5)),
    "average over windows of many sizes": graph(
        node("r", "nn.relu", "x"),
        node("y", "nn.avg_pool2d", "r", pool_size=(13, 13), padding=(6, 6, 6, 6), **POOL),
        x=("N", 1, 14, 14),
    ),
    "axes counted from the end": graph(
        node("p", "nn.prelu", "x", "s", axis=-1),
        node("b", "nn.bias_add", "p", "s", axis=-1),
        node("y", "mean", "b", axes=(-2,)),
        x=("N", 3, 4),
        s=array(4),
    ),
} | {f"{op} has no value at some integers": graph(node("s", "sigmoid", "x"), node("y", op, "s")) for op in ROOTS}


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16"])
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("name", GRAPHS)
def test_integers_are_as_accurate_as_the_fake_quantized_graph(name: str, symmetric: bool, dtype: Any) -> None:
    given: Graph = GRAPHS[name]
    fed = feeds(given)
    annotated = AnnotatePass()(given)
    assert not any(n.reason for n in annotated.nodes)
    fake = bind_qparams(
        annotated, min_max_qparams(annotated, every_value(given, fed), dtype, symmetric=(symmetric, True))
    )
    legal = LegalizePass()(RealizePass()(fake))
    exact, simulated, integers = (run(g, fed) for g in (given, fake, legal))
    assert sqnr(exact["y"], integers["y"]) > min(sqnr(exact["y"], simulated["y"]) - 1, 80)
    for output in given.outputs[1:]:
        np.testing.assert_array_equal(integers[output], exact[output])


def test_only_readers_that_agree_on_the_axis_give_a_weight_a_scale_per_channel() -> None:
    axes = {
        name: {p.channel_axis for p in points(AnnotatePass()(GRAPHS[name])).values() if p.kind == "weight"}
        for name in ("weight that is added, too", "weight that is an output", "dense layer of a constant")
    }
    assert list(axes.values()) == [{None}, {0}, {None}]


def test_an_average_without_a_divisor_for_all_its_windows_stays_in_float() -> None:
    pool = node("y", "nn.avg_pool2d", "r", pool_size=(63, 63), padding=(31, 31, 31, 31), **POOL)
    annotated = AnnotatePass()(graph(node("r", "nn.relu", "x"), pool, x=("N", 1, 64, 64)))
    assert annotated.node("y").reason == "unsupported: an average over windows of too many sizes to have one divisor"
