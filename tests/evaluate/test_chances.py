"""What is lost of a choice between classes, against sums by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from qbench.evaluate.chances import Chances, chances_of
from qbench.evaluate.text import misread
from qbench.ir.build import build
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.types import TensorType

RNG = np.random.default_rng(0)
SCORES = RNG.normal(size=(2, 3, 5)).astype(np.float32)
OTHER = SCORES + RNG.normal(size=(2, 3, 5)).astype(np.float32)


def softmax(scores: np.ndarray) -> np.ndarray:
    return np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)


@pytest.mark.parametrize("of", ["elements", "logarithms", "scores"])
def test_divergence(of: str) -> None:
    p, q = softmax(SCORES), softmax(OTHER)
    forms = {"elements": (p, q), "logarithms": (np.log(p), np.log(q)), "scores": (SCORES, OTHER)}
    lost, rows = Chances(of).lost(*forms[of])  # pyright: ignore
    by_hand = sum(p[i] * np.log(p[i] / q[i]) for i in np.ndindex(p.shape))
    assert (lost, rows) == pytest.approx((by_hand, 6), rel=1e-4)


@pytest.mark.parametrize("of", ["elements", "logarithms", "scores"])
@pytest.mark.parametrize("blank", [0, 4])
def test_texts_are_misread_as_by_the_chances_of_all_classes(of: str, blank: int) -> None:
    wanted, given = (RNG.normal(size=(2, 9, 5)).astype(np.float32) for _ in range(2))
    p, q = softmax(wanted), softmax(given)
    forms = {"elements": (p, q), "logarithms": (np.log(p), np.log(q)), "scores": (wanted, given)}
    lost, texts = Chances(of, blank).lost(*forms[of])  # pyright: ignore
    whole = np.sum([misread(np.log(one), np.log(other), blank) for one, other in zip(p, q, strict=True)], axis=0)
    assert (lost, texts) == pytest.approx((*whole,), rel=1e-5)


def test_a_chance_of_zero_loses_much_and_nan_all() -> None:
    sure, wrong = np.array([[0.5, 0.5]], np.float32), np.array([[1.0, 0.0]], np.float32)
    assert 5 < Chances("elements").lost(sure, wrong)[0] < 50
    assert Chances("elements").lost(sure, wrong * np.nan) == (np.inf, 1)


def ends_with(op: str, units: int, **attrs: Any) -> Graph:
    constants = {"w": Constant(np.ones((units, 8), np.float32))}
    nodes = [Node("fc", "nn.dense", ("x", "w"), ("fc",)), Node("y", op, ("fc",), ("y",), FrozenMap(attrs))]
    return build("g", {"x": TensorType(("N", 3, 8), "float32")}, ("y",), nodes, constants)


def test_which_outputs_are_chances() -> None:
    assert chances_of(ends_with("nn.softmax", 4), "y") == Chances("elements")
    assert chances_of(ends_with("nn.log_softmax", 4), "y") == Chances("logarithms")
    assert chances_of(ends_with("transpose", 300, axes=(0, 1, 2)), "y") == Chances("scores")
    assert chances_of(ends_with("transpose", 4, axes=(0, 1, 2)), "y") is None
    assert chances_of(ends_with("tanh", 300), "y") is None


def test_an_image_that_grew_is_no_vocabulary() -> None:
    constants = {"w": Constant(np.ones((4, 1, 3, 3), np.float32))}
    attrs = {"strides": (1, 1), "padding": (1, 1, 1, 1), "dilation": (1, 1), "groups": 1}
    nodes = [
        Node("conv", "nn.conv2d", ("x", "w"), ("conv",), FrozenMap(attrs)),
        Node("y", "nn.depth_to_space", ("conv",), ("y",), FrozenMap({"block_size": 2})),
    ]
    graph = build("g", {"x": TensorType(("N", 1, 200, 200), "float32")}, ("y",), nodes, constants)
    assert graph.types["y"].shape[-1] == 400 and chances_of(graph, "y") is None
