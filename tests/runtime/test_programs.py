"""Programs of graphs with an open batch: several samples at a time give the bits of one after the other."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbench.errors import Cancelled, DataError
from qbench.ir.build import build
from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph
from qbench.ir.types import TensorType
from qbench.runtime.program import TOGETHER
from qbench.runtime.programs import plan
from qbench.session.session import Session
from tests.networks import mlp, node

WIDTH = 20
X = np.random.default_rng(0).normal(size=(3 * TOGETHER, WIDTH)).astype(np.float32)


def two_of_each(first: str = "N") -> Graph:
    """Two inputs, two layers, two outputs; one of them has another rank."""
    rng = np.random.default_rng(1)
    constants = {name: Constant(rng.normal(size=(WIDTH, WIDTH)).astype(np.float32)) for name in ("w1", "w2")}
    nodes = [node("nn.dense", ["x", "w1"], "a"), node("add", ["a", "z"], "b"), node("nn.dense", ["b", "w2"], "c")]
    nodes.append(node("reshape", ["c"], "y", newshape=(-1, 4, WIDTH // 4)))
    inputs = {name: TensorType((first, WIDTH), "float32") for name in ("x", "z")}
    return build("two", inputs, ["a", "y"], nodes, constants)


@pytest.fixture(scope="module", params=["float32", "int8", "two of each"])
def graph(request: pytest.FixtureRequest) -> Graph:
    if request.param == "two of each":
        return two_of_each()
    network = mlp(3, (WIDTH, 40, 33, 5))
    return network if request.param == "float32" else Session(network, X, preset="int8").quantized().graph


@given(samples=st.integers(0, len(X)), threads=st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_any_number_of_samples(graph: Graph, samples: int, threads: int) -> None:
    program = plan(graph)
    feeds = {name: X[:samples] * (1 + i) for i, name in enumerate(graph.inputs)}
    made = program.run(feeds, threads=threads)
    alone = [program.run({n: array[i : i + 1] for n, array in feeds.items()}) for i in range(samples)]
    for name in graph.outputs:
        assert made[name].shape[0] == samples
        np.testing.assert_array_equal(made[name], np.concatenate([one[name] for one in alone] or [made[name]]))


def test_what_is_kept_is_the_same() -> None:
    program, feeds = plan(two_of_each(), keep=["b"]), {"x": X, "z": X}
    kept, plain = program.run(feeds, keep=["b"]), program.run(feeds)
    np.testing.assert_array_equal(kept["y"], plain["y"])
    assert kept["b"].shape == X.shape and "b" not in plain


def test_samples_of_two_rows() -> None:
    graph = two_of_each("2*N")
    assert plan(graph).plan_of_several is None, "two rows share a pass already"
    made = plan(graph).run({"x": X, "z": X})
    np.testing.assert_array_equal(made["a"], plan(two_of_each()).run({"x": X, "z": X})["a"])


def test_they_are_planned_together_only_where_that_helps() -> None:
    program = plan(mlp(3, (WIDTH, 40, 5)))
    assert program.plan_of_several is not None
    together = program.plan_of_several()
    assert [step.name for step in together.steps] == [step.name for step in program.steps]
    assert together.single.types["x"].shape == (TOGETHER, WIDTH)
    image, weight = TensorType(("N", 3, 8, 8), "float32"), Constant(np.ones((4, 3, 3, 3), np.float32))
    convolution = build("conv", {"x": image}, ["y"], [node("nn.conv2d", ["x", "w"], "y")], {"w": weight})
    assert plan(convolution).plan_of_several is None
    assert plan(mlp(3, (WIDTH, 40, 5)), sizes={"N": 16}).plan_of_several is None


def test_errors_are_those_of_any_run() -> None:
    program, stop = plan(mlp(3, (WIDTH, 40, 5))), threading.Event()
    bad = X.copy()
    bad[TOGETHER + 1, 2] = np.nan
    with pytest.raises(DataError, match=r"NaN.*\(9, 2\)"):
        program.run(bad)
    stop.set()
    with pytest.raises(Cancelled):
        program.run(X, cancel=stop)
