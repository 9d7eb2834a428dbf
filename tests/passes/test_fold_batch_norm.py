from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from qbench.errors import GraphError
from qbench.passes.fold_batch_norm import FoldBatchNormPass
from qbench.passes.fold_scale_axis import FoldScaleAxisPass
from tests.passes.graphs import array, checked, graph, node, norm, norm_inputs, ops

LAYERS = {
    "conv": (node("l", "nn.conv2d", "x", "w", padding=(1, 0, 1, 2)), (6, 4, 3, 3), (2, 4, 6, 6)),
    "grouped": (node("l", "nn.conv2d", "x", "w", groups=2), (6, 2, 3, 3), (2, 4, 6, 6)),
    "depthwise": (node("l", "nn.conv2d", "x", "w", groups=3), (6, 1, 3, 3), (2, 3, 6, 6)),
    "transpose": (node("l", "nn.conv2d_transpose", "x", "w", strides=(2, 2)), (4, 6, 3, 3), (2, 4, 5, 5)),
    "transpose_grouped": (node("l", "nn.conv2d_transpose", "x", "w", groups=2), (4, 3, 2, 2), (2, 4, 5, 5)),
    "dense": (node("l", "nn.dense", "x", "w"), (6, 5), ("N", 5)),
}


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("bias", [False, True])
def test_folded_into_a_layer(layer: str, bias: bool) -> None:
    first, weight, x = LAYERS[layer]
    middle = [node("b", "nn.bias_add", "l", "bias")] if bias else []
    last = node("bn", "nn.batch_norm", "b" if bias else "l", *norm_inputs())
    g = graph(first, *middle, last, x=x, w=array(*weight), bias=array(6, seed=9), **norm(6))
    result = checked(FoldBatchNormPass(), g)
    assert [(n.name, n.op, n.outputs) for n in result.nodes] == [
        ("l", first.op, ("l",)),
        ("bn", "nn.bias_add", ("bn",)),
    ]
    assert result.node("l").sources == ("l", "bn")
    assert result.node("bn").sources == (("b", "bn") if bias else ("bn",))
    assert set(result.constants) == {"w", "bn_beta"}
    assert result.node("l").attrs == first.attrs


def test_dense_of_rank_three_has_its_channels_last() -> None:
    dense = node("l", "nn.dense", "x", "w")
    folded = graph(
        dense, node("bn", "nn.batch_norm", "l", *norm_inputs(), axis=2), x=(2, 3, 5), w=array(6, 5), **norm(6)
    )
    assert ops(checked(FoldBatchNormPass(), folded)) == ["nn.dense", "nn.bias_add"]
    kept = graph(dense, node("bn", "nn.batch_norm", "l", *norm_inputs()), x=(2, 3, 5), w=array(6, 5), **norm(3))
    assert ops(checked(FoldBatchNormPass(), kept)) == ["nn.dense", "multiply", "nn.bias_add"]


def test_elsewhere_a_multiply_and_a_bias_add() -> None:
    g = graph(node("bn", "nn.batch_norm", "x", *norm_inputs()), **norm(4))
    result = checked(FoldBatchNormPass(), g)
    assert ops(result) == ["multiply", "nn.bias_add"]
    assert result.nodes[-1].name == "bn" and all(n.sources == ("bn",) for n in result.nodes)


def test_a_layer_that_others_read_keeps_its_weight() -> None:
    conv = node("l", "nn.conv2d", "x", "w")
    g = graph(
        conv, node("bn", "nn.batch_norm", "l", *norm_inputs()), node("y", "add", "bn", "l"),
        w=array(4, 4, 1, 1), **norm(4),
    )  # fmt: skip
    result = checked(FoldBatchNormPass(), g)
    assert result.constants["w"] == g.constants["w"] and "multiply" in ops(result)


def test_two_norms_in_a_row() -> None:
    g = graph(
        node("l", "nn.conv2d", "x", "w"), node("bn", "nn.batch_norm", "l", *norm_inputs()),
        node("bn2", "nn.batch_norm", "bn", *norm_inputs("two")), w=array(4, 4, 1, 1), **norm(4), **norm(4, 7, "two"),
    )  # fmt: skip
    result = checked(FoldBatchNormPass(), g)
    assert ops(result) == ["nn.conv2d", "nn.bias_add"]
    assert result.node("bn2").sources == ("bn", "bn2") and result.node("l").sources == ("l", "bn", "bn2")


