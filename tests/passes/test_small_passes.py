from __future__ import annotations

import numpy as np

from qbench.passes.common_subexpressions import CommonSubexpressionsPass
from qbench.passes.dead_code import DeadCodePass
from qbench.passes.fold_constants import FoldConstantsPass
from qbench.passes.infer_types import InferTypesPass
from tests.passes.graphs import array, checked, graph, node, ops


def test_infer_types_of_a_valid_graph_changes_nothing() -> None:
    g = graph(node("a", "nn.relu", "x"))
    assert InferTypesPass()(g) is g


def test_dead_code() -> None:
    g = graph(
        node("a", "nn.relu", "x"), node("dead", "sigmoid", "a"), node("deader", "add", "dead", "c"),
        node("y", "tanh", "a"), c=array(1),
    )  # fmt: skip
    result = checked(DeadCodePass(), g)
    assert ops(result) == ["nn.relu", "tanh"] and not result.constants


def test_a_split_with_one_live_output_is_alive() -> None:
    g = graph(node("s", "split", "x", outputs=("s0", "s1"), cuts=(1,), axis=1), node("y", "nn.relu", "s1"))
    assert checked(DeadCodePass(), g) is g


def test_constant_chains_are_folded_under_their_own_names() -> None:
    g = graph(
        node("t", "transpose", "w", axes=(1, 0)), node("n", "negative", "t"), node("y", "nn.dense", "x", "n"),
        x=("N", 3), w=array(3, 5),
    )  # fmt: skip
    result = checked(FoldConstantsPass(), g)
    assert ops(result) == ["nn.dense"]
    np.testing.assert_array_equal(result.constants["n"].array, -array(3, 5).T)


def test_splits_of_constants_are_folded() -> None:
    g = graph(
        node("s", "split", "w", outputs=("s0", "s1"), cuts=(1,), axis=0), node("y", "add", "x", "s1"),
        x=(2, 4), w=array(3, 4),
    )  # fmt: skip
    assert checked(FoldConstantsPass(), g).constants["s1"].shape == (2, 4)


def test_constants_that_would_grow_stay_small() -> None:
    for columns, left in ((1 << 18, ["broadcast_to", "add"]), (1 << 17, ["add"])):
        b, y = node("b", "broadcast_to", "c", shape=(2, columns)), node("y", "add", "x", "b")
        assert ops(checked(FoldConstantsPass(), graph(b, y, x=(2, columns), c=array(1)))) == left


def test_a_constant_output_stays_computed() -> None:
    g = graph(node("y", "negative", "c"), node("z", "nn.relu", "x"), outputs=("y", "z"), c=array(2))
    assert checked(FoldConstantsPass(), g) is g


def test_common_subexpressions() -> None:
    g = graph(
        node("a", "multiply", "x", "c"), node("b", "multiply", "x", "d"), node("sa", "sigmoid", "a"),
        node("sb", "sigmoid", "b"), node("y", "add", "sa", "sb"), node("other", "multiply", "x", "e"),
        outputs=("y", "other"), c=array(4, 1, 1), d=array(4, 1, 1), e=array(4, 1, 1, seed=1),
    )  # fmt: skip
    result = checked(CommonSubexpressionsPass(), g)
    assert ops(result) == ["multiply", "sigmoid", "add", "multiply"]
    assert result.node("sa").sources == ("sa", "sb") and result.node("y").inputs == ("sa", "sa")


def test_attributes_make_a_difference_but_defaults_may_be_spelled_out() -> None:
    g = graph(
        node("a", "nn.elu", "x"), node("b", "nn.elu", "x", alpha=1.0), node("c", "nn.elu", "x", alpha=0.5),
        node("y", "concatenate", "a", "b", "c", axis=1),
    )  # fmt: skip
    assert checked(CommonSubexpressionsPass(), g).node("y").inputs == ("a", "a", "c")


def test_names_of_equal_outputs_survive() -> None:
    g = graph(node("a", "nn.relu", "x"), node("b", "nn.relu", "x"), node("c", "nn.relu", "b"), outputs=("a", "b", "c"))
    result = checked(CommonSubexpressionsPass(), g)
    assert result.outputs == ("a", "b", "c") and len(result.nodes) == 3


def test_the_name_of_an_output_wins() -> None:
    g = graph(node("a", "nn.relu", "x"), node("b", "nn.relu", "x"), node("c", "tanh", "a"), outputs=("b", "c"))
    result = checked(CommonSubexpressionsPass(), g)
    assert [n.outputs for n in result.nodes] == [("b",), ("c",)]


def test_equal_splits_become_one() -> None:
    halves = [node(s, "split", "x", outputs=(f"{s}0", f"{s}1"), cuts=(1,), axis=1) for s in "st"]
    g = graph(*halves, node("y", "concatenate", "s0", "t1", axis=1))
    assert ops(checked(CommonSubexpressionsPass(), g)) == ["split", "concatenate"]
