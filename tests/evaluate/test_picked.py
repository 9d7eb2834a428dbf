"""What outputs are judged by where they are lists of the best."""

from __future__ import annotations

import numpy as np
import pytest

from qbench.evaluate.picked import judged, picked, picked_from
from qbench.ir.build import build
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.types import TensorType
from qbench.search.nearness import Exact
from qbench.session.session import Session

RNG = np.random.default_rng(0)
X = RNG.normal(size=(48, 40, 16)).astype(np.float32)


def node(op: str, read: str, made: str, **attrs: object) -> Node:
    outputs = tuple(made.split())
    return Node(outputs[0], op, tuple(read.split()), outputs, FrozenMap(attrs))


def detector(outputs: str = "best boxes") -> Graph:
    """Scores and boxes of forty places; those of the five best places go through one more layer."""
    nodes = [
        node("nn.dense", "x w", "fc"),
        node("nn.relu", "fc", "act"),
        node("nn.dense", "act w1", "scores"),
        node("nn.dense", "act w4", "places"),
        node("squeeze", "scores", "flat", axes=(2,)),
        node("topk", "flat", "best at", k=5, axis=1),
        node("expand_dims", "at", "row", axes=(2,)),
        node("broadcast_to", "row", "rows", shape=("N", 5, 4)),
        node("take_along_axis", "places rows", "chosen", axis=1),
        node("nn.dense", "chosen w2", "boxes"),
    ]
    sizes = {"w": (16, 16), "w1": (1, 16), "w4": (4, 16), "w2": (4, 4)}
    constants = {name: Constant(RNG.normal(0, 0.3, size).astype(np.float32)) for name, size in sizes.items()}
    return build("detector", {"x": TensorType(("N", 40, 16), "float32")}, tuple(outputs.split()), nodes, constants)


def test_judged_is_what_is_picked_from_and_what_meets_it() -> None:
    graph = detector()
    assert picked_from(graph) == ("flat",)
    assert picked(graph) == {"best", "at", "row", "rows", "chosen", "boxes"}
    assert judged(graph) == ("flat", "places")
    assert judged(detector("scores boxes")) == ("scores", "flat", "places")


def test_without_picking_outputs_are_judged_themselves() -> None:
    graph = detector("scores places")
    kept = build(
        "net",
        dict(zip(graph.inputs, [graph.types["x"]], strict=True)),
        graph.outputs,
        graph.nodes[:4],
        dict(graph.constants),
    )
    assert judged(kept) == ("scores", "places")


def test_indices_that_come_from_integers_are_no_choice_of_the_network() -> None:
    """As where a text model looks for the end of the text."""
    nodes = [
        node("argmax", "ids", "end", axis=1, keepdims=True),
        node("expand_dims", "end", "row", axes=(2,)),
        node("broadcast_to", "row", "rows", shape=("N", 1, 16)),
        node("nn.dense", "x w", "fc"),
        node("take_along_axis", "fc rows", "y", axis=1),
    ]
    inputs = {"ids": TensorType(("N", 40), "int64"), "x": TensorType(("N", 40, 16), "float32")}
    weight = {"w": Constant(RNG.normal(size=(16, 16)).astype(np.float32))}
    assert judged(build("text", inputs, ("y",), nodes, weight)) == ("y",)


def test_what_is_fed_is_the_same_in_all_networks() -> None:
    """As where points are sorted before a network sees them."""
    nodes = [node("topk", "x", "best at", k=5, axis=2), node("nn.dense", "best w", "y")]
    weight = {"w": Constant(RNG.normal(size=(3, 5)).astype(np.float32))}
    assert judged(build("points", {"x": TensorType(("N", 40, 16), "float32")}, ("y",), nodes, weight)) == ("y",)


def test_what_follows_is_compared_with_the_same_picks() -> None:
    """Scores that are nearly equal change places: the outputs themselves differ by more than any layer's error."""
    session = Session(detector(), X)
    exact = Exact.of(session.prepared, [{"x": sample[None]} for sample in X[:16]])
    assert [*exact.outputs] == ["boxes", "flat"]
    assert min(exact.decibels(session.graph).values()) > 30
    output = session.run(progress=False).output
    assert [loss.name for loss in output.losses] == ["flat", "places"]
    assert output.sqnr_db is not None and output.sqnr_db > 30
    assert output.agreement is None
    assert not any("output" in (layer.reason or "") for layer in session.run(progress=False).by_layer)


def test_what_follows_counts() -> None:
    """A last layer that cancels nearly all that it reads is spoiled by 8 bits, whatever was picked."""
    graph = detector()
    twice = np.concatenate([np.eye(4), np.eye(4) * -0.999], 1).astype(np.float32)
    more = [node("concatenate", "chosen chosen", "both", axis=2), node("nn.dense", "both twice", "boxes")]
    nodes, constants = [*graph.nodes[:-1], *more], {**graph.constants, "twice": Constant(twice)}
    spoiled = build("detector", {"x": graph.types["x"]}, graph.outputs, nodes, constants)
    session = Session(spoiled, X)
    reasons = {layer.name: layer.reason or "" for layer in session.run(progress=False).by_layer}
    assert "of output 'boxes'" in reasons["boxes"]


def test_attribution_ends_where_picking_begins() -> None:
    session = Session(detector(), X)
    found = session.attribution()
    assert found.output_db == pytest.approx(session.run(progress=False).output.sqnr_db, abs=0.5)  # of a probe
    after = picked(session.prepared)
    assert not [step.name for step in found.falls if step.name in after]
