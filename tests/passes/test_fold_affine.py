from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from qbench.ir.graph import Graph
from qbench.ir.op import Array
from qbench.passes.fold_affine import FoldAffinePass
from tests.passes.graphs import array, checked, graph, node, ops
from tests.passes.test_fold_batch_norm import LAYERS


def number(value: float, *shape: int) -> Array:
    return np.full(shape or (1,), value, np.float32)


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("bias", [False, True])
def test_a_product_and_a_sum_after_a_layer_go_into_it(layer: str, bias: bool) -> None:
    first, weight, x = LAYERS[layer]
    middle = [node("b", "nn.bias_add", "l", "bias")] if bias else []
    last = node("m", "multiply", "s", "b" if bias else "l"), node("y", "add", "m", "c")
    g = graph(first, *middle, *last, x=x, w=array(*weight), bias=array(6, seed=9), s=number(-1.5), c=number(0.7))
    result = checked(FoldAffinePass(), g)
    assert ops(result) == [first.op, "nn.bias_add"]
    assert {source for n in result.nodes for source in n.sources} == {n.name for n in g.nodes}


def around(layer: str, *, s: Array, c: Array, **more: Array) -> Graph:
    """An activation's results, times and plus a number, as a layer reads them."""
    last, weight, x = LAYERS[layer]
    before = node("h", "nn.hard_swish", "x"), node("m", "multiply", "h", "s"), node("a", "add", "m", "c")
    return graph(*before, replace(last, inputs=("a", "w")), x=x, w=array(*weight), s=s, c=c, **more)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_product_and_a_sum_before_a_layer(layer: str) -> None:
    result = checked(FoldAffinePass(), around(layer, s=number(0.3), c=number(0.7, 1, 1)))
    op = LAYERS[layer][0].op
    rest = [op, "nn.bias_add"] if layer in ("grouped", "depthwise", "dense") else ["add", op]  # no windows stick out
    assert ops(result) == ["nn.hard_swish", *rest]
    assert result.outputs == ("l",)


def test_a_padded_layer_has_zeros_around_what_was_added() -> None:
    result = checked(FoldAffinePass(), around("conv", s=number(0.25), c=number(1)))
    np.testing.assert_array_equal(result.constants[result.node("a").inputs[1]].array, [4])
    np.testing.assert_array_equal(result.constants[result.node("l").inputs[1]].array, array(6, 4, 3, 3) / 4)


@pytest.mark.parametrize("s", [0.0, 1e-30, 1e30, np.inf, np.nan])
def test_numbers_that_spoil_a_weight_stay(s: float) -> None:
    g = graph(node("l", "nn.dense", "x", "w"), node("y", "multiply", "l", "s"), x=(2, 5), w=array(6, 5), s=number(s))
    assert FoldAffinePass()(g) is g


def test_a_bias_that_would_overflow_stays() -> None:
    g = graph(
        node("l", "nn.dense", "x", "w"), node("b", "nn.bias_add", "l", "bias"), node("y", "multiply", "b", "s"),
        x=(2, 5), w=array(6, 5), bias=number(1e30, 6), s=number(1e9),
    )  # fmt: skip
    assert FoldAffinePass()(g) is g


@pytest.mark.parametrize(
    ("layer", "s", "c"),
    [("conv", 1e-15, 1e30), ("conv", 1, np.inf), ("conv", 2, np.nan), ("dense", 1, np.inf), ("dense", 2, np.nan)],
)
def test_sums_that_leave_the_finite_numbers_stay(layer: str, s: float, c: float) -> None:
    result = FoldAffinePass()(around(layer, s=number(s), c=number(c)))
    assert "add" in ops(result)
    assert all(np.isfinite(constant).all() or name == "c" for name, constant in arrays(result).items())


def test_what_others_read_too_stays() -> None:
    g = graph(node("l", "nn.dense", "x", "w"), node("y", "multiply", "l", "s"), outputs=("l", "y"), x=(2, 5),
              w=array(6, 5), s=number(2))  # fmt: skip
    assert checked(FoldAffinePass(), g) is g
    both = around("dense", s=number(2), c=number(3))
    assert checked(FoldAffinePass(), graph(*both.nodes, outputs=("a", "l"), x=(2, 5), **arrays(both))).node("m")


def test_factors_of_channels_stay() -> None:
    """Outliers would come into the weights: `FoldScaleAxisPass` is asked for that."""
    g = graph(node("m", "multiply", "x", "s"), node("l", "nn.conv2d", "m", "w"), w=array(4, 4, 1, 1), s=array(4, 1, 1))
    assert checked(FoldAffinePass(), g) is g


def arrays(g: Graph) -> dict[str, Array]:
    return {name: constant.array for name, constant in g.constants.items()}
