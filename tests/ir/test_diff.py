"""Diffs of graphs: what is the same thing in both, and what about it differs."""

from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qbench.ir.align import align
from qbench.ir.build import build, rebuild
from qbench.ir.diff import Change, diff
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from tests.strategies import graphs

X = TensorType(("N", 4), "float32")
W = Constant(np.ones((4, 4), np.float32))


def chain(*nodes: Node, **constants: Constant) -> Graph:
    return build("m", {"x": X}, [nodes[-1].output], nodes, constants)


def dense(name: str, data: str, weight: str = "w", **fields: object) -> Node:
    return dataclasses.replace(Node(name, "nn.dense", (data, weight), (name,), sources=(name,)), **fields)


def relu(name: str, data: str, **fields: object) -> Node:
    return dataclasses.replace(Node(name, "nn.relu", (data,), (name,), sources=(name,)), **fields)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(graphs(hostile=True, quantized=True), graphs(hostile=True, quantized=True))
def test_every_part_stands_once(left: Graph, right: Graph) -> None:
    assert diff(left, left).is_same
    difference = diff(left, right)
    nodes = difference.of(section="node")
    assert [e.right_name for e in nodes if e.kind != "removed"] == [n.name for n in right.nodes]
    assert Counter(e.left_name for e in nodes if e.kind != "added") == Counter(n.name for n in left.nodes)
    assert str(difference).startswith("--- ")
    backwards = Counter(e.kind for e in diff(right, left).entries)
    forwards = Counter(e.kind for e in difference.entries)
    assert backwards["added"] == forwards["removed"]
    assert backwards["same"] == forwards["same"]


def test_a_changed_attribute_type_and_qparams() -> None:
    clip = Node("c", "clip", ("x",), ("c",), FrozenMap({"a_min": 0.0, "a_max": 6.0}), ("c",))
    left = chain(clip)
    right = rebuild(
        chain(dataclasses.replace(clip, attrs=FrozenMap({"a_min": 0.0, "a_max": 1.0}))),
        qparams={"c": QParams(0.5, 0, "uint8")},
    )
    (entry,) = diff(left, right).of("changed", section="node")
    assert entry.changes == (
        Change("a_max", "6.0", "1.0"),
        Change("qparams of c", "none", "uint8(scale=0.5, zero_point=0)"),
    )
    assert "    a_max: 6.0 -> 1.0" in str(diff(left, right))


def test_a_merged_node_says_where_it_went() -> None:
    left = chain(dense("conv", "x"), relu("bn", "conv"), w=W)
    right = chain(dense("conv", "x", sources=("conv", "bn")), w=W)
    (removed,) = diff(left, right).of("removed", section="node")
    assert (removed.left_name, removed.related) == ("bn", ("conv",))
    (added,) = diff(right, left).of("added", section="node")
    assert (added.right_name, added.related) == ("bn", ("conv",))
    assert "merged into conv" in str(diff(left, right))


def test_a_renamed_node_is_found_by_its_value_or_source() -> None:
    left = chain(dense("a", "x"), relu("b", "a"), w=W)
    right = chain(dense("a2", "x", outputs=("a",)), relu("b2", "a", sources=("b",)), w=W)
    pairs = {(e.left_name, e.right_name) for e in diff(left, right).of(section="node")}
    assert pairs == {("a", "a2"), ("b", "b2")}


def test_sources_prefer_the_same_kind_of_op() -> None:
    left = chain(dense("fc", "x"), w=W)
    right = chain(relu("q", "x", sources=("fc",)), dense("fc2", "q", sources=("fc",)), w=W)
    assert {(e.left_name, e.right_name) for e in diff(left, right).of(section="node")} == {("fc", "fc2"), (None, "q")}


def test_constants_by_name_then_by_content() -> None:
    other = Constant(np.zeros((4, 4), np.float32))
    left = chain(dense("a", "x", "w"), dense("b", "a", "v"), w=W, v=other)
    right = chain(dense("a", "x", "w"), dense("b", "a", "renamed"), w=other, renamed=other)
    w, v = diff(left, right).of(section="constant")
    assert [change.what for change in w.changes] == ["values"]
    assert (v.left_name, v.right_name, [change.what for change in v.changes]) == ("v", "renamed", ["name"])


def test_removed_nodes_stand_where_they_were() -> None:
    left = chain(relu("a", "x"), relu("b", "a"), relu("c", "b"))
    right = chain(relu("a", "x"), relu("c", "a"))
    assert [(e.kind, e.left_name) for e in diff(left, right).of(section="node")] == [
        ("same", "a"),
        ("removed", "b"),
        ("changed", "c"),
    ]


def test_long_runs_are_counted() -> None:
    many = [relu(f"r{i}", f"r{i - 1}" if i else "x") for i in range(2000)]
    left = chain(*many)
    right = chain(*many[:1000], dataclasses.replace(many[1000], reason="why"), *many[1001:])
    text = str(diff(left, right))
    assert text.count("\n") < 15
    assert "... 999 the same" in text
    assert "reason:  -> why" in text


def test_a_long_change_shows_where_it_differs() -> None:
    change = Change("qparams", "x" * 5000 + "LEFT" + "y" * 5000, "x" * 5000 + "RIGHT" + "y" * 5000)
    assert "LEFT" in str(change)
    assert "RIGHT" in str(change)
    assert len(str(change)) < 250


@given(st.lists(st.integers(0, 9), unique=True), st.lists(st.integers(0, 9), unique=True))
def test_align_pairs_exactly_what_is_common(left: list[int], right: list[int]) -> None:
    pairs = align([((item,),) for item in left], [((item,),) for item in right])
    assert [b for _, b in pairs if b is not None] == list(range(len(right)))
    assert {left[a] for a, b in pairs if a is not None and b is not None} == set(left) & set(right)
    assert all(left[a] == right[b] for a, b in pairs if a is not None and b is not None)
