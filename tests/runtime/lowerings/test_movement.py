"""Elements moved by programs, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbench.ir.build import build
from qbench.ir.frozen import Constant
from qbench.ir.types import TensorType
from tests.runtime.lowerings.agree import assert_agree
from tests.runtime.lowerings.graphs import check, graph_of, numbers
from tests.runtime.lowerings.layers import node

SEED = st.integers(0, 2**31)
DTYPE = st.sampled_from(["int8", "uint8", "int16", "float32", "int64"])
SMALL = [(2, 3, 5, 7), ("N", 12, 4, 6), (4, 9), (3, 1, 6), (7,), (2, 3, 2, 3, 4), (2, 1, 2, 3, 2, 3)]
SHAPES = st.sampled_from([*SMALL, (2, 3, 40), ("N", 2, 3, 18), (33,)])


@settings(max_examples=40)
@given(shape=SHAPES, dtype=DTYPE, seed=SEED, data=st.data())
def test_strided_slice(shape, dtype, seed, data) -> None:
    axes = [axis for axis, size in enumerate(shape) if isinstance(size, int) and data.draw(st.booleans())]
    ends = st.integers(-8, 8)
    attrs = {
        "axes": tuple(axes), "begin": tuple(data.draw(ends) for _ in axes), "end": tuple(data.draw(ends) for _ in axes),
        "strides": tuple(data.draw(st.sampled_from([1, 2, 3, -1, -2])) for _ in axes),
    }  # fmt: skip
    graph = graph_of({"x": (dtype, shape)}, ("strided_slice", "x", "y", attrs))
    if all(graph.types["y"].shape):
        check(graph, seed)


@settings(max_examples=30)
@given(shape=SHAPES, dtype=DTYPE, seed=SEED, data=st.data())
def test_split(shape, dtype, seed, data) -> None:
    axis = data.draw(st.sampled_from([axis for axis, size in enumerate(shape) if isinstance(size, int)]))
    cuts = sorted(data.draw(st.sets(st.integers(1, shape[axis] - 1), max_size=2))) if shape[axis] > 1 else []
    names = [f"y{i}" for i in range(len(cuts) + 1)]
    check(graph_of({"x": (dtype, shape)}, ("split", "x", names, {"axis": axis, "cuts": tuple(cuts)})), seed)


@settings(max_examples=60)
@given(shape=SHAPES, dtype=DTYPE, seed=SEED, data=st.data(), mode=st.sampled_from(["constant", "edge", "reflect"]))
def test_pad(shape, dtype, seed, data, mode) -> None:
    most = [0 if isinstance(size, str) else min(2, size - 1) if mode == "reflect" else 2 for size in shape]
    width = tuple((data.draw(st.integers(0, m)), data.draw(st.integers(0, m))) for m in most)
    attrs = {"pad_width": width, "mode": mode, "pad_value": 7.0}
    check(graph_of({"x": (dtype, shape)}, ("nn.pad", "x", "y", attrs)), seed)


@settings(max_examples=20)
@given(
    dtype=st.sampled_from(["int8", "uint8", "int16"]), seed=SEED, size=st.tuples(st.integers(1, 12), st.integers(1, 12))
)
def test_nearest_resize(dtype, seed, size) -> None:
    check(graph_of({"x": (dtype, (2, 5, 4, 6))}, ("image.resize2d", "x", "y", {"size": size})), seed)


@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("mode", ["DCR", "CRD"])
@pytest.mark.parametrize("batch", [2, "N"])
def test_blocks(dtype, mode, batch) -> None:
    attrs = {"block_size": 2, "mode": mode}
    check(graph_of({"x": (dtype, (batch, 12, 3, 5))}, ("nn.depth_to_space", "x", "y", attrs)))
    check(graph_of({"x": (dtype, (batch, 3, 6, 4))}, ("nn.space_to_depth", "x", "y", {"block_size": 2})))


@settings(max_examples=20)
@given(shape=SHAPES, dtype=DTYPE, seed=SEED, data=st.data())
def test_repetition(shape, dtype, seed, data) -> None:
    reps = tuple(1 if isinstance(size, str) else data.draw(st.integers(1, 3)) for size in shape)
    check(graph_of({"x": (dtype, shape)}, ("tile", "x", "y", {"reps": reps})), seed)


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_broadcast_to(dtype) -> None:
    check(graph_of({"x": (dtype, (3, 1, 5))}, ("broadcast_to", "x", "y", {"shape": (2, 3, 4, 5)})))


@pytest.mark.parametrize("dtype", ["int8", "float32", "int64"])
def test_a_constant_is_repeated_as_often_as_a_run_says(dtype) -> None:
    x, k = np.zeros((2, 3, 4, 5), dtype), np.arange(-4, 8).reshape(3, 4, 1).astype(dtype)
    nodes = [node("broadcast_to", "k", "y", shape=("N", 3, 4, 5)), node("concatenate", "x y", "z", axis=3)]
    types, held = {"x": TensorType(("N", 3, 4, 5), dtype)}, {"k": Constant(k)}
    assert_agree(build("test", types, ("z",), nodes, held), {"x": x}, sizes={"N": 2})


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_take(axis) -> None:
    indices = np.array([1, -1, 0, 1])
    graph = graph_of({"x": ("int8", (2, 3, 4, 5))}, ("take", "x i", "y", {"axis": axis}), constants={"i": indices})
    check(graph)


@settings(max_examples=40)
@given(shape=SHAPES, dtype=DTYPE, seed=SEED, data=st.data(), names=st.sampled_from(["token x", "x token x"]))
def test_concatenation_with_a_constant(shape, dtype, seed, data, names) -> None:
    """As the class token of a vision transformer is joined: it is no value that a step made."""
    shape = tuple(2 if isinstance(size, str) else size for size in shape)  # a constant has no open sizes
    axis = data.draw(st.integers(0, len(shape) - 1))
    constants = {"token": numbers(seed + 1, dtype, (*shape[:axis], data.draw(st.integers(1, 3)), *shape[axis + 1 :]))}
    check(graph_of({"x": (dtype, shape)}, ("concatenate", names, "y", {"axis": axis}), constants=constants), seed)


@pytest.mark.parametrize("axis", range(6))
def test_take_of_six_axes(axis) -> None:
    graph = graph_of(
        {"x": ("int8", (2, 3, 2, 4, 2, 3))}, ("take", "x i", "y", {"axis": axis}),
        constants={"i": np.array([1, -1, 0, 1])},
    )  # fmt: skip
    check(graph)
