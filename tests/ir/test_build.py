"""Building graphs: order, types, errors; and what graphs answer about themselves."""

from __future__ import annotations

import copy
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qbench.errors import GraphError
from qbench.ir.build import build, rebuild
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from tests.strategies import graphs

X = TensorType(("N", 4), "float32")
W = Constant(np.zeros((2, 4), np.float32))


def relu(name: str, data: str) -> Node:
    return Node(name, "nn.relu", (data,), (name,))


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(graphs(hostile=True, quantized=True), st.randoms(use_true_random=False))
def test_nodes_may_come_in_any_order(graph: Graph, rng: random.Random) -> None:
    assert rebuild(graph) == graph
    nodes = rng.sample(graph.nodes, len(graph.nodes))
    shuffled = rebuild(graph, nodes=nodes)
    assert set(shuffled.nodes) == set(graph.nodes)
    assert shuffled.types == graph.types
    seen = {*graph.inputs, *graph.constants}
    for node in shuffled.nodes:
        assert seen.issuperset(node.inputs)
        seen.update(node.outputs)


def test_what_nothing_uses_is_dropped() -> None:
    qparams = {name: QParams(1.0, 0, "int8") for name in ("a", "v", "nothing")}
    graph = build("m", {"x": X}, ["a"], [relu("a", "x")], {"v": W}, qparams)
    assert graph.constants == {}
    assert list(graph.qparams) == ["a"]
    assert build("m", {}, ["v"], [], {"v": W}).constants == {"v": W}  # an output is a use


@pytest.mark.parametrize(
    ("nodes", "outputs", "message"),
    [
        ([relu("a", "b"), relu("b", "a")], ["a"], "the graph has a cycle through 'a' -> 'b' -> 'a'"),
        ([relu("a", "a")], ["a"], "cycle through 'a' -> 'a'"),
        ([relu("a", "y")], ["a"], "node 'a' reads 'y', which nothing defines"),
        ([relu("a", "x"), relu("a", "x")], ["a"], "two nodes are called 'a'"),
        ([relu("a", "x"), Node("b", "nn.relu", ("x",), ("a",))], ["a"], "value 'a' is defined twice"),
        ([Node("a", "nn.relu", ("x",), ("x",))], ["x"], "value 'x' is defined twice"),
        ([Node("a", "nn.relu", ("x",), ("w",))], ["x"], "value 'w' is defined twice"),
        ([relu("a", "x")], ["b"], "graph output 'b' is made by no node"),
        ([Node("a", "nn.relu", ("x",), ("a", "b"))], ["a"], "nn.relu makes 1 values, not 2"),
        ([Node("a", "nn.relu", ("x",), ())], ["x"], "nn.relu makes 1 values, not 0"),
        ([Node("a", "nn.relu", ("x", "x"), ("a",))], ["a"], "takes \\(data\\), not 2 inputs"),
        ([Node("a", "nn.relu6", ("x",), ("a",))], ["a"], "unknown op 'nn.relu6'; did you mean 'nn.relu'"),
        ([Node("a", "nn.bias_add", ("x", "x"), ("a",))], ["a"], "bias must have 1 dimensions, not 2"),
        ([Node("a", "clip", ("x",), ("a",), FrozenMap({"a_min": 0.0}))], ["a"], "clip needs the attribute a_max"),
        (
            [Node("a", "clip", ("x",), ("a",), FrozenMap({"a_min": "0", "a_max": 1.0}))],
            ["a"],
            "attribute a_min='0': Input should be a valid number",
        ),
        (
            [Node("a", "nn.leaky_relu", ("x",), ("a",), FrozenMap({"alpa": 0.0}))],
            ["a"],
            "no attribute 'alpa'; did you mean 'alpha'",
        ),
        (
            [Node("a", "transpose", ("x",), ("a",), FrozenMap({"axes": [1, 0]}))],  # pyright: ignore[reportArgumentType]
            ["a"],
            "attribute axes=\\[1, 0\\]: Input should be a valid tuple",
        ),
        (
            [Node("a", "split", ("x",), ("a", "b"), FrozenMap({"cuts": (1, 2), "axis": 1}))],
            ["a"],
            "split makes 3 values, not 2",
        ),
    ],
)
def test_what_is_wrong_is_said(nodes: list[Node], outputs: list[str], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        build("m", {"x": X}, outputs, nodes, {"w": W})


def test_type_errors_note_the_node_and_its_sources() -> None:
    node = Node("a", "nn.bias_add", ("x", "x"), ("a",), sources=("Gemm_0",))
    with pytest.raises(GraphError) as caught:
        build("m", {"x": X}, ["a"], [node])
    assert caught.value.__notes__ == [
        "at node 'a': nn.bias_add('x': Tensor[(N, 4), float32], 'x': Tensor[(N, 4), float32]) from source 'Gemm_0'"
    ]


def test_a_graph_of_ten_thousand_nodes_in_reverse() -> None:
    nodes = [relu(f"r{i}", f"r{i - 1}" if i else "x") for i in range(10_000)]
    assert build("m", {"x": X}, ["r9999"], nodes[::-1]).nodes == tuple(nodes)


def test_graphs_answer_who_makes_and_reads_what() -> None:
    add = Node("add", "add", ("a", "a"), ("s",))
    graph = build("m", {"x": X}, ["s"], [relu("a", "x"), add, relu("b", "a")])
    assert graph.producers == {"a": graph.nodes[0], "s": add, "b": graph.nodes[2]}
    assert graph.consumers["a"] == (add, graph.nodes[2])
    assert graph.consumers["b"] == ()
    assert list(graph.activations()) == ["x", "a", "s", "b"]
    assert graph.input_types() == {"x": X}
    assert graph.node("add") is add
    assert add.output == "s"
    with pytest.raises(GraphError, match="no node is called 'ad'; did you mean 'add'"):
        graph.node("ad")
    with pytest.raises(GraphError, match="node 'n' has 2 outputs, not one"):
        _ = Node("n", "split", ("x",), ("a", "b")).output


def test_graphs_are_equal_by_value_and_hashable() -> None:
    one, two = (build("m", {"x": X}, ["a"], [relu("a", "x")]) for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)
    assert rebuild(one, outputs=["x"]) != one
    assert str(one).startswith("def @m(")


def test_equal_nodes_have_equal_hashes_in_any_process() -> None:
    node = Node("a", "nn.relu", ("x",), ("y",), FrozenMap({"b": 1, "a": 2}))
    same = Node("a", "nn.relu", ("x",), ("y",), FrozenMap({"a": 2, "b": 1}))
    assert (node, hash(node)) == (same, hash(same))
    renamed = replace(node, name="b")
    assert (renamed, hash(renamed)) != (node, hash(node))
    sent = copy.copy(node)  # by what another process is sent
    assert not hasattr(sent, "hashed")  # names hash otherwise there
    assert {node: 1}[sent] == 1
