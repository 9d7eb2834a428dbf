"""Bilinear resizing as programs, against the interpreter."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.lowerings.graphs import check, graph_of, numbers

PAIR = st.tuples(st.integers(1, 6), st.integers(1, 6))


@settings(max_examples=60)
@given(
    dtype=st.sampled_from(["int8", "uint8", "int16"]), seed=st.integers(0, 2**31), size=PAIR, out=PAIR,
    channels=st.sampled_from([1, 3, 70]), batch=st.sampled_from([1, 2, "N"]), ties_to_even=st.booleans(),
)  # fmt: skip
def test_resize_linear(dtype, seed, size, out, channels, batch, ties_to_even) -> None:
    random = np.random.default_rng(seed)
    tables = {}
    for name, before, after in zip(("rows", "columns"), size, out, strict=True):
        weights = random.choice([0, 1 << 19, 1 << 20] if seed % 2 else [123457, 1 << 20], (after, 1))
        tables[name] = np.hstack([random.integers(0, before, (after, 2)), weights]).astype(np.int32)
    attrs = {"zero_point": int(numbers(seed, dtype, ())), "ties_to_even": ties_to_even}
    node = ("integer.resize_linear", "x rows columns", "y", attrs)
    check(graph_of({"x": (dtype, (batch, channels, *size))}, node, constants=tables), seed)
