"""Equalized networks compute the same, with weights whose channels have like ranges."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbench.calibration.extremes import channel_extremes
from qbench.data.dataset import Dataset
from qbench.errors import ConfigError
from qbench.ir.build import build
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.types import TensorType
from qbench.passes.equalize import EqualizePass, equalized_pairs, watched_values
from qbench.quant.config import QuantConfig
from qbench.runtime.interpreter import call
from qbench.runtime.interpreter import run as interpret
from qbench.session.session import Session
from tests.networks import node

RNG = np.random.default_rng(0)
X = RNG.normal(size=(16, 3, 8, 8)).astype(np.float32)


def network(upper: float | None = None, seed: int = 0, spread: float = 2.0) -> Graph:
    """Convolution, depthwise convolution and convolution; channels of the first one's weights differ by decades."""
    rng = np.random.default_rng(seed)
    uneven = 10 ** rng.uniform(-spread, 0, 6)
    arrays = {
        "w0": rng.normal(size=(6, 3, 1, 1)) * uneven.reshape(6, 1, 1, 1),
        "b0": rng.normal(size=6) * uneven,
        "w1": rng.normal(size=(6, 1, 3, 3)),
        "b1": rng.normal(size=6),
        "w2": rng.normal(size=(4, 6, 1, 1)) / uneven.reshape(1, 6, 1, 1),
    }
    constants = {name: Constant(array.astype(np.float32)) for name, array in arrays.items()}
    clamp = ("nn.relu", {}) if upper is None else ("clip", {"a_min": 0.0, "a_max": upper})

    def node(name: str, op: str, *inputs: str, **attrs: object) -> Node:
        return Node(name, op, inputs, (name,), FrozenMap(attrs))  # pyright: ignore[reportArgumentType]

    pad = {"padding": (1, 1, 1, 1)}
    nodes = [
        node("conv0", "nn.conv2d", "x", "w0"),
        node("bias0", "nn.bias_add", "conv0", "b0"),
        node("act0", clamp[0], "bias0", **clamp[1]),
        node("conv1", "nn.conv2d", "act0", "w1", groups=6, **pad),
        node("bias1", "nn.bias_add", "conv1", "b1"),
        node("act1", "nn.relu", "bias1"),
        node("conv2", "nn.conv2d", "act1", "w2"),
    ]
    return build("net", {"x": TensorType(("N", 3, 8, 8), "float32")}, ("conv2",), nodes, constants)


def ranges(graph: Graph, name: str, axis: int) -> np.ndarray:
    return np.abs(np.moveaxis(graph.constants[name].array, axis, 0)).reshape(6, -1).max(axis=1)


@given(st.integers(0, 1000))
def test_the_network_computes_the_same_with_like_ranges(seed: int):
    graph = network(seed=seed, spread=1.0)
    made = EqualizePass()(graph)
    exact = call(graph, X)
    assert np.allclose(call(made, X), exact, atol=1e-4 * float(np.abs(exact).max()))
    assert [(node.name, node.inputs) for node in made.nodes] == [(node.name, node.inputs) for node in graph.nodes]
    assert np.allclose(ranges(made, "w0", 0), ranges(made, "w1", 0), rtol=0.05)
    assert np.allclose(ranges(made, "w1", 0), ranges(made, "w2", 1), rtol=0.05)


def test_a_second_time_changes_nothing():
    made = EqualizePass()(network(spread=0.5))
    assert EqualizePass()(made) is made


def test_a_clamp_is_kept_where_channels_reach_it():
    graph = network(upper=1.0, spread=1.0)
    data = Dataset(graph, X)
    extremes = channel_extremes(graph, data, watched_values(graph, equalized_pairs(graph)))
    act = interpret(graph, {"x": X}, ("act0",))["act0"]
    assert np.allclose(extremes["act0"], [act.min(axis=(0, 2, 3)), act.max(axis=(0, 2, 3))], atol=1e-6)
    made = EqualizePass(extremes)(graph)
    exact = call(graph, X)
    assert np.allclose(call(made, X), exact, atol=1e-5 * float(np.abs(exact).max()))
    reach = np.asarray(extremes["act0"][1]) >= 0.9
    assert 0 < reach.sum() < 6
    same = (made.constants["w0"].array == graph.constants["w0"].array).reshape(6, -1).all(axis=1)
    assert same[reach].all()
    assert not same.all()
    assert (EqualizePass()(graph).constants["w0"].array == graph.constants["w0"].array).all()  # peaks are not known


