"""Parts picked by indices that a run brings, against the interpreter."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbench.errors import DataError
from qbench.ir.build import build
from qbench.ir.frozen import Constant
from qbench.ir.graph import Node
from qbench.ir.types import TensorType
from qbench.runtime.programs import plan
from tests.graphs import graph_of
from tests.runtime.lowerings.agree import assert_agree
from tests.runtime.lowerings.layers import node

RNG = np.random.default_rng(0)
DTYPES = st.sampled_from(["float32", "float16", "int8", "uint8", "int32", "int64"])
COMPUTED = ("float32", "int32", "int64")
KINDS = st.sampled_from(["int32", "int64"])


@settings(max_examples=40)
@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    axis=st.integers(0, 3),
    places=st.lists(st.integers(1, 4), max_size=2),
    held=st.sampled_from(["", "d", "i"]),
    kind=st.sampled_from(["int32", "int64"]),
    dtype=DTYPES,
)
def test_take(shape: list[int], axis: int, places: list[int], held: str, kind: str, dtype: str) -> None:
    axis %= len(shape)
    arrays = {"i": RNG.integers(-shape[axis], shape[axis], places).astype(kind), "d": numbers(shape, dtype)}
    agree(arrays, held, node("take", "d i", "y", axis=axis))


@pytest.mark.parametrize("held", ["", "d", "i"])
@pytest.mark.parametrize("shape, batch", [((2, 6, 2), 0), ((3, 2, 1), 1), ((3, 5, 4, 1), 2), ((4,), 0)])
def test_gather_nd(shape: tuple[int, ...], batch: int, held: str) -> None:
    data = RNG.normal(size=(3, 5, 4, 6)).astype(np.float32)
    limits = np.array(data.shape[batch : batch + shape[-1]])
    agree({"d": data, "i": RNG.integers(-limits, limits, shape)}, held, node("gather_nd", "d i", "y", batch_dims=batch))


def numbers(shape: Sequence[int], dtype: str) -> np.ndarray:
    """Small numbers, so that products stay exact in every order."""
    return RNG.integers(0 if dtype == "uint8" else -4, 5, shape).astype(dtype)


def agree(arrays: dict[str, np.ndarray], held: str, made: Node) -> None:
    """One of the arrays may be a constant."""
    fed = {name: array for name, array in arrays.items() if name != held}
    constants = {held: arrays[held]} if held else {}
    assert_agree(graph_of(fed, [made], "y", **constants), fed, threads=2)


@st.composite
def along_an_axis(draw: st.DrawFn) -> tuple[list[int], int, list[int]]:
    """A shape, an axis of it, and the shape of indices along it."""
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    axis = draw(st.integers(0, len(shape) - 1))
    indices = [draw(st.integers(1, size)) for size in shape]
    indices[axis] = draw(st.integers(1, 7))
    return shape, axis, indices


@settings(max_examples=60, deadline=None)
@given(lines=along_an_axis(), held=st.sampled_from(["", "d", "i"]), dtype=DTYPES, kind=KINDS)
def test_take_along_axis(lines: tuple[list[int], int, list[int]], held: str, dtype: str, kind: str) -> None:
    shape, axis, many = lines
    arrays = {"d": numbers(shape, dtype), "i": RNG.integers(-shape[axis], shape[axis], many).astype(kind)}
    agree(arrays, held, node("take_along_axis", "d i", "y", axis=axis))


@settings(max_examples=80, deadline=None)
@given(
    lines=along_an_axis(), held=st.sampled_from(["", "d", "i", "u"]), dtype=DTYPES, kind=KINDS,
    reduction=st.sampled_from(["none", "none", "add", "mul", "min", "max"]),
)  # fmt: skip
def test_scatter_elements(
    lines: tuple[list[int], int, list[int]], held: str, dtype: str, kind: str, reduction: str
) -> None:
    """Some indices are there twice: the last update stays."""
    shape, axis, many = lines
    dtype = dtype if reduction == "none" or dtype in COMPUTED else "float32"
    arrays = {"d": numbers(shape, dtype), "i": RNG.integers(-shape[axis], shape[axis], many).astype(kind)}
    arrays["u"] = numbers(many, dtype)
    agree(arrays, held, node("scatter_elements", "d i u", "y", axis=axis, reduction=reduction))


@settings(max_examples=60, deadline=None)
@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=5), depth=st.integers(1, 4), dtype=DTYPES, kind=KINDS,
    many=st.lists(st.integers(1, 4), max_size=2), held=st.sampled_from(["", "d", "i", "u"]),
    reduction=st.sampled_from(["none", "none", "add", "mul", "min", "max"]),
)  # fmt: skip
def test_scatter_nd(
    shape: list[int], depth: int, dtype: str, kind: str, many: list[int], held: str, reduction: str
) -> None:
    depth = min(depth, len(shape))
    dtype = dtype if reduction == "none" or dtype in COMPUTED else "int64"
    limits = np.array(shape[:depth])
    arrays = {"d": numbers(shape, dtype), "i": RNG.integers(-limits, limits, (*many, depth)).astype(kind)}
    arrays["u"] = numbers((*many, *shape[depth:]), dtype)
    agree(arrays, held, node("scatter_nd", "d i u", "y", reduction=reduction))


@pytest.mark.parametrize("reduction", ["min", "max", "add"])
def test_what_is_not_a_number_stays_where_it_is_written(reduction: str) -> None:
    x = np.array([[-1, 1, 4, 9, -4, 16]], np.float32)
    arrays = {"x": x, "i": np.array([[0, 1, 2, 2, 5, 5]]), "u": np.roll(x, 2)}
    nodes = [
        node("sqrt", "x", "d"),
        node("sqrt", "u", "v"),
        node("scatter_elements", "d i v", "y", axis=1, reduction=reduction),
    ]
    assert_agree(graph_of(arrays, nodes, "y"), arrays)


@pytest.mark.parametrize("op", ["take_along_axis", "scatter_elements", "scatter_nd"])
@pytest.mark.parametrize("bad", [4, -5, 2**40])
def test_what_is_written_beyond_is_told(op: str, bad: int) -> None:
    arrays = {"d": np.zeros((4, 3), np.float32), "i": np.zeros((2, 1), np.int64), "u": np.ones((2, 3), np.float32)}
    if op != "scatter_nd":
        arrays["u"] = arrays["u"][:, :1].copy()
    names, attrs = ("d i", {"axis": 0}) if op == "take_along_axis" else ("d i u", {"axis": 0})
    graph = graph_of(arrays, [node(op, names, "y", **({} if op == "scatter_nd" else attrs))], "y")
    program = plan(graph)
    assert not program.fallbacks
    good = program.run(arrays)["y"]
    for place in ((0, 0), (1, 0)):
        beyond = arrays["i"].copy()
        beyond[place] = bad
        with pytest.raises(DataError, match="step 'y': indices 'i' point beyond the size 4"):
            program.run({**arrays, "i": beyond})
    assert np.array_equal(program.run(arrays)["y"], good)


def test_indices_with_gaps_between_them_are_checked_all_and_alone() -> None:
    """They are cut out of a larger image, whose other numbers point anywhere."""
    image = np.full((1, 1, 4, 5), 99)
    image[..., 1:4] = RNG.integers(-6, 6, (1, 1, 4, 3))
    feeds = {"w": image, "d": RNG.normal(size=(6, 2)).astype(np.float32)}
    nodes = [
        node("add", "w k", "t"),
        node("strided_slice", "t", "i", begin=(1,), end=(4,), strides=(1,), axes=(3,)),
        node("take", "d i", "y", axis=0),
    ]
    graph = graph_of(feeds, nodes, "y", k=np.array([[[[0]]]]))
    assert_agree(graph, feeds)
    image[0, 0, 3, 3] = 6
    with pytest.raises(DataError, match="point beyond the size 6"):
        plan(graph).run(feeds)


@pytest.mark.parametrize(
    "made",
    [node("take", "d i", "y", axis=0), node("take_along_axis", "d i", "y", axis=0), node("gather_nd", "d i", "y")],
)
def test_constants_that_point_beyond_are_left_to_the_interpreter_which_tells(made: Node) -> None:
    feeds = {"d": np.zeros((4, 3), np.float32)}
    program = plan(graph_of(feeds, [made], "y", i=np.array([[0, 7]])))
    assert program.fallbacks
    with pytest.raises(DataError, match="go beyond"):
        program.run(feeds)


@pytest.mark.parametrize("bad", [7, -8, 2**40])
def test_what_points_beyond_is_told_with_its_sample(bad: int) -> None:
    indices = RNG.integers(-7, 7, (3, 4))
    nodes = [node("take", "w i", "t"), node("nn.relu", "t", "y")]
    kind, table = TensorType(("N", 4), "int64"), Constant(np.eye(7, dtype=np.float32))
    program = plan(build("test", {"i": kind}, ("y",), nodes, {"w": table}))
    good = program.run({"i": indices})["y"]
    indices[2, 1] = bad
    with pytest.raises(DataError, match="step 't': indices 'i' point beyond the size 7, in sample 2 of the run"):
        program.run({"i": indices})
    indices[2, 1] = 0
    assert np.array_equal(program.run({"i": indices})["y"][:2], good[:2])
