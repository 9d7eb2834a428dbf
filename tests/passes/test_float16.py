from __future__ import annotations

import numpy as np
import pytest

from qbench.errors import GraphError
from qbench.ir.graph import Graph
from qbench.passes.float16 import Float16Pass
from qbench.runtime.interpreter import run
from tests.passes.graphs import array, checked, feeds, graph, node, ops

CONVS = (node("a", "nn.conv2d", "x", "w"), node("r", "nn.relu", "a"), node("y", "nn.conv2d", "r", "w"))


def convs(**more: np.ndarray) -> Graph:
    return graph(*CONVS, **({"w": array(4, 4, 1, 1)} | more))


def test_all_nodes() -> None:
    result = checked(Float16Pass(), convs(), tolerance=5e-3)
    assert ops(result) == ["cast", "nn.conv2d", "nn.relu", "nn.conv2d", "cast"]
    assert {v: result.types[v].dtype for v in ("x", "a", "r", "w", "y.float16", "y")} == {
        "x": "float32", "a": "float16", "r": "float16", "w": "float16", "y.float16": "float16", "y": "float32",
    }  # fmt: skip
    assert result.producers["y"].sources == ("y",)


def test_rounding_of_each_op_shows() -> None:
    g = convs()
    fed = feeds(g)
    wanted = run(g, fed)["y"]
    given = run(Float16Pass()(g), fed)["y"]
    assert given.dtype == np.float32 and 0 < np.max(np.abs(wanted - given)) < 0.02


def test_chosen_nodes_and_a_shared_weight() -> None:
    result = checked(Float16Pass(frozenset({"a"})), convs(), tolerance=5e-3)
    assert ops(result) == ["cast", "nn.conv2d", "cast", "nn.relu", "nn.conv2d"]
    assert result.node("a").inputs == ("x.float16", "w.float16") and result.node("y").inputs[1] == "w"
    assert result.types["a"].dtype == "float16" and result.node("r").inputs == ("a.float32",)


def test_an_output_inside_the_graph() -> None:
    g = graph(node("a", "tanh", "x"), node("y", "tanh", "a"), node("z", "negative", "a"), outputs=("a", "y", "z"))
    result = checked(Float16Pass(frozenset({"a", "y"})), g, tolerance=5e-3)
    assert [result.types[v].dtype for v in ("a", "y", "z")] == ["float32"] * 3
    assert result.node("y").inputs == ("a.float16",) and result.node("z").inputs == ("a",)


def test_nothing_to_do() -> None:
    g = convs()
    assert Float16Pass(frozenset())(g) is g


def test_integers_stay() -> None:
    g = graph(node("y", "take", "x", "i"), x=(5, 3), i=np.array([0, 4], np.int64))
    result = checked(Float16Pass(), g, tolerance=5e-3)
    assert result.types["i"].dtype == "int64" and result.types["y.float16"].dtype == "float16"


def test_overflow_is_kept_in_float32_with_its_reason() -> None:
    big = array(4, 4, 1, 1)
    big[0] = 1e6
    g = convs(w=big)
    kept = Float16Pass()(g)
    assert [n.op for n in kept.nodes if n.reason] == ["nn.conv2d"] * 2
    assert "'w' is beyond 65504" in kept.node("a").reason and kept.types["r"].dtype == "float16"


def test_infinity_is_no_overflow() -> None:
    g = graph(node("m", "minimum", "x", "k"), node("y", "tanh", "m"), k=np.array([np.inf], np.float32))
    assert checked(Float16Pass(), g, tolerance=5e-3).types["m"].dtype == "float16"


def test_unknown_names() -> None:
    with pytest.raises(GraphError, match="did you mean 'a'"):
        Float16Pass(frozenset({"a0"}))(convs())