def test_tied_weights_and_tied_parameters_are_copied() -> None:
    g = graph(
        node("l", "nn.conv2d", "x", "w"), node("bn", "nn.batch_norm", "l", *norm_inputs()),
        node("m", "nn.conv2d", "bn", "w"), node("bn2", "nn.batch_norm", "m", *norm_inputs()),
        w=array(4, 4, 1, 1), **norm(4),
    )  # fmt: skip
    result = checked(FoldBatchNormPass(), g)
    assert ops(result) == ["nn.conv2d", "nn.bias_add"] * 2
    assert result.node("l").inputs[1] == "w.l" and result.node("m").inputs[1] == "w"


def test_one_array_for_several_parameters() -> None:
    ones = np.ones(4, np.float32)
    g = graph(
        node("l", "nn.conv2d", "x", "w"), node("bn", "nn.batch_norm", "l", *"ozzo"), w=array(4, 4, 1, 1), o=ones, z=ones
    )
    checked(FoldBatchNormPass(), g)


def test_a_computed_weight_is_left_alone() -> None:
    g = graph(
        node("l", "nn.dense", "x", "v"), node("bn", "nn.batch_norm", "l", *norm_inputs()),
        inputs={"x": (2, 5), "v": (6, 5)}, **norm(6),
    )  # fmt: skip
    assert ops(checked(FoldBatchNormPass(), g)) == ["nn.dense", "multiply", "nn.bias_add"]


def test_impossible_variance_is_named() -> None:
    params = norm(4) | {"bn_var": np.array([1, -1, 1, 1], np.float32)}
    with pytest.raises(GraphError, match=r"'bn'.*channel 1.*variance -1"):
        FoldBatchNormPass()(graph(node("bn", "nn.batch_norm", "x", *norm_inputs()), **params))


def test_overflow_is_named() -> None:
    tiny = norm(4) | {"bn_var": np.full(4, 1e-38, np.float32), "bn_gamma": np.full(4, 1e38, np.float32)}
    conv = node("l", "nn.conv2d", "x", "w")
    g = graph(conv, node("bn", "nn.batch_norm", "l", *norm_inputs(), epsilon=0.0), w=array(4, 4, 1, 1), **tiny)
    with pytest.raises(GraphError, match=r"'l'.*beyond float32"):
        FoldBatchNormPass()(g)


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_scale_after_a_layer(layer: str, bias: bool, left: bool) -> None:
    first, weight, x = LAYERS[layer]
    middle = [node("b", "nn.bias_add", "l", "bias")] if bias else []
    operands = ("b" if bias else "l", "s")
    g = graph(
        first, *middle, node("y", "multiply", *(operands[::-1] if left else operands)), x=x, w=array(*weight),
        bias=array(6, seed=9), s=array(6, *[1] * (len(x) - 2), seed=5),
    )  # fmt: skip
    result = checked(FoldScaleAxisPass(), g)
    assert ops(result) == [first.op, *(["nn.bias_add"] if bias else [])]
    assert result.nodes[-1].outputs == ("y",)


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("scalar", [False, True])
def test_scale_before_a_layer(layer: str, scalar: bool) -> None:
    first, weight, x = LAYERS[layer]
    size = 1 if scalar else x[1]
    assert isinstance(size, int)
    scale = array(size, *[1] * (len(x) - 2), seed=5)
    g = graph(node("m", "multiply", "x", "s"), replace(first, inputs=("m", "w")), x=x, w=array(*weight), s=scale)
    result = checked(FoldScaleAxisPass(), g)
    assert ops(result) == [first.op] and result.node("l").sources == ("m", "l")


def test_scales_that_vary_elsewhere_stay() -> None:
    g = graph(node("m", "multiply", "x", "s"), node("l", "nn.conv2d", "m", "w"), w=array(4, 4, 1, 1), s=array(6, 1))
    assert checked(FoldScaleAxisPass(), g) is g


def test_several_scales_around_a_layer() -> None:
    g = graph(
        node("m", "multiply", "x", "s"), node("n", "multiply", "m", "s"), node("l", "nn.conv2d", "n", "w"),
        node("o", "multiply", "l", "s"), node("y", "multiply", "o", "s"), w=array(4, 4, 1, 1), s=array(4, 1, 1),
    )  # fmt: skip
    assert ops(checked(FoldScaleAxisPass(), g)) == ["nn.conv2d"]
