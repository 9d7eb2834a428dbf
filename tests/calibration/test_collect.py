"""One pass over the data: the same statistics however the samples come and wherever they run."""

from __future__ import annotations

import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import numpy as np
import pytest

import qbench.ops  # noqa: F401 declares them
from qbench.calibration.collect import collect
from qbench.calibration.means import ChannelMeans
from qbench.calibration.statistics import Statistics
from qbench.data.samples import count_samples, samples
from qbench.errors import Cancelled, DataError, GraphError
from qbench.ir.build import build
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Node
from qbench.ir.types import TensorType
from qbench.runtime.programs import plan

rng = np.random.default_rng(0)
WEIGHT = rng.normal(size=(5, 4)).astype(np.float32)


def mlp(first="N"):
    nodes = [
        Node("fc", "nn.dense", ("x", "w"), ("fc.out",)),
        Node("act", "nn.relu", ("fc.out",), ("y",)),
        Node("twice", "add", ("y", "y"), ("z",)),
    ]
    return build("mlp", {"x": TensorType((first, 4), "float32")}, ["z"], nodes, {"w": Constant(WEIGHT)})


X = rng.normal(size=(21, 4)).astype(np.float32)


def one_by_one(graph, x):
    program = plan(graph, keep=("fc.out", "y"))
    found = [program.run(row[None], keep=("fc.out", "y")) | {"x": row} for row in x]
    merged = {name: Statistics.merged(Statistics.of(f[name]) for f in found) for name in ("x", "fc.out", "y", "z")}
    units = [sum(int(value * 2.0**149) for value in column.tolist()) for column in x.T]  # what fc reads
    return merged | {"x": replace(merged["x"], channels=ChannelMeans(tuple(units), len(x)))}


def test_all_float_activations_in_execution_order():
    found = collect(mlp(), X)
    assert list(found) == ["x", "fc.out", "y", "z"]
    assert found == one_by_one(mlp(), X)
    assert found["y"].count == 21 * 5


@pytest.mark.parametrize(
    "data",
    [
        {"x": X},
        [X[:7], X[7:]],
        [{"x": X[::-1]}],
        (X[i : i + 1] for i in range(21)),
        np.asfortranarray(X),
        (X[13:], X[:13]),
    ],
    ids=["mapping", "arrays", "reversed", "generator", "fortran", "reordered"],
)
def test_how_the_samples_come_makes_no_difference(data):
    assert collect(mlp(), data) == one_by_one(mlp(), X)


@pytest.mark.parametrize(
    "make", [lambda: ThreadPoolExecutor(3), lambda: ProcessPoolExecutor(2, mp_context=get_context("spawn"))]
)
def test_any_executor(make):
    with make() as executor:
        assert collect(mlp(), X, executor=executor) == one_by_one(mlp(), X)


def test_memory_is_bounded_however_long_the_data_is():
    drawn, done = 0, []

    def endless():
        nonlocal drawn
        for _ in range(3000):
            drawn += 1
            yield X[:1]
            assert drawn - (done[-1] if done else 0) < 400

    with ThreadPoolExecutor(2) as executor:
        collect(mlp(), endless(), executor=executor, progress=lambda n, total: done.append(n))
    assert done[-1] == 3000


def test_only_the_tensors_asked_for():
    assert list(collect(mlp(), X, tensors=["z", "x"])) == ["x", "z"]
    with pytest.raises(GraphError, match=r"no float activation 'zz'; did you mean 'z'\?"):
        collect(mlp(), X, tensors=["zz"])


def test_a_fixed_batch_is_fed_as_a_whole():
    whole, single = collect(mlp(7), X), collect(mlp(1), X)  # a dense layer's rows do not depend on each other here
    np.testing.assert_allclose(whole["x"].channels.values, single["x"].channels.values, atol=1e-7)
    assert whole | {"x": replace(whole["x"], channels=None)} == single | {"x": replace(single["x"], channels=None)}
    with pytest.raises(DataError, match="it takes 4 samples at a time, and 21 is no multiple"):
        collect(mlp(4), X)


def test_inputs_without_a_batch_are_fed_whole():
    types = {"x": TensorType(("N", 3), "float32"), "bias": TensorType((3,), "float32")}
    graph = build("g", types, ["y"], [Node("add", "add", ("x", "bias"), ("y",))])
    bias = np.arange(3, dtype=np.float32)
    assert [f["bias"].shape for f in samples(graph, {"x": np.zeros((2, 3), np.float32), "bias": bias})] == [(3,)] * 2


