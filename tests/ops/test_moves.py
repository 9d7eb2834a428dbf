"""Where values that are only moved come from."""

import numpy as np

from qbench.ops.moves import moved_from
from tests.graphs import graph_of
from tests.networks import node

FEEDS = {"x": np.zeros((3, 4), np.float32)}


def test_through_ops_that_only_move_and_no_further() -> None:
    nodes = [
        node("nn.relu", ["x"], "made"),
        node("transpose", ["made"], "turned", axes=(1, 0)),
        node("reshape", ["turned"], "flat", newshape=(12,)),
        node("nn.relu", ["flat"], "next"),
    ]
    graph = graph_of(FEEDS, nodes, "next")
    assert [*moved_from(graph, "flat")] == ["flat", "turned", "made"]
    assert [*moved_from(graph, "next")] == ["next"]


def test_up_to_an_input_of_the_graph() -> None:
    graph = graph_of(FEEDS, [node("transpose", ["x"], "turned", axes=(1, 0))], "turned")
    assert [*moved_from(graph, "turned")] == ["turned", "x"]
    assert [*moved_from(graph, "x")] == ["x"]
