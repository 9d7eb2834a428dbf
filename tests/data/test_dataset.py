from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbench.calibration.collect import collect
from qbench.data.dataset import Dataset
from qbench.errors import DataError
from qbench.ir.build import build
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Node
from qbench.ir.types import TensorType
from tests.networks import mlp, node, samples

GRAPH = mlp()


def joined(data: Dataset) -> np.ndarray:
    return np.concatenate([chunk.feeds["x"] for chunk in data.chunks()])


@given(st.integers(1, 100), st.lists(st.integers(1, 99), max_size=5), st.integers(1, 40))
def test_the_same_samples_are_cut_the_same_way_however_they_are_given(count: int, cuts: list[int], batch: int):
    x = samples(count)
    whole = Dataset(GRAPH, x, batch=batch)
    pieces = np.split(x, sorted({cut for cut in cuts if cut < count}))
    for given_ in (pieces, [{"x": piece} for piece in pieces], {"x": x}, Lazy(pieces)):
        other = Dataset(GRAPH, given_, batch=batch)
        assert (other.digest, other.samples) == (whole.digest, count)
        assert [(c.digest, c.start, c.stop) for c in other.chunks()] == [
            (c.digest, c.start, c.stop) for c in whole.chunks()
        ]
        assert np.array_equal(joined(other), x)
    assert all(len(chunk.feeds["x"]) <= batch for chunk in whole.chunks())


class Lazy:
    """Larger than memory, for all that anyone knows."""

    def __init__(self, pieces: list[np.ndarray]) -> None:
        self.pieces = pieces

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter(self.pieces)


class Indexed:
    def __init__(self, x: np.ndarray) -> None:
        self.x = x

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> np.ndarray:
        return self.x[index : index + 1]  # never raises IndexError


def test_something_with_len_and_getitem():
    assert np.array_equal(joined(Dataset(GRAPH, Indexed(samples(7)))), samples(7))


def test_another_content_or_cut_is_another_digest():
    digests = {Dataset(GRAPH, samples(10, seed), batch=batch).digest for seed in (1, 2) for batch in (3, 4)}
    assert len(digests) == 4


def test_later_changes_of_the_users_array_do_not_matter():
    x = samples(3)
    data = Dataset(GRAPH, x)
    x[:] = 0
    assert np.array_equal(joined(data), samples(3))


def test_data_that_changes_between_readings_is_an_error():
    lazy = Lazy([samples(3)])
    data = Dataset(GRAPH, lazy)
    lazy.pieces = [samples(3, seed=9)]
    with pytest.raises(DataError, match="changed between two readings"):
        list(data.chunks())


def test_a_fixed_batch_is_fed_at_a_time():
    graph = mlp(batch=4)
    data = Dataset(graph, samples(12))
    assert [(c.feeds["x"].shape, c.start, c.stop) for c in data.chunks()] == [
        ((4, 12), 0, 4),
        ((4, 12), 4, 8),
        ((4, 12), 8, 12),
    ]
    with pytest.raises(DataError, match="13 is no multiple of that"):
        Dataset(graph, samples(13))


def test_a_scalar_input_takes_a_numpy_number():
    graph = build(
        "scaled",
        {"x": TensorType((1, 2), "float32"), "by": TensorType((), "float32")},
        ["y"],
        [node("multiply", ["x", "by"], "y")],
    )
    x = np.ones((1, 2), np.float32)
    (chunk,) = Dataset(graph, [{"x": x, "by": np.float32(3)}]).chunks()
    assert chunk.feeds["by"].shape == () and chunk.feeds["by"] == 3


def with_(value: float) -> np.ndarray:
    x = samples(3)
    x[1, 2] = value
    return x


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (samples(0), "is empty"),
        ([], "is empty"),
        (with_(np.nan), "'x' has 1 NaN or infinite"),
        (with_(np.inf), "'x' has 1 NaN or infinite"),
        (samples(3).astype(np.float64), r"use x.astype\('float32'\)"),
        (samples(3, width=11), "axis 1 has size 11, not 12"),
        (samples(3)[0], "1 dimensions, not 2"),
        (np.float32(1), "must be arrays"),
        ({"X": samples(3)}, "no input 'X'"),
        ({}, "'x' is missing"),
        ({"x": [[1.0] * 12]}, "is list, not a NumPy array"),
        ("x.npz", "not str"),
        (iter([samples(3)]), "iterator"),
        (3, "must be arrays"),
        ([3], "not int"),
    ],
)
def test_bad_data(data: object, message: str):
    with pytest.raises(DataError, match=message):
        Dataset(GRAPH, data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (samples(3).tolist(), r"not list; np\.asarray\(x, np\.float32\) makes an array"),
        (samples(3).astype(object), r"object .* not float32; np\.stack\(\[\*x\]\) makes one array"),
        ("x.npz", r"not str; qbench\.load_data\(path\) reads a file"),
    ],
)
def test_data_of_another_kind_says_what_makes_it_fit(data: object, message: str):
    with pytest.raises(DataError, match=message):
        Dataset(GRAPH, data)


