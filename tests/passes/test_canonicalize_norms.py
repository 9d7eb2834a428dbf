from __future__ import annotations

import numpy as np
import pytest

from qbench.ir.graph import Attr, Graph, Node
from qbench.passes.canonicalize import CanonicalizePass
from tests.passes.graphs import array, checked, difference, graph, node, ops

WIDTH = 8
GAMMA, BETA = array(WIDTH, seed=1, low=0.5, high=2), array(WIDTH, seed=2)


def c(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


CONSTANTS = {"gamma": GAMMA, "beta": BETA, "eps": c(1e-3), "two": c(2), "half": c(0.5), "one": c(1), "minus": c(-0.5)}
MEAN: dict[str, Attr] = {"axes": (-1,)}
CENTRED = [node("m", "mean", "x", **MEAN), node("d", "subtract", "x", "m")]
SQUARED = [*CENTRED, node("s", "power", "d", "two"), node("v", "mean", "s", **MEAN), node("ve", "add", "v", "eps")]
ROOT = [*SQUARED, node("r", "sqrt", "ve")]
AFFINE = [node("g", "multiply", "n", "gamma"), node("y", "add", "g", "beta")]
LAYER = {
    "torch": [*ROOT, node("n", "divide", "d", "r"), *AFFINE],
    "torch, centred twice": [
        *ROOT, node("d2", "subtract", "x", "m"), node("n", "divide", "d2", "r"), *AFFINE
    ],
    "Paddle": [*SQUARED, node("r", "power", "ve", "half"), node("n", "divide", "d", "r"), *AFFINE],
    "a product for the square": [
        *CENTRED, node("s", "multiply", "d", "d"), node("v", "mean", "s", **MEAN), node("ve", "add", "v", "eps"),
        node("r", "sqrt", "ve"), node("i", "divide", "one", "r"), node("n", "multiply", "d", "i"), *AFFINE,
    ],
    "TensorFlow": [
        *ROOT, node("i", "reciprocal", "r"), node("ig", "multiply", "i", "gamma"), node("xg", "multiply", "x", "ig"),
        node("mg", "multiply", "m", "ig"), node("b", "subtract", "beta", "mg"), node("y", "add", "xg", "b"),
    ],
    "mean of squares less square of mean": [
        node("m", "mean", "x", **MEAN), node("x2", "multiply", "x", "x"), node("s", "mean", "x2", **MEAN),
        node("m2", "multiply", "m", "m"), node("v", "subtract", "s", "m2"), node("ve", "add", "v", "eps"),
        node("i", "power", "ve", "minus"), node("d", "subtract", "x", "m"), node("n", "multiply", "d", "i"), *AFFINE,
    ],
}  # fmt: skip
SQUARE = [node("s", "multiply", "x", "x"), node("v", "mean", "s", **MEAN), node("ve", "add", "v", "eps")]
RMS = {
    "llama": [
        *SQUARE, node("r", "sqrt", "ve"), node("i", "divide", "one", "r"), node("n", "multiply", "x", "i"),
        node("y", "multiply", "gamma", "n"),
    ],
    "power": [
        node("s", "power", "x", "two"), node("v", "mean", "s", **MEAN), node("ve", "add", "eps", "v"),
        node("i", "power", "ve", "minus"), node("n", "multiply", "x", "i"), node("y", "multiply", "n", "gamma"),
    ],
    "division": [
        *SQUARE, node("r", "sqrt", "ve"), node("n", "divide", "x", "r"), node("y", "multiply", "n", "gamma")
    ],
    "sum": [
        node("s", "multiply", "x", "x"), node("t", "sum", "s", **MEAN), node("v", "multiply", "t", "eighth"),
        node("ve", "add", "v", "eps"), node("r", "sqrt", "ve"), node("n", "divide", "x", "r"),
        node("y", "multiply", "n", "gamma"),
    ],
}  # fmt: skip


def canonical(g: Graph) -> Graph:
    return checked(CanonicalizePass(), g)


@pytest.mark.parametrize("nodes", LAYER.values(), ids=LAYER.keys())
@pytest.mark.parametrize("residual", [False, True])
def test_layer_norm(nodes: list[Node], residual: bool) -> None:
    nodes = [node("x", "add", "u", "w"), *nodes] if residual else nodes
    shapes = dict.fromkeys(("u", "w") if residual else ("x",), ("N", 3, WIDTH))
    result = canonical(graph(*nodes, inputs=shapes, **CONSTANTS))
    assert ops(result) == ["add"] * residual + ["nn.layer_norm"]
    last = result.nodes[-1]
    assert (last.name, last.inputs) == ("y", ("x", "gamma", "beta"))
    assert last.attrs["epsilon"] == pytest.approx(1e-3) and set(last.sources) == {n.name for n in nodes} - {"x"}


def test_parameters_with_the_axes_of_the_data() -> None:
    parameters = {name: array.reshape(1, 1, WIDTH) for name, array in (("gamma", GAMMA), ("beta", BETA))}
    result = canonical(graph(*LAYER["TensorFlow"], x=("N", 3, WIDTH), **CONSTANTS | parameters))
    assert ops(result) == ["nn.layer_norm"]


@pytest.mark.parametrize("nodes", RMS.values(), ids=RMS.keys())
def test_rms_norm(nodes: list[Node]) -> None:
    result = canonical(graph(*nodes, x=(2, 3, WIDTH), **CONSTANTS, eighth=c(1 / WIDTH)))
    assert ops(result) == ["nn.rms_norm"] and result.nodes[-1].inputs == ("x", "gamma")


def test_several_axes_and_no_scale() -> None:
    axes: dict[str, Attr] = {"axes": (1, 2)}
    nodes = [n if n.op != "mean" else node(n.name, "mean", *n.inputs, **axes) for n in ROOT]
    result = canonical(graph(*nodes, node("y", "divide", "d", "r"), x=(2, 3, WIDTH), **CONSTANTS))
    assert ops(result) == ["nn.layer_norm"] and result.nodes[-1].attrs["axis"] == 1
    gamma, beta = (result.constants[name].array for name in result.nodes[-1].inputs[1:])
    assert gamma.shape == (3, WIDTH) and (gamma == 1).all() and not beta.any()


def test_instance_norm() -> None:
    axes: dict[str, Attr] = {"axes": (2, 3)}
    nodes = [n if n.op != "mean" else node(n.name, "mean", *n.inputs, **axes) for n in LAYER["torch"]]
    parameters = CONSTANTS | {"gamma": GAMMA[:4].reshape(4, 1, 1), "beta": BETA[:4].reshape(1, 4, 1, 1)}
    result = canonical(graph(*nodes, x=("N", 4, 5, 6), **parameters))
    assert ops(result) == ["nn.instance_norm"]


@pytest.mark.parametrize("inner", ["m", "d", "v", "r", "n"])
def test_what_is_read_elsewhere_stays_readable(inner: str) -> None:
    g = graph(*LAYER["torch"], node("z", "tanh", inner), x=(2, 3, WIDTH), outputs=("y", "z"), **CONSTANTS)
    result = CanonicalizePass()(g)
    assert difference(g, result) <= 1e-5 and ("nn.layer_norm" in ops(result)) == (inner == "n")


BEYOND = float(np.finfo(np.float32).max)
LENGTH = [node("s", "multiply", "x", "x"), node("t", "sum", "s", axes=(1,))]
TORCH = [node("r", "sqrt", "t"), node("c", "clip", "r", a_min=1e-3, a_max=BEYOND)]
L2 = {
    "torch": [
        *LENGTH, *TORCH, node("b", "broadcast_to", "c", shape=(2, 5, WIDTH)), node("y", "divide", "x", "b"),
    ],
    "LpNormalization": [
        *LENGTH, node("r", "sqrt", "t"), node("m", "maximum", "r", "eps"), node("y", "divide", "x", "m"),
    ],
    "TensorFlow": [
        node("s", "power", "x", "two"), node("t", "sum", "s", axes=(1,)), node("m", "maximum", "t", "square"),
        node("r", "sqrt", "m"), node("i", "reciprocal", "r"), node("y", "multiply", "i", "x"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("nodes", L2.values(), ids=L2.keys())
def test_l2_normalize(nodes: list[Node]) -> None:
    result = canonical(graph(*nodes, x=(2, 5, WIDTH), **CONSTANTS, square=c(1e-6)))
    assert ops(result) == ["nn.l2_normalize"] and result.nodes[-1].inputs == ("x",)
    attrs = dict(result.nodes[-1].attrs)
    assert attrs.pop("epsilon") == pytest.approx(1e-3, rel=1e-6) and attrs == {"axis": 1}


OTHER_LENGTHS = {
    "of another value": [*LENGTH, *TORCH, node("z", "tanh", "x"), node("y", "divide", "z", "c")],
    "not bounded": [*LENGTH, node("r", "clip", "t", a_min=1.0, a_max=BEYOND), node("y", "divide", "x", "r")],
    "bounded above": [
        *LENGTH, node("r", "sqrt", "t"), node("c", "clip", "r", a_min=1e-3, a_max=1.0), node("y", "divide", "x", "c"),
    ],
    "turned around": [*LENGTH, *TORCH, node("y", "divide", "c", "x")],
    "of several axes": [
        LENGTH[0], node("t", "sum", "s", axes=(1, 2)), *TORCH, node("y", "divide", "x", "c"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("nodes", OTHER_LENGTHS.values(), ids=OTHER_LENGTHS.keys())
def test_other_quotients_stay(nodes: list[Node]) -> None:
    assert "nn.l2_normalize" not in ops(canonical(graph(*nodes, x=(2, 5, WIDTH))))


@pytest.mark.parametrize("inner", ["s", "t", "r", "c"])
def test_a_length_that_is_read_elsewhere_stays_readable(inner: str) -> None:
    nodes = [*LENGTH, *TORCH, node("y", "divide", "x", "c"), node("z", "tanh", inner)]
    g = graph(*nodes, x=(2, 5, WIDTH), outputs=("y", "z"))
    result = CanonicalizePass()(g)
    assert difference(g, result) == 0 and "nn.l2_normalize" not in ops(result)


def test_over_channels_in_front_it_stays_in_parts() -> None:
    axes: dict[str, Attr] = {"axes": (1,)}
    nodes = [n if n.op != "mean" else node(n.name, "mean", *n.inputs, **axes) for n in ROOT]
    assert "sqrt" in ops(canonical(graph(*nodes, node("y", "divide", "d", "r"), x=(2, 4, 5, 6), **CONSTANTS)))


def test_other_roots_stay() -> None:
    g = graph(node("a", "abs", "x"), node("e", "add", "a", "eps"), node("y", "sqrt", "e"), x=(2, WIDTH), **CONSTANTS)
    assert ops(canonical(g)) == ["abs", "add", "sqrt"]
    length = [node("s", "multiply", "x", "x"), node("t", "sum", "s", axes=(1,)), node("y", "sqrt", "t")]
    assert ops(canonical(graph(*length, x=(2, WIDTH)))) == ["multiply", "sum", "sqrt"]
