"""Annotate: where points are put, what stays in float and why."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from qbench.ir.build import build, rebuild
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph
from qbench.ir.types import TensorType
from qbench.passes.annotate import AnnotatePass, points
from qbench.passes.groups import group_of
from qbench.quant.points import Point
from qbench.runtime.interpreter import run
from tests.passes.quantizable import all_values, bind_qparams, every_op, min_max_qparams, node, sample


def mlp() -> Graph:
    ones = Constant(np.ones((4, 4), np.float32))
    nodes = [
        node("dense_1", "nn.dense", "x w1", "d1"),
        node("bias_add_1", "nn.bias_add", "d1 b1", "a1"),
        node("relu_1", "nn.relu", "a1", "r1"),
        node("dense_2", "nn.dense", "r1 w2", "d2"),
        node("softmax", "nn.softmax", "d2", "y"),
    ]
    constants = {"w1": ones, "b1": Constant(np.ones(4, np.float32)), "w2": ones}
    return build("mlp", {"x": TensorType(("N", 4), "float32")}, ["y"], nodes, constants)


def reasons(graph: Graph, **excluded: str) -> dict[str, str]:
    return {n.name: n.reason for n in AnnotatePass(FrozenMap(excluded))(graph).nodes if n.reason}


def test_only_what_leaves_a_fused_group_is_a_point() -> None:
    found = points(AnnotatePass()(mlp()))
    assert list(found) == ["x", "w1", "r1", "w2", "d2"]
    assert found["r1"] == Point("r1", "activation", "r1.q", "relu_1", "nn.relu")
    assert found["w1"] == Point("w1", "weight", "w1.q", "dense_1", "nn.dense", 0, "x", "b1")
    assert found["w2"].bias is None


def test_groups_by_node() -> None:
    assert group_of(mlp()) == {
        "dense_1": "r1", "bias_add_1": "r1", "relu_1": "r1", "dense_2": "d2", "softmax": "y",
    }  # fmt: skip


def test_softmax_stays_in_float_by_default() -> None:
    assert reasons(mlp()) == {"softmax": "default for this op: softmax stays in float"}


def test_what_follows_an_excluded_node_stays_in_float_with_it() -> None:
    found = reasons(mlp(), dense_1="excluded by the user")
    assert found["dense_1"] == "excluded by the user"
    assert found["bias_add_1"] == "neighbour of float: d1 is float"
    assert found["relu_1"] == "neighbour of float: a1 is float"
    assert "dense_2" not in found
    assert list(points(AnnotatePass(FrozenMap({"dense_1": "excluded by the user"}))(mlp()))) == ["r1", "w2", "d2"]


def test_every_op_but_softmax_runs_in_integers() -> None:
    assert set(reasons(every_op())) == {"softmax"}


def test_a_value_read_by_two_nodes_ends_its_group() -> None:
    nodes = [
        node("conv", "nn.dense", "x w", "c"),
        node("relu", "nn.relu", "c", "r"),
        node("add", "add", "c r", "y"),
    ]
    constants = {"w": Constant(np.ones((4, 4), np.float32))}
    graph = build("g", {"x": TensorType(("N", 4), "float32")}, ["y"], nodes, constants)
    assert list(points(AnnotatePass()(graph))) == ["x", "w", "c", "r", "y"]


def test_moving_an_input_about_is_done_in_integers_only_if_something_needs_them() -> None:
    x = {"x": TensorType(("N", 2, 2), "float32")}
    flat = node("flat", "reshape", "x", "f", newshape=("N", 4))
    alone = build("g", x, ["y"], [flat, node("softmax", "nn.softmax", "f", "y")])
    assert reasons(alone)["flat"] == "neighbour of float: nothing after it runs in integers"
    constants = {"w": Constant(np.ones((4, 4), np.float32))}
    dense = build("g", x, ["y"], [flat, node("dense", "nn.dense", "f w", "y")], constants)
    assert reasons(dense) == {}
    assert list(points(AnnotatePass()(dense))) == ["x", "w", "y"]
    assert points(AnnotatePass()(dense))["w"].data == "x"


def test_annotated_graph_runs_as_it_stands_and_rounds_once_qparams_are_bound() -> None:
    graph = every_op()
    x = sample(graph)
    annotated = AnnotatePass()(graph)
    exact = run(graph, {"x": x})["y"]
    np.testing.assert_array_equal(run(annotated, {"x": x})["y"], exact)
    fake = bind_qparams(annotated, min_max_qparams(annotated, all_values(graph, x)))
    rounded = run(fake, {"x": x})["y"]
    assert not np.array_equal(rounded, exact)
    np.testing.assert_allclose(rounded, exact, atol=0.1)


def test_names_that_are_taken_already() -> None:
    nodes = [node("a", "nn.dense", "x w", "x.q"), node("b", "nn.dense", "x.q w", "y")]
    constants = {"w": Constant(np.ones((4, 4), np.float32))}
    graph = build("g", {"x": TensorType(("N", 4), "float32")}, ["y"], nodes, constants)
    assert set(points(AnnotatePass()(graph))) == {"x", "w", "x.q", "y"}


def test_what_only_a_softmax_reads_stays_in_float_with_it() -> None:
    def made(*outputs: str) -> Graph:
        nodes = [
            node("scores", "nn.batch_matmul", "x x", "s", transpose_rhs=True),
            node("scale", "multiply", "s half", "h"),
            node("hide", "add", "h mask", "m"),
            node("softmax", "nn.softmax", "m", "y"),
        ]
        mask = np.array([[0, -3e38], [0, 0]], np.float32)
        constants = {"half": Constant(np.array(0.5, np.float32)), "mask": Constant(mask)}
        return build("attention", {"x": TensorType(("N", 2, 4), "float32")}, outputs, nodes, constants)

    annotated = AnnotatePass()(made("y"))
    why = "neighbour of float: only a softmax reads it"
    reasons = ["", why, "neighbour of float: h is float"]
    assert [annotated.by_name[name].reason for name in ("scores", "scale", "hide")] == reasons
    assert list(points(annotated)) == ["x", "s"]
    annotated = AnnotatePass()(made("y", "h"))
    assert [annotated.by_name[name].reason for name in ("scores", "scale", "hide")] == ["", "", why]


def stream() -> Graph:
    """A residual stream between normalizations, with two branches."""
    ones = {name: Constant(np.ones((4, 4), np.float32)) for name in ("w1", "w2", "w3")}
    vectors = {name: Constant(np.ones(4, np.float32)) for name in ("gamma", "beta")}
    nodes = [
        node("norm_1", "nn.layer_norm", "x gamma beta", "n1"),
        node("fc_1", "nn.dense", "n1 w1", "d1"),
        node("sum_1", "add", "x d1", "s1"),
        node("norm_2", "nn.layer_norm", "s1 gamma beta", "n2"),
        node("fc_2", "nn.dense", "n2 w2", "d2"),
        node("act", "tanh", "d2", "t2"),
        node("fc_3", "nn.dense", "t2 w3", "d3"),
        node("sum_2", "add", "s1 d3", "s2"),
        node("norm_3", "nn.layer_norm", "s2 gamma beta", "y"),
    ]
    return build("stream", {"x": TensorType(("N", 4), "float32")}, ["y"], nodes, ones | vectors)


def test_a_residual_stream_stays_in_float_and_what_goes_into_it_is_not_rounded() -> None:
    annotated = AnnotatePass(wide=FrozenMap())(stream())
    why = {n.name: n.reason for n in annotated.nodes if n.reason}
    assert why["sum_1"] == why["sum_2"] == "neighbour of float: only float layers read it"
    assert not {"fc_1", "fc_2", "act", "fc_3"} & why.keys()
    assert points(annotated).keys().isdisjoint({"d1", "d3"})
    assert {"d1", "d3"} <= points(AnnotatePass()(stream())).keys()
    named = AnnotatePass(wide=FrozenMap(), named=frozenset({"d3"}))(stream())
    assert "d3" in points(named) and "d1" not in points(named)


def test_what_only_moves_sums_that_are_not_rounded_moves_real_numbers() -> None:
    """Also out of the network."""
    graph = stream()
    turned = node("turn", "reshape", "d3", "t3", newshape=(-1, 2, 2))
    moves = [turned, node("turn back", "reshape", "t3", "b3", newshape=(-1, 4))]
    nodes = [replace(n, inputs=("s1", "b3")) if n.name == "sum_2" else n for n in graph.nodes]
    moved = rebuild(graph, nodes=[*nodes, *moves], outputs=("y", "t3"))
    annotated = AnnotatePass(wide=FrozenMap())(moved)
    why = {n.name: n.reason for n in annotated.nodes if n.reason}
    assert why["turn"] == why["turn back"] == "neighbour of float: only float layers read it"
    assert "d3" not in points(annotated) and not {"fc_3", "fc_1"} & why.keys()


def test_what_8_bits_cannot_hold_is_made_in_float_or_by_sums_of_products_and_layers_read_it_in_16_bits() -> None:
    reason = "default: too wide"
    annotated = AnnotatePass(wide=FrozenMap({"t2": reason, "d2": reason}))(stream())
    why = {n.name: n.reason for n in annotated.nodes if n.reason}
    assert why["act"] == reason
    assert not {"fc_2", "fc_3"} & {*why}
    assert points(annotated)["t2"].wide
    assert "d2" not in points(annotated)  # only what stays in float reads it: it is not rounded
    kept = AnnotatePass(wide=FrozenMap({"t2": reason, "d2": reason}), included=frozenset({"act"}))(stream())
    assert not {"act", "fc_3"} & {n.name for n in kept.nodes if n.reason}
