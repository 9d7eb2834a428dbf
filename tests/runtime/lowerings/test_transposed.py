"""Transposed convolutions as programs, against the interpreter: any strides, windows, padding, dilation and groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbench.ir.graph import Graph
from qbench.quant.rounding import ROUNDINGS
from qbench.runtime.programs import plan
from tests.runtime.lowerings.agree import assert_agree
from tests.runtime.lowerings.graphs import LEVELS, check, graph_of, numbers, requantize


@st.composite
def layers(draw: st.DrawFn, dtypes: tuple[str, ...], weight_dtypes: tuple[str, ...]) -> Graph:
    """x -> conv2d_transpose -> bias_add -> requantize or clip, any of the last ones missing."""
    seed, dtype = draw(st.integers(0, 2**31)), draw(st.sampled_from(dtypes))
    groups, inner = draw(st.sampled_from([1, 1, 2, 3])), draw(st.sampled_from([1, 3, 9]))
    units = draw(st.sampled_from([1, 2, 19]))
    kernel = draw(st.one_of(st.sampled_from([(2, 2), (3, 3), (4, 4)]), _pairs(1, 5)))
    strides = kernel if draw(st.booleans()) else draw(_pairs(1, 3))
    dilation, extra = draw(st.sampled_from([(1, 1), (1, 1), (2, 3)])), draw(_pairs(0, 2))
    size = draw(_pairs(1, 4))
    reach = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(size, strides, kernel, dilation, strict=True)]
    before = [draw(st.integers(0, reach[axis] - 1)) for axis in (0, 1)]
    after = [draw(st.integers(0, min(3, reach[axis] + extra[axis] - before[axis] - 1))) for axis in (0, 1)]
    attrs = {"strides": strides, "padding": (*before, *after), "output_padding": extra, "dilation": dilation}
    weight_dtype = draw(st.sampled_from(weight_dtypes))
    w = numbers(seed, weight_dtype, (groups * inner, units, *kernel))
    out = groups * units
    shape = draw(st.sampled_from([1, 2, "N"])), groups * inner, *size
    integer = not dtype.startswith("float")
    head = "integer.conv2d_transpose" if integer else "nn.conv2d_transpose"
    nodes, constants = [], {"w": w}
    if integer:
        zeros = numbers(seed, weight_dtype, (units,)).tolist()
        attrs |= {"data_zero_point": int(numbers(seed, dtype, ())), "accumulator": "int64"}
        attrs["weight_zero_point"] = draw(st.sampled_from([0, zeros[0], tuple(zeros)]))
    nodes.append((head, "x w", "sums", attrs | {"groups": groups}))
    last = "sums"
    if draw(st.booleans()):
        bias = np.random.default_rng(seed).integers(-(2**12), 2**12, out)
        constants["b"] = bias if integer else (bias / 2**12).astype(np.float32)
        nodes.append(("nn.bias_add", "sums b", "biased", {"axis": 1}))
        last = "biased"
    if not integer:
        nodes += [("clip", last, "y", {"a_min": -2.0, "a_max": 3.0})] if draw(st.booleans()) else []
    elif rounding := draw(st.sampled_from([None, *ROUNDINGS[1:]])):
        axis = draw(st.sampled_from([1, None]))
        made, parameters = requantize(last, "narrow", rounding, dtype, seed, (1, out, 1, 1), axis)
        nodes, constants = nodes + made, constants | parameters
    return graph_of({"x": (dtype, shape)}, *nodes, constants=constants)


def _pairs(low: int, high: int) -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(st.integers(low, high), st.integers(low, high))


@settings(max_examples=60)
@given(graph=layers(("uint8", "int8", "int16"), ("int8", "uint8", "int4")), seed=st.integers(0, 99))
def test_integers(graph, seed):
    check(graph, seed)


@pytest.mark.parametrize("level", LEVELS)
@settings(max_examples=40)
@given(graph=layers(("float32",), ("float32",)), seed=st.integers(0, 99), threads=st.integers(1, 3))
def test_floats(level, graph, seed, threads):
    _, *shape = graph.types["x"].shape
    samples = graph.types["x"].shape[0]
    feeds = {"x": numbers(seed, "float32", (2 if samples == "N" else samples, *shape))}
    assert_agree(graph, feeds, level=level, threads=threads)


def test_weights_that_are_no_constants_are_left_to_the_interpreter():
    inputs = {"x": ("float32", (1, 2, 3, 3)), "w": ("float32", (2, 4, 2, 2))}
    graph = graph_of(inputs, ("nn.conv2d_transpose", "x w", "y", {"strides": (2, 2)}))
    feeds = {name: numbers(0, dtype, shape) for name, (dtype, shape) in inputs.items()}
    assert_agree(graph, feeds, fallbacks=1)
    assert "no constants" in str(plan(graph).fallbacks)
