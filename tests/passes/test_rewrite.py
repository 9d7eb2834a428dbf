from __future__ import annotations

import numpy as np
import pytest

import qbench.ops  # noqa: F401 fills the registry
from qbench.ir.build import build
from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph, Node
from qbench.ir.types import TensorType
from qbench.passes.rewrite import Rewriter
from tests.passes.graphs import node

X = TensorType(("N", 4), "float32")


def graph(*nodes: Node, outputs: tuple[str, ...] = ("z",), **constants: np.ndarray) -> Graph:
    return build("g", {"x": X}, outputs, nodes, {key: Constant(value) for key, value in constants.items()})


CHAIN = (node("a", "nn.relu", "x"), node("b", "nn.relu", "a"), node("z", "nn.relu", "b"))


def test_nothing_edited_gives_the_very_graph() -> None:
    g = graph(*CHAIN)
    assert Rewriter(g).finish() is g


def test_indexes() -> None:
    rw = Rewriter(graph(node("a", "nn.relu", "x"), node("z", "add", "a", "a")))
    assert rw.producer("x") is None and rw.producer("a") == rw._nodes["a"]
    assert [n.name for n in rw.consumers("a")] == ["z"]
    consumer = rw.sole_consumer("a")
    assert consumer is not None and consumer.name == "z"
    assert rw.sole_consumer("z") is None


def test_bypass_joins_sources_and_redirects() -> None:
    rw = Rewriter(graph(*CHAIN))
    assert rw.bypass(CHAIN[1], "a")
    g = rw.finish()
    assert [n.name for n in g.nodes] == ["a", "z"]
    assert g.node("a").sources == ("a", "b") and g.node("z").inputs == ("a",)


def test_bypass_keeps_the_name_of_a_graph_output() -> None:
    rw = Rewriter(graph(*CHAIN, node("other", "nn.relu", "b"), outputs=("z", "other")))
    assert rw.bypass(CHAIN[2], "b")
    g = rw.finish()
    assert g.node("b").outputs == ("z",) and g.node("other").inputs == ("z",)
    assert g.outputs == ("z", "other") and g.node("b").sources == ("b", "z")


@pytest.mark.parametrize("outputs", [("z",), ("z", "x")])
def test_bypass_refuses_to_lose_an_output(outputs: tuple[str, ...]) -> None:
    g = graph(node("z", "nn.relu", "x"), outputs=outputs)
    rw = Rewriter(g)
    assert not rw.bypass(g.node("z"), "x") and rw.finish() is g


def test_bypass_of_a_node_behind_an_input() -> None:
    rw = Rewriter(graph(*CHAIN))
    assert rw.bypass(CHAIN[0], "x")
    assert rw.finish().node("b").sources == ("a", "b")


def test_replace_keeps_the_order_and_infers_types() -> None:
    rw = Rewriter(graph(*CHAIN))
    rw.replace(CHAIN[0], [node("p", "nn.relu", "x"), node("a", "nn.relu", "p")])
    p = rw.node("p")
    rw.replace(p, [p, node("q", "negative", "p")])
    assert rw.types["q"] == X
    assert [n.name for n in rw] == ["p", "q", "a", "b", "z"]
    assert [n.name for n in rw.finish().nodes] == ["p", "q", "a", "b", "z"]


def test_shared_constant_is_copied_for_one_user() -> None:
    w = np.ones((1, 4), np.float32)
    g = graph(node("a", "add", "x", "w"), node("z", "add", "a", "w"), w=w)
    rw = Rewriter(g)
    name = rw.changed_constant("w", g.node("a"), 2 * w)
    assert name == "w.a"
    rw.update(g.node("a"), inputs=("x", name))
    assert rw.changed_constant("w", g.node("z"), 3 * w) == "w"
    result = rw.finish()
    assert result.constants["w.a"].array[0, 0] == 2 and result.constants["w"].array[0, 0] == 3
    assert g.constants["w"].array[0, 0] == 1


def test_fresh_names() -> None:
    rw = Rewriter(graph(*CHAIN))
    assert (rw.fresh("a"), rw.fresh("new")) == ("a.2", "new")
