"""Outputs over decades: each number counts beside itself, against logarithms by hand."""

from __future__ import annotations

import numpy as np
import pytest

import qbench as qb
from qbench.evaluate.exponentials import Exponential, exponential_of
from qbench.ir.build import build
from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph, Node
from qbench.ir.types import TensorType
from tests.networks import node

RNG = np.random.default_rng(3)


def ending(*nodes: Node, **constants: object) -> Graph:
    """A network of two numbers that ends so, from 'x' to 'y'."""
    kept = {name: Constant(np.array(value, np.float32)) for name, value in constants.items()}
    return build("net", {"x": TensorType(("N", 2), "float32")}, ["y"], nodes, kept)


@pytest.mark.parametrize(
    ("graph", "offset"),
    [
        (ending(node("exp", ["x"], "y")), 0),
        (ending(node("power", ["ten", "x"], "y"), ten=10), 0),
        (ending(node("exp", ["x"], "e"), node("subtract", ["e", "one"], "y"), one=[1]), -1),
        (
            ending(
                node("exp", ["x"], "e"),
                node("add", ["e", "one"], "more"),
                node("multiply", ["four", "more"], "times"),
                node("reshape", ["times"], "y", newshape=(-1, 2)),
                one=1,
                four=4,
            ),
            4,
        ),
        (ending(node("exp", ["x"], "e"), node("divide", ["e", "each"], "y"), each=[1, 3]), 0),
        (ending(node("exp", ["x"], "e"), node("add", ["e", "each"], "y"), each=[1, 3]), None),
        (ending(node("exp", ["x"], "e"), node("subtract", ["one", "e"], "y"), one=[1]), None),
        (ending(node("exp", ["x"], "e"), node("multiply", ["e", "x"], "y")), None),
        (ending(node("power", ["x", "two"], "y"), two=2), None),
        (ending(node("sigmoid", ["x"], "y")), None),
    ],
)  # fmt: skip
def test_exponents_are_found_behind_numbers_that_are_the_same_for_all(graph: Graph, offset: float | None) -> None:
    assert exponential_of(graph, "y") == (None if offset is None else Exponential(offset))


def test_each_error_counts_beside_its_number() -> None:
    exponents = RNG.normal(0, 2, (60, 1))
    errors = RNG.normal(0, 0.3, (60, 1))
    wanted, given = np.exp(exponents) - 1, np.exp(exponents + errors) - 1
    made = Exponential(-1).seen_in([wanted[:30], wanted[30:]])
    assert made.powers == pytest.approx((exponents.var(),))
    halves = (made.columns(wanted[some], given[some]) for some in (slice(7), slice(7, None)))
    by_hand = 10 * np.log10(exponents.var() / np.square(errors).mean())
    assert sum(halves, start=made.columns(wanted[:0], given[:0])).sqnr_db == pytest.approx(by_hand)
    (found,) = made.apart([(wanted, given)])
    assert found.sqnr_db == pytest.approx(by_hand)
    assert Exponential(0).apart([(wanted, given)]) == (), "nobody knows how they vary"


def test_what_becomes_nothing_counts_as_a_thousandth_and_what_was_nothing_not_at_all() -> None:
    wanted = np.full((10, 1), 50.0)
    for lost in (0.0, -7.0):
        (noise,) = Exponential(0).columns(wanted, np.full((10, 1), lost)).noise
        assert noise == pytest.approx(10 * np.log(1024) ** 2)
    assert Exponential(0).columns(wanted - 50, wanted).samples == 0


def test_low_prices_are_not_lost_beside_high_ones() -> None:
    """An output in 8 bits has 256 prices from nothing to the highest one: those of fifty are gone, and 30 dB left."""
    weight = np.array([[1.5, 0.3, -0.7, 1.0]], np.float32)
    nodes = [node("nn.dense", ["x", "w"], "z"), node("nn.bias_add", ["z", "b"], "log"), node("exp", ["log"], "y")]
    constants = {"w": Constant(weight), "b": Constant(np.array([8], np.float32))}
    graph = build("price", {"x": TensorType(("N", 4), "float32")}, ["y"], nodes, constants)
    data = np.tanh(RNG.normal(size=(192, 4))).astype(np.float32) * np.float32(1.5)
    told, lost = {}, {}
    for preset in ("int8", "default"):
        session = qb.Session(graph, data[:64], data[64:], preset=preset)
        (told[preset],) = session.run(progress=False).output.losses
        made = np.concatenate([np.asarray(qb.run(session.graph, row[None]), np.float64) for row in data[64:]])
        exact = data[64:].astype(np.float64) @ weight.T + 8
        lost[preset] = np.square(np.log(np.maximum(made, 1)) - exact).mean() / exact.var()
    assert lost["int8"] > 0.05 and lost["default"] < 0.01
    assert told["int8"].varies_db is not None and told["int8"].varies_db < told["int8"].sqnr_db - 6
