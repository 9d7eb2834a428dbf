"""TFLite's own arithmetic in programs: bit for bit what the interpreter gives, at every level."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbench.ir.dtypes import DType
from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph
from qbench.ir.qparams import QParams
from qbench.kernels.rounding import two_parts
from qbench.passes.legalize import LegalizePass
from qbench.quant.rescaling import rescale, rescale_float64
from qbench.runtime.lowerings.in_fixed_point import in_fixed_point
from qbench.runtime.lowerings.rescaling import Rescaling
from qbench.runtime.programs import plan
from tests.graphs import graph_of
from tests.runtime.lowerings.agree import LEVELS, assert_agree
from tests.runtime.lowerings.layers import node

Arrays = dict[str, np.ndarray[Any, Any]]
SEED = st.integers(0, 2**32 - 1)
EIGHT: st.SearchStrategy[DType] = st.sampled_from(["int8", "uint8"])
few = settings(max_examples=12, deadline=None)


def q_of(rng: np.random.Generator, dtype: DType, low: float = -3, high: float = 0) -> QParams:
    info = np.iinfo(dtype)
    zero = 0 if dtype == "int16" else int(rng.integers(info.min, info.max + 1))
    return QParams(float(np.float32(10 ** rng.uniform(low, high))), zero, dtype)


def some(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype)


def legal(
    inputs: Arrays,
    qparams: dict[str, QParams],
    nodes: list[tuple[str, str, str, dict[str, Any]]],
    constants: Arrays | None = None,
) -> Graph:
    """The integer graph of nodes (op, inputs, output, attributes), the last of which makes the output."""
    made = [node(op, given, out, **attrs) for op, given, out, attrs in nodes]
    return LegalizePass()(graph_of(inputs, made, nodes[-1][2], qparams, **(constants or {})))


def agree(graph: Graph, feeds: Arrays, fallbacks: int = 0) -> None:
    for level in LEVELS:
        assert_agree(graph, feeds, level=level, fallbacks=fallbacks)


@few
@given(seed=SEED, dtype=st.sampled_from(["int8", "uint8", "int16"]), op=st.sampled_from(["add", "subtract"]),
       shape=st.sampled_from([(2, 5, 3, 4), (1, 5, 1, 1), (5, 3, 1)]))  # fmt: skip
def test_sums(seed: int, dtype: DType, op: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(seed)
    x, y = some(rng, dtype, (2, 5, 3, 4)), some(rng, dtype, shape)
    qs = {"x": q_of(rng, dtype), "y": q_of(rng, dtype), "z": q_of(rng, dtype)}
    attrs = {"rounding": "tflite_double", "semantics": "tflite"}
    clip = ("clip", "z", "w", {"a_min": -20.0, "a_max": 90.0})
    agree(legal({"x": x, "y": y}, qs | {"w": qs["z"]}, [(f"qnn.{op}", "x y", "z", attrs), clip]), {"x": x, "y": y})


@few
@given(seed=SEED, dtype=st.sampled_from(["int8", "uint8", "int16"]), window=st.tuples(*[st.integers(1, 3)] * 4))
def test_average_pool(seed: int, dtype: DType, window: tuple[int, ...]) -> None:
    rng = np.random.default_rng(seed)
    x, q = some(rng, dtype, (2, int(rng.integers(1, 200)), 6, 5)), q_of(rng, dtype)
    attrs = {"pool_size": window[:2], "strides": window[2:], "padding": (0, 0, window[0] // 2, window[1] // 2)}
    graph = legal({"x": x}, {"x": q, "y": q}, [("qnn.avg_pool2d", "x", "y", attrs | {"semantics": "tflite"})])
    agree(graph, {"x": x})


@few
@given(
    seed=SEED, op=st.sampled_from(["qnn.mean", "qnn.reduce_sum"]), dtype=EIGHT,
    axes=st.sampled_from([(2, 3), (1,), (3,), (1, 3), (0, 2)]), keepdims=st.booleans(),
    shape=st.sampled_from([(2, 70, 6, 5), (1, 7, 40, 3), (2, 1, 6, 5)]),
)  # fmt: skip
def test_means_and_sums(
    seed: int, op: str, dtype: DType, axes: tuple[int, ...], keepdims: bool, shape: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(seed)
    x, qs = some(rng, dtype, shape), {"x": q_of(rng, dtype), "y": q_of(rng, dtype)}
    attrs = {"axes": axes, "keepdims": keepdims, "semantics": "tflite"}
    agree(legal({"x": x}, qs, [(op, "x", "y", attrs)]), {"x": x})


@few
@given(
    seed=SEED, dtype=EIGHT, case=st.sampled_from([((3, 10), -1), ((1, 1001), -1), ((2, 4, 5), -1), ((2, 7, 3, 5), 1)])
)  # fmt: skip
def test_softmax(seed: int, dtype: DType, case: tuple[tuple[int, ...], int]) -> None:
    rng, (shape, axis) = np.random.default_rng(seed), case
    x, out = some(rng, dtype, shape), QParams(1 / 256, np.iinfo(dtype).min, dtype)
    attrs = {"semantics": "tflite"} | ({"axis": axis} if axis != -1 else {})
    agree(legal({"x": x}, {"x": q_of(rng, dtype, -4, 1), "y": out}, [("qnn.softmax", "x", "y", attrs)]), {"x": x})


@few
@given(
    seed=SEED, dtype=EIGHT, case=st.sampled_from([((3, 10), -1), ((1, 1001), -1), ((2, 4, 5), -1), ((2, 7, 3, 5), 1)])
)  # fmt: skip
def test_log_softmax(seed: int, dtype: DType, case: tuple[tuple[int, ...], int]) -> None:
    rng, (shape, axis) = np.random.default_rng(seed), case
    x, out = some(rng, dtype, shape), QParams(1 / 16, np.iinfo(dtype).max, dtype)
    node = ("qnn.log_softmax", "x", "y", {"axis": axis, "semantics": "tflite"})
    agree(legal({"x": x}, {"x": q_of(rng, dtype, -5, 1.5), "y": out}, [node]), {"x": x})


@few
@given(
    seed=SEED, dtype=EIGHT, spread=st.sampled_from([0, 1, 3, 255]),
    case=st.sampled_from([((3, 10), -1), ((1, 40_000), -1), ((2, 4, 5), -1), ((2, 7, 3, 5), 1)]),
)  # fmt: skip
def test_l2_normalize(seed: int, dtype: DType, spread: int, case: tuple[tuple[int, ...], int]) -> None:
    """Rows of nearly nothing, and those whose squares add up to more than 31 bits."""
    rng, (shape, axis) = np.random.default_rng(seed), case
    info, q = np.iinfo(dtype), q_of(rng, dtype)
    near = np.clip(q.zero_point + rng.integers(-spread, spread + 1, shape), info.min, info.max)
    x = np.where(rng.random(shape[:-1])[..., None] < 0.3, q.zero_point, near).astype(dtype)
    out = QParams(1 / 128, (info.min + info.max + 1) // 2, dtype)
    node = ("qnn.l2_normalize", "x", "y", {"axis": axis, "semantics": "tflite"})
    agree(legal({"x": x}, {"x": q, "y": out}, [node]), {"x": x})


@few
@given(
    seed=SEED, spread=st.sampled_from([40, 3000, 2**15]), power=st.integers(-16, -8),
    case=st.sampled_from([((3, 10), -1), ((1, 1001), -1), ((2, 4, 5), -1), ((2, 7, 3, 5), 1), ((2, 1), -1)]),
)  # fmt: skip
def test_softmax_of_16_bits(seed: int, spread: int, power: int, case: tuple[tuple[int, ...], int]) -> None:
    rng, (shape, axis) = np.random.default_rng(seed), case
    x = rng.integers(-spread, spread, shape).astype(np.int16)
    qs = {"x": QParams(2.0**power * rng.uniform(1, 2), 0, "int16"), "y": QParams(2**-15, 0, "int16")}
    attrs = {"semantics": "tflite"} | ({"axis": axis} if axis != -1 else {})
    agree(legal({"x": x}, qs, [("qnn.softmax", "x", "y", attrs)]), {"x": x})


def test_a_softmax_whose_exponentials_are_nothing_is_left_to_the_interpreter() -> None:
    """Their sum has no reciprocal: a kernel would look for its first bit for ever."""
    qs = {"x": QParams(0.1, 3, "int8"), "y": QParams(1 / 256, -128, "int8")}
    graph = legal({"x": np.zeros((1, 5), np.int8)}, qs, [("qnn.softmax", "x", "y", {"semantics": "tflite"})])
    (table,) = graph.constants
    zero = graph.rebound(constants={table: Constant(np.zeros_like(graph.constants[table].array))})
    assert not plan(graph).fallbacks and len(plan(zero).fallbacks) == 1


@few
@given(seed=SEED, dtype=EIGHT, shape=st.sampled_from([(5, 1, 1), (1, 1, 1), (1, 1, 4)]))
def test_prelu(seed: int, dtype: DType, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(seed)
    x, slopes = some(rng, dtype, (2, 5, 3, 4)), some(rng, dtype, shape)
    qs = {name: q_of(rng, dtype) for name in "xay"}
    graph = legal({"x": x}, qs, [("qnn.prelu", "x a", "y", {"semantics": "tflite"})], {"a": slopes})
    agree(graph, {"x": x})


@few
@given(seed=SEED, shape=st.sampled_from([(2, 5, 3, 4), (1, 5, 1, 1), (3, 1)]))
def test_squared_difference(seed: int, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(seed)
    x, y = some(rng, "int8", (2, 5, 3, 4)), some(rng, "int8", shape)
    qs = {"x": q_of(rng, "int8"), "y": q_of(rng, "int8"), "z": q_of(rng, "int8", 0, 1)}
    attrs = {"function": "squared_difference", "semantics": "tflite"}
    agree(legal({"x": x, "y": y}, qs, [("qnn.binary", "x y", "z", attrs)]), {"x": x, "y": y})


@few
@given(seed=SEED, dtype=EIGHT, axis=st.integers(0, 3), known=st.sampled_from(["", "x", "xz"]))
def test_concatenation_of_different_scales(seed: int, dtype: DType, axis: int, known: str) -> None:
    rng = np.random.default_rng(seed)
    feeds = {name: some(rng, dtype, (2, 3, 4, 5)) for name in "xyz"}
    qs = {name: q_of(rng, dtype) for name in "xyz"}
    nodes = [("qnn.concatenate", "x y z", "w", {"axis": axis, "semantics": "tflite"})]
    constants = {name: feeds.pop(name) for name in known}
    agree(legal(feeds, qs | {"w": qs["y"]}, nodes, constants), feeds)


@few
@given(
    seed=SEED, kernel=st.sampled_from([(1, 1), (3, 3)]), depthwise=st.booleans(), channels=st.sampled_from([3, 32, 40])
)
def test_weights_that_8_bits_do_not_hold(seed: int, kernel: tuple[int, int], depthwise: bool, channels: int) -> None:
    """uint8 weights less a zero point reach from -255 to 255."""
    rng = np.random.default_rng(seed)
    x, outputs = some(rng, "uint8", (1, channels, 6, 5)), channels if depthwise else 9
    w = rng.integers(80, 160, (outputs, 1 if depthwise else channels, *kernel)).astype(np.uint8)
    w.flat[rng.integers(0, w.size, 3)] = rng.choice([0, 255], 3)
    qs = {
        "x": q_of(rng, "uint8"),
        "w": QParams(0.01, int(rng.integers(100, 150)), "uint8"),
        "y": q_of(rng, "uint8", 0, 1),
    }
    sums = QParams(qs["x"].scales[0] * 0.01, 0, "int32")
    conv = {"padding": (1, 0, 0, 1), "groups": channels if depthwise else 1}
    nodes = [
        ("qnn.conv2d", "x w", "s", conv), ("nn.bias_add", "s b", "t", {}),
        ("qnn.requantize", "t", "y", {"rounding": "tflite_double"}),
    ]  # fmt: skip
    bias = rng.integers(-5000, 5000, outputs).astype(np.int32)
    graph = legal({"x": x}, qs | {"s": sums, "t": sums}, nodes, {"w": w, "b": bias})
    agree(graph, {"x": x})


@few
@given(seed=SEED, dtype=EIGHT, scale=st.sampled_from([0.5, 0.25, 0.01, 0.0037, 1.5]), units=st.integers(1, 70))
def test_dense_rounded_in_float64(seed: int, dtype: DType, scale: float, units: int) -> None:
    rng = np.random.default_rng(seed)
    x, w = some(rng, dtype, (7, 30)), rng.integers(-127, 128, (units, 30)).astype(np.int8)
    one = QParams(1.0, 3, dtype)
    sums = QParams(scale, 0, "int32")
    nodes = [
        ("qnn.dense", "x w", "s", {}), ("nn.bias_add", "s b", "t", {"axis": 1}),
        ("qnn.requantize", "t", "y", {"rounding": "fp64_away"}),
    ]  # fmt: skip
    qs = {"x": one, "w": QParams(scale, 0, "int8"), "s": sums, "t": sums, "y": QParams(20.0, 5, dtype)}
    bias = rng.integers(-500, 500, units).astype(np.int32)
    agree(legal({"x": x}, qs, nodes, {"w": w, "b": bias}), {"x": x})


def float64_rescaling(multiplier: float) -> Rescaling:
    return Rescaling("fp64_away", *two_parts(np.array([multiplier])), 0, 128, 0, 255, "int8")


def test_a_multiplier_whose_products_float64_rounds_both_ways() -> None:
    assert 5 * 0.7 == 3.5 and 45 * 0.7 < 31.5
    assert in_fixed_point(float64_rescaling(0.7), np.array([2**20])).rounding == "fp64_away"


@pytest.mark.parametrize("multiplier", [0.5, 2.0**-9, 0.001, 1 / 3, 3.0])
def test_a_mantissa_that_rounds_as_float64_does(multiplier: float) -> None:
    found = in_fixed_point(float64_rescaling(multiplier), np.array([2**20]))
    assert found.rounding == "tflite_single"
    acc = np.arange(-(2**20), 2**20)
    wanted = (rescale_float64(acc, np.asarray(multiplier)) + 128).clip(0, 255)
    got = (rescale(acc, found.mantissa[0], found.shift[0], "tflite_single") + 128).clip(0, 255)
    np.testing.assert_array_equal(got, wanted)