def test_inputs_with_different_numbers_of_samples():
    types = {"a": TensorType(("N", 3), "float32"), "b": TensorType(("N", 3), "float32")}
    graph = build("g", types, ["y"], [Node("add", "add", ("a", "b"), ("y",))])
    x = np.zeros((4, 3), np.float32)
    with pytest.raises(DataError, match=r"different numbers of samples \('a': 4, 'b': 3\)"):
        collect(graph, {"a": x, "b": x[:3]})
    with pytest.raises(DataError, match=r"2 inputs .*give a dict"):
        collect(graph, x)


def test_integer_inputs_have_no_statistics():
    table = Constant(np.ones((10, 3), np.float32))
    node = Node("look", "take", ("table", "ids"), ("y",), FrozenMap({"axis": 0}))
    graph = build("g", {"ids": TensorType(("N",), "int64")}, ["y"], [node], {"table": table})
    assert list(collect(graph, np.arange(5))) == ["y"]


def bad(value, index):
    x = X.copy()
    x[index] = value
    return x


@pytest.mark.parametrize("executor", [None, 2])
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (X[:0], "empty"),
        ([], "empty"),
        (X[0], r"wants Tensor\[\(N, 4\), float32\].*shape \(4,\).*x\[None\]"),
        (X[:, :3], "sample 0: .*size 3, not 4"),
        (X.astype(np.float64), "sample 0: .*float64"),
        (bad(np.nan, (17, 2)), "sample 17: input 'x' has 1 NaN"),
        (bad(np.inf, (3, 0)), "sample 3: input 'x' has 1 NaN or inf"),
        ({"y": X}, r"no input 'y'.*it has 'x'"),
        ({}, "input 'x' is missing"),
        ({"x": [1.0]}, "'x' is list"),
        ([[1.0]], "not list"),
        ("x.npy", "not str"),
        (None, "not NoneType"),
    ],
)
def test_bad_data(data, message, executor):
    with ThreadPoolExecutor(2) as pool, np.errstate(all="ignore"), pytest.raises(DataError, match=message):
        collect(mlp(), data, executor=pool if executor else None)


def test_a_value_that_becomes_nan_is_named():
    graph = build("g", {"x": TensorType(("N", 4), "float32")}, ["y"], [Node("ratio", "divide", ("x", "x"), ("y",))], {})
    with pytest.raises(DataError, match="sample 9: tensor 'y' has nan at index"):
        collect(graph, bad(0, 9))


@pytest.mark.parametrize("executor", [None, 2])
def test_a_quotient_by_zero_that_another_number_is_chosen_for_counts_as_0(executor):
    nodes = [
        Node("ratio", "divide", ("x", "x"), ("r",)),
        Node("empty", "equal", ("x", "zero"), ("e",)),
        Node("chosen", "where", ("e", "zero", "r"), ("y",)),
    ]
    zero = {"zero": Constant(np.zeros((), np.float32))}
    graph = build("g", {"x": TensorType(("N", 4), "float32")}, ["y"], nodes, zero)
    with ThreadPoolExecutor(2) as pool, np.errstate(all="ignore"):
        found = collect(graph, bad(0, 9), executor=pool if executor else None)
    assert found["r"] == found["y"]
    assert (found["y"].min, found["y"].max, found["y"].zeros) == (0, 1, 4)


class After:
    def __init__(self, looks):
        self.looks = looks

    def is_set(self):
        self.looks -= 1
        return self.looks < 0


def test_cancel():
    with pytest.raises(Cancelled, match="was cancelled"):
        collect(mlp(), X, cancel=After(2))
    event = threading.Event()
    assert collect(mlp(), X, cancel=event) == collect(mlp(), X)
    event.set()
    with ThreadPoolExecutor(2) as executor, pytest.raises(Cancelled):
        collect(mlp(), X, cancel=event, executor=executor)


def test_progress():
    told = []
    collect(mlp(), X, progress=lambda done, total: told.append((done, total)))
    assert told[0] == (1, 21)
    assert told[-1] == (21, 21)


def test_counting():
    assert count_samples(mlp(), [X, {"x": X}]) == 42
    assert count_samples(mlp(), iter([X])) is None
