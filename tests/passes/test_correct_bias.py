"""Bias correction: what rounding the weights adds on average is taken out of the bias."""

from __future__ import annotations

import numpy as np
import pytest

from qbench.ir.build import build
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Attr, Graph
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.passes.annotate import AnnotatePass
from qbench.passes.correct_bias import CorrectBiasPass
from qbench.runtime.interpreter import run
from tests.passes.quantizable import bind_qparams, node


def convolution(groups: int) -> Graph:
    rng = np.random.default_rng(groups)
    weight = rng.normal(size=(4, 4 // groups, 3, 3)).astype(np.float32)
    nodes = [node("conv", "nn.conv2d", "x w", "c", groups=groups), node("bias", "nn.bias_add", "c b", "y")]
    constants = {"w": Constant(weight), "b": Constant(rng.normal(size=4).astype(np.float32))}
    return build("g", {"x": TensorType(("N", 4, 6, 6), "float32")}, ["y"], nodes, constants)


def bound(graph: Graph) -> Graph:
    return bind_qparams(AnnotatePass()(graph), {"w": QParams(0.4, 0, "int8")})


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_the_mean_of_each_channel_is_that_of_the_float_model(groups: int) -> None:
    graph = convolution(groups)
    means = (1.0, -2.0, 3.0, 0.5)
    x = np.broadcast_to(np.float32(means).reshape(1, 4, 1, 1), (1, 4, 6, 6))
    rounded = bound(graph)
    corrected = CorrectBiasPass(FrozenMap({"x": means}))(rounded)
    exact, before, after = (run(g, {"x": x})["y"] for g in (graph, rounded, corrected))
    np.testing.assert_allclose(after, exact, atol=1e-4)
    assert np.abs(before - exact).max() > 0.1


def test_of_a_transposed_convolution_it_is_the_mean_over_all_phases() -> None:
    rng = np.random.default_rng(7)
    attrs: dict[str, Attr] = {"strides": (2, 1), "padding": (1, 1, 1, 1)}
    nodes = [node("up", "nn.conv2d_transpose", "x w", "u", **attrs), node("bias", "nn.bias_add", "u b", "y")]
    weight = rng.normal(size=(4, 3, 4, 3)).astype(np.float32)
    constants = {"w": Constant(weight), "b": Constant(rng.normal(size=3).astype(np.float32))}
    graph = build("g", {"x": TensorType(("N", 4, 6, 6), "float32")}, ["y"], nodes, constants)
    means = (1.0, -2.0, 3.0, 0.5)
    x = np.broadcast_to(np.float32(means).reshape(1, 4, 1, 1), (1, 4, 6, 6))
    rounded = bound(graph)
    corrected = CorrectBiasPass(FrozenMap({"x": means}))(rounded)
    inner = [run(g, {"x": x})["y"][:, :, 2:-2, 2:-2].mean(axis=(0, 2, 3)) for g in (graph, rounded, corrected)]
    np.testing.assert_allclose(inner[2], inner[0], atol=1e-4)
    assert np.abs(inner[1] - inner[0]).max() > 0.05


def test_unknown_means_change_nothing() -> None:
    annotated = bound(convolution(1))
    assert CorrectBiasPass()(annotated) is annotated
    assert CorrectBiasPass(FrozenMap({"x": (1.0, 2.0)}))(annotated) is annotated


def test_a_bias_that_two_layers_share_is_corrected_for_each() -> None:
    rng = np.random.default_rng(0)
    nodes = [
        node("one", "nn.dense", "x w1", "d1"),
        node("one.bias", "nn.bias_add", "d1 b", "y1"),
        node("two", "nn.dense", "x w2", "d2"),
        node("two.bias", "nn.bias_add", "d2 b", "y2"),
    ]
    constants = {name: Constant(rng.normal(size=(3, 3)).astype(np.float32)) for name in ("w1", "w2")}
    constants["b"] = Constant(np.zeros(3, np.float32))
    graph = build("g", {"x": TensorType(("N", 3), "float32")}, ["y1", "y2"], nodes, constants)
    q = {"w1": QParams(0.5, 0, "int8"), "w2": QParams(0.5, 0, "int8")}
    x = np.asarray([[1.0, 2.0, 3.0]], np.float32)
    corrected = CorrectBiasPass(FrozenMap({"x": (1.0, 2.0, 3.0)}))(bind_qparams(AnnotatePass()(graph), q))
    for name in ("y1", "y2"):
        np.testing.assert_allclose(run(corrected, {"x": x})[name], run(graph, {"x": x})[name], atol=1e-5)
