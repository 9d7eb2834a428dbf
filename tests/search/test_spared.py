"""What is spared 8 bits, as the edit of a config."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from qbench.calibration.collect import collect, observed
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.passes.prepare import prepare
from qbench.quant.config import QuantConfig
from qbench.quantize.quantized import Quantized, quantize_graph
from qbench.search.spared import Spared, entering, in_16_bits, in_float, integer_groups
from tests.graphs import graph_of
from tests.networks import node

RNG = np.random.default_rng(0)
X = {"x": RNG.normal(size=(1, 4, 8)).astype(np.float32)}
WEIGHTS = {name: RNG.normal(size=(8, 8)).astype(np.float32) for name in ("wa", "wb")}
INT8 = QuantConfig().with_value("activations.least_db", None)
TURNS = {"axes": (0, 2, 1)}


def quantized(graph: Graph, spared: Spared | None = None) -> Quantized:
    prepared = prepare(graph)
    config = (spared or Spared()).applied(prepared.graph, INT8)
    return quantize_graph(prepared, collect(graph, [X], tensors=observed(graph)), config)


def all_in_16_bits(graph: Graph) -> tuple[Spared, dict[str, list[str]]]:
    model = quantized(graph)
    groups = integer_groups(model)
    read = entering(prepare(graph), groups)
    return in_16_bits(graph, groups, read, model.encodings), read


def norm_then(moves: Sequence[Node]) -> Graph:
    before = moves[-1].output if moves else "norm"
    nodes = [node("nn.rms_norm", ["x", "gamma"], "norm"), *moves, node("nn.dense", [before, "wa"], "a")]
    return graph_of(X, [*nodes, node("nn.dense", ["a", "wb"], "b")], "b", gamma=np.ones(8, np.float32), **WEIGHTS)


@pytest.mark.parametrize("moves", [[], [node("reshape", ["norm"], "rows", newshape=(4, 8))]], ids=["straight", "moved"])
def test_what_a_layer_reads_of_an_op_in_float_gets_16_bits_as_well(moves: list[Node]) -> None:
    graph = norm_then(moves)
    spared, read = all_in_16_bits(graph)
    entered = moves[-1].output if moves else "norm"
    assert read == {"a": [entered], "b": []}
    assert set(spared.wide) == {entered, "a", "b"} and not spared.floats
    encodings = quantized(graph, spared).encodings
    assert {name: encodings[name].qparams.dtype for name in (entered, "a")} == {entered: "int16", "a": "int16"}


def test_what_another_group_makes_in_8_bits_stays_so() -> None:
    graph = norm_then([])
    model = quantized(graph)
    groups = integer_groups(model)
    last = [group for group in groups if group.head.name == "b"]
    assert set(in_16_bits(graph, last, entering(prepare(graph), groups), model.encodings).wide) == {"b"}


def test_what_is_only_moved_of_a_product_in_float_has_the_bits_that_the_product_would_have() -> None:
    nodes = [
        node("nn.dense", ["x", "wa"], "a"),
        node("nn.batch_matmul", ["a", "a"], "product", transpose_rhs=True),
        node("transpose", ["product"], "turned", **TURNS),
        node("nn.dense", ["turned", "wb"], "b"),
    ]
    graph = graph_of(X, nodes, "b", wa=WEIGHTS["wa"], wb=WEIGHTS["wb"][:, :4])
    spared, read = all_in_16_bits(graph)
    assert not any(read[name] for name in ("product", "b")), "integers make both"
    assert set(spared.floats) == {"product"} and set(spared.wide) == {"x", "a", "product", "b"}
    assert quantized(graph, spared).encodings["turned"].qparams.dtype == "int16"
    beside = Spared(wide=FrozenMap({"a": "its own"}))
    reasons = {each.name: each.reason for each in quantized(graph, beside).annotated.nodes}
    assert reasons["product"] == "its own", "what makes it is not among what gets 16 bits"
    narrow = Spared(spared.floats, FrozenMap({name: "" for name in spared.wide if name != "product"}))
    assert quantized(graph, narrow).encodings["turned"].qparams.dtype != "int16"


def test_a_recurrent_layer_is_a_group_that_reads_integers_and_makes_none() -> None:
    """In 16 bits is what it reads, in float all of it; what it makes is what the next layer reads."""
    shapes = {"k": (1, 24, 8), "r": (1, 24, 8), "o": (1, 48), "h": (1, 4, 8)}
    held = {name: RNG.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    layer = Node("layer", "nn.gru", ("x", "k", "r", "o", "h"), ("all", "last"))
    nodes = [layer, node("squeeze", ["all"], "y", axes=(1,)), node("nn.dense", ["y", "wa"], "a")]
    graph = graph_of(X, nodes, "a", wa=WEIGHTS["wa"], **held)
    model = quantized(graph)
    groups = integer_groups(model)
    assert "layer" in [group.head.name for group in groups]
    read = entering(prepare(graph), groups)
    assert (read["layer"], read["a"]) == (["x"], ["y"])
    assert set(in_16_bits(graph, groups, read, model.encodings).wide) == {"x", "y", "a"}
    wide = quantized(graph, in_16_bits(graph, groups, read, model.encodings)).encodings
    assert {name: wide[name].qparams.dtype for name in "xykr"} == {"x": "int16", "y": "int16", "k": "int8", "r": "int8"}
    floats = quantized(graph, in_float([group for group in groups if group.head.name == "layer"], "so it is"))
    assert not {"x", "k", "r"} & floats.encodings.keys() and "a" in floats.encodings


def test_sums_that_are_not_rounded_have_no_bits() -> None:
    """What only float layers read is made of sums as it is; in 16 bits is what the layer before them reads."""
    nodes = [node("nn.dense", ["x", "wa"], "a"), node("nn.rms_norm", ["a", "gamma"], "y")]
    graph = graph_of(X, nodes, "y", gamma=np.ones(8, np.float32), wa=WEIGHTS["wa"])
    measured = INT8.with_value("activations.least_db", 0.0)
    model = quantize_graph(prepare(graph), collect(graph, [X], tensors=observed(graph)), measured)
    groups = integer_groups(model)
    spared = in_16_bits(graph, groups, entering(prepare(graph), groups), model.encodings)
    assert set(spared.wide) == {"x"} and model.encodings.keys() == {"x", "wa"}