def test_the_message_says_which_data_and_which_sample():
    with pytest.raises(DataError, match="evaluation data: sample 4: input 'x' has 1 NaN"):
        Dataset(GRAPH, [samples(3), with_(np.nan)], what="evaluation")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.zeros(2, int), "3 evaluation samples but 2 labels"),
        (np.zeros(3), "must be integers .* a session with metric= takes truths of any kind"),
        (
            [np.zeros((2, 5)), np.zeros((1, 5)), np.zeros((0, 5))],
            "must be integers .* arrays of several shapes; a session with metric=",
        ),
        (1, "must be integers"),
    ],
)
def test_bad_labels(labels: object, message: str):
    with pytest.raises(DataError, match=message):
        Dataset(GRAPH, samples(3), labels, what="evaluation")


def test_sequences_of_any_length_are_data_as_they_are() -> None:
    kind = TensorType(("N", "T", 2), "float32")
    graph = build("g", {"x": kind}, ["y"], [Node("relu", "nn.relu", ("x",), ("y",))])
    lengths = [3, 3, 5, 3, 3, 3, 1]
    items = [np.full((1, length, 2), number, np.float32) for number, length in enumerate(lengths)]
    data = Dataset(graph, [{"x": item} for item in items], batch=2)
    assert data.samples == len(lengths)
    assert [chunk.feeds["x"].shape[:2] for chunk in data.chunks()] == [(2, 3), (1, 5), (2, 3), (1, 3), (1, 1)]
    batches = list(data.batches(4))
    assert [(chunk.start, chunk.stop) for chunk in batches] == [(0, 2), (2, 3), (3, 6), (6, 7)]
    assert [chunk.feeds["x"].shape[:2] for chunk in batches] == [(2, 3), (1, 5), (3, 3), (1, 1)]
    np.testing.assert_array_equal(batches[2].feeds["x"][:, 0, 0], [3, 4, 5])
    np.testing.assert_array_equal(data.sample(2)["x"], items[2])


def test_steps_of_time_along_axis_0_are_not_cut_into_samples() -> None:
    kind = TensorType(("T", 2), "float32")
    nodes = [Node("sum", "cumsum", ("x",), ("y",), FrozenMap({"axis": 0}))]
    graph = build("g", {"x": kind}, ["y"], nodes)
    items = [np.full((length, 2), length, np.float32) for length in (3, 3, 5)]
    data = Dataset(graph, items)
    assert data.samples == 3 and [len(piece["x"]) for piece in data.pieces_in_order()] == [3, 3, 5]
    assert collect(graph, items)["y"].max == 25.0
    assert Dataset(graph, items[0]).samples == 3, "of a single array axis 0 counts samples"
    picked = Dataset(graph, data.pick([2]), uncut=data.uncut)
    assert picked.samples == 1


@pytest.mark.parametrize("given_as", [lambda x: x, lambda x: {"x": x}, lambda x: [x], lambda x: [{"x": x}]])
def test_one_recording_is_one_sample_where_windows_run_over_its_steps(given_as: Callable[[np.ndarray], object]) -> None:
    """Axis 0 is open and counts steps of time: one of them by itself does not fill the window."""
    nodes = [
        Node("image", "expand_dims", ("x",), ("image",), FrozenMap({"axes": (0, 1)})),
        Node("made", "nn.conv2d", ("image", "w"), ("made",)),
    ]
    window = Constant(np.ones((1, 1, 3, 2), np.float32))
    graph = build("steps", {"x": TensorType(("T", 4), "float32")}, ("made",), nodes, {"w": window})
    x = np.ones((9, 4), np.float32)
    data = Dataset(graph, given_as(x))
    assert data.samples == 1
    np.testing.assert_array_equal(joined(data), x)


def test_few_samples_are_spread_evenly_over_the_commonest_shapes():
    graph = build("any", {"x": TensorType(("N", 3, "W"), "float32")}, ("y",), [Node("y", "nn.relu", ("x",), ("y",))])
    widths = [*([8] * 30), *([9] * 3), *([10] * 5), *([11] * 2), *([12] * 4), 13, 14, 15]
    data = Dataset(graph, [np.zeros((1, 3, width), np.float32) for width in widths])
    few = data.spread(6)
    assert few == sorted(set(few)) and len(few) == 6
    assert {widths[at] for at in few} <= {8, 9, 10, 12} and widths[few[-1]] == 12
    assert data.spread(100) == [*range(len(widths))], "all that there are"
    assert data.spread(3, range(44, 47)) == [44, 45, 46]
    same = Dataset(graph, np.zeros((9, 3, 4), np.float32))
    assert same.spread(3) == [0, 4, 8] and same.spread(2, range(2, 9)) == [2, 8]
