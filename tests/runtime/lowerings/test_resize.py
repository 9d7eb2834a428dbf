"""Bilinear resizing as programs, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qbench.ir.types import TensorType
from qbench.ops.tflite.resize import tflite_resize
from qbench.runtime.programs import plan
from tests.runtime.lowerings.graphs import check, graph_of, numbers

PAIR = st.tuples(st.integers(1, 6), st.integers(1, 6) | st.integers(62, 68))


@settings(max_examples=60)
@given(
    dtype=st.sampled_from(["int8", "uint8", "int16"]), seed=st.integers(0, 2**31), size=PAIR, out=PAIR,
    channels=st.sampled_from([1, 3, 70]), batch=st.sampled_from([1, 2, "N"]),
    rounding=st.sampled_from([None, "ties_to_even", "toward_zero"]),
)  # fmt: skip
def test_resize_linear(dtype, seed, size, out, channels, batch, rounding) -> None:
    random = np.random.default_rng(seed)
    tables = {}
    for name, before, after in zip(("rows", "columns"), size, out, strict=True):
        weights = random.choice([0, 1 << 19, 1 << 20] if seed % 2 else [123457, 1 << 20], (after, 1))
        tables[name] = np.hstack([random.integers(0, before, (after, 2)), weights]).astype(np.int32)
    attrs = {"zero_point": int(numbers(seed, dtype, ()))} | ({rounding: True} if rounding else {})
    node = ("integer.resize_linear", "x rows columns", "y", attrs)
    check(graph_of({"x": (dtype, (batch, channels, *size))}, node, constants=tables), seed)


@settings(max_examples=50)
@given(
    dtype=st.sampled_from(["int8", "uint8", "int16"]), seed=st.integers(0, 2**31), size=PAIR, out=PAIR,
    channels=st.sampled_from([1, 3, 70]), batch=st.sampled_from([1, 2, "N"]),
    coordinates=st.sampled_from(["half_pixel", "align_corners", "asymmetric"]),
)  # fmt: skip
@example(dtype="int8", seed=0, size=(1, 3), out=(62, 182), channels=1, batch=1, coordinates="asymmetric")
def test_resize_of_tflite(dtype, seed, size, out, channels, batch, coordinates) -> None:
    """Weights of ten bits for signed integers, float32 for uint8."""
    shape = (batch, channels, *size)
    op, tables = tflite_resize(TensorType(shape, dtype), out, coordinates)
    check(graph_of({"x": (dtype, shape)}, (op.name, " ".join(("x", *tables)), "y", {}), constants=tables), seed)


@pytest.mark.parametrize("bad", [-1, 3])
def test_tables_that_point_beyond_the_image_are_left_to_the_interpreter(bad: int) -> None:
    rows = np.array([[0, bad, 5], [1, 2, 7]], np.int32)
    graph = graph_of(
        {"x": ("int8", (1, 2, 3, 3))}, ("integer.tflite_resize", "x t k", "y", {}),
        constants={"t": rows, "k": np.array([[0, 1, 3]], np.int32)},
    )  # fmt: skip
    assert plan(graph).fallbacks