def test_dead_channels_keep_their_weights():
    graph = network()
    dead = graph.constants["w0"].array.copy()
    dead[2] = 0
    graph = graph.rebound(constants={**graph.constants, "w0": Constant(dead)})
    made = EqualizePass()(graph)
    assert np.isfinite(made.constants["w1"].array).all()
    assert np.allclose(call(made, X), call(graph, X), atol=1e-3)


def test_what_a_channel_never_goes_below_moves_into_the_next_bias():
    rng = np.random.default_rng(3)
    arrays = {"w0": rng.normal(size=(6, 3, 1, 1)), "b0": np.array([30, 0, 25, 0, 0, -40])}
    arrays |= {"w1": rng.normal(size=(4, 6, 1, 1)), "b1": rng.normal(size=4)}
    nodes = [
        node("nn.conv2d", ["x", "w0"], "conv0"),
        node("nn.bias_add", ["conv0", "b0"], "bias0"),
        node("nn.relu", ["bias0"], "act"),
        node("nn.conv2d", ["act", "w1"], "conv1"),
        node("nn.bias_add", ["conv1", "b1"], "y"),
    ]
    constants = {name: Constant(array.astype(np.float32)) for name, array in arrays.items()}
    graph = build("net", {"x": TensorType(("N", 3, 8, 8), "float32")}, ("y",), nodes, constants)
    extremes = channel_extremes(graph, Dataset(graph, X), watched_values(graph, equalized_pairs(graph)))
    made = EqualizePass(extremes)(graph)
    assert np.allclose(call(made, X), call(graph, X), atol=1e-4)
    least = interpret(made, {"x": X}, ("act",))["act"].min(axis=(0, 2, 3))
    assert np.array_equal(np.asarray(extremes["act"][0]) > 0, [True, False, True, False, False, False])
    assert np.allclose(least, 0, atol=1e-4)
    padded = dataclasses.replace(nodes[3], attrs=FrozenMap({"padding": (1, 1, 1, 1)}))
    other = build("net", graph.input_types(), ("y",), [*nodes[:3], padded, nodes[4]], constants)
    assert watched_values(other, equalized_pairs(other)) == {}


def test_a_session_equalizes_shows_it_and_takes_it_back():
    config = QuantConfig().with_value("weights.axis", None)
    s = Session(network(), X, config=config)
    before = s.run(progress=False).output.sqnr_db
    s.edit("equalize", s.config.with_value("weights.equalize", True))
    after = s.run(progress=False).output.sqnr_db
    assert before is not None
    assert after is not None
    assert after > before + 6
    assert "equalize" in [step.name for step in s.graphs.steps]
    assert s.statistics["act0"] != Session(network(), X).statistics["act0"]
    s.undo()
    assert s.run(progress=False).output.sqnr_db == before
    assert "equalize" not in [step.name for step in s.graphs.steps]
    table = s.repairs(progress=False)
    assert "equalize weights" in [*table.what]


def test_with_rounding_on_data():
    config = QuantConfig().with_value("weights.dtype", "int4").with_value("weights.rounding", "sequential")
    plain = Session(network(), X, config=config).run(progress=False).output.sqnr_db
    s = Session(network(), X, config=config.with_value("weights.equalize", True))
    after = s.run(progress=False).output.sqnr_db
    assert plain is not None
    assert after is not None
    assert after > plain
    assert {"equalize", "round-weights"} <= {step.name for step in s.graphs.steps}


def test_imported_models_are_not_equalized():
    s = Session(Session(network(), X, preset="int8").quantized().qnn, X)
    with pytest.raises(ConfigError, match="equalize: the imported model"):
        s.edit("equalize", s.config.with_value("weights.equalize", True))
