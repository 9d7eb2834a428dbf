"""Elementwise steps as programs, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbench.ir.graph import Graph
from qbench.ir.qparams import QParams
from qbench.kernels.isa import ISAS
from qbench.ops.integer.prelu import prelu_multipliers
from qbench.quant.rounding import FIXED_POINT
from qbench.runtime.programs import plan
from tests.runtime.lowerings.graphs import LEVELS, check, graph_of, numbers

SHAPES = st.sampled_from([(1, 3, 5, 7), ("N", 3, 8, 9), (2, 17, 4, 3), (3, 10), ("N", 65), (4, 3, 2), (6,)])
SEED = st.integers(0, 2**31)
ONCE = ["tflite_single", "pow2_half_even"]
DTYPE = st.sampled_from(["int8", "uint8", "int16"])
THREE = st.sampled_from(
    [("int8", "uint8", "uint8"), ("uint8", "int8", "int16"), ("int16", "uint8", "int8"), ("uint8", "int16", "int16")]
)
"""Types of two operands and of the result: each width beside each other."""


def scaled(dtype: str, seed: int, axis: int | None = None, channels: int = 1) -> QParams:
    random = np.random.default_rng(seed)
    zeros = random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, channels, endpoint=True).tolist()
    scales = (random.random(channels) * 0.1 + 0.001).tolist()
    if axis is None:
        return QParams(scales[0], zeros[0], dtype)
    return QParams(tuple(scales), tuple(zeros), dtype, axis)


@given(shape=SHAPES, dtype=DTYPE, seed=SEED, ties=st.sampled_from(["even", "away"]))
def test_quantize_and_dequantize(shape, dtype, seed, ties) -> None:
    q = scaled(dtype, seed)
    graph = graph_of(
        {"x": ("float32", shape)},
        ("qnn.quantize", "x", "q", {"ties": ties}),
        ("qnn.dequantize", "q", "y", {}),
        qparams={"q": q},
        outputs=["q", "y"],
    )
    check(graph, seed)


@given(shape=SHAPES, dtype=st.sampled_from(["int8", "uint8", "int16", "int32"]), seed=SEED, data=st.data())
def test_dequantize_along_an_axis(shape, dtype, seed, data) -> None:
    axis = data.draw(st.sampled_from([i for i, size in enumerate(shape) if isinstance(size, int)]))
    small = np.dtype("int8") if dtype == "int32" else np.dtype(dtype)
    q = scaled(small.name, seed, axis, shape[axis])
    q = QParams(q.scale, q.zero_point, dtype, axis)
    check(graph_of({"x": (dtype, shape)}, ("qnn.dequantize", "x", "y", {}), qparams={"x": q}), seed)


def broadcast_to(shape, data) -> tuple:
    other = tuple(1 if isinstance(size, int) and data.draw(st.booleans()) else size for size in shape)
    return other if isinstance(shape[0], str) else other[data.draw(st.integers(0, len(other) - 1)) :]


@given(shape=SHAPES, dtypes=THREE, seed=SEED, per_operand=st.booleans(), data=st.data())
def test_add(shape, dtypes, seed, per_operand, data) -> None:
    random = np.random.default_rng(seed)
    attrs = {
        "mantissa": tuple(random.integers(2**29, 2**31, 2).tolist()), "shift": (int(random.integers(-8, 4)),) * 2,
        "zero_points": tuple(int(numbers(seed, dtype, ())) for dtype in dtypes[:2]),
        "zero_point": int(numbers(seed, dtypes[2], ())), "dtype": dtypes[2], "per_operand": per_operand,
        "rounding": data.draw(st.sampled_from(sorted(FIXED_POINT) if per_operand else ONCE)),
    }  # fmt: skip
    shapes = (shape, broadcast_to(shape, data))
    constant = data.draw(st.booleans()) and not isinstance(shapes[1][0], str)
    inputs = dict(zip("xy", zip(dtypes[:2], shapes, strict=True), strict=True))
    constants = {"y": numbers(seed + 1, *inputs.pop("y"))} if constant else {}
    clip = ("clip", "sum", "z", {"a_min": -20.0, "a_max": 60.0})
    check(graph_of(inputs, ("integer.add", "x y", "sum", attrs), clip, constants=constants), seed)


WIDE = st.sampled_from(
    [
        ((2, 4, 8, 7, 5), (1, 8, 7, 5)), ((2, 9, 3, 5, 5), (1, 9, 1, 5, 5)), ((2, 2, 3, 4, 5), (1,)),
        ((3, 2, 3, 2, 3, 2), (1, 2, 1, 2, 1, 2)), ((2, 3, 1, 4, 1, 5), (2, 3, 2, 4, 3, 5)),
    ]
)  # fmt: skip


@given(shapes=WIDE, dtype=st.sampled_from(["uint8", "int16", "float32", "int64"]), seed=SEED, constant=st.booleans())
def test_add_of_more_axes_than_four(shapes, dtype, seed, constant) -> None:
    """As windows of attention and their bias; the first operand is a part of more, and the sum becomes one."""
    whole = (*shapes[0][:-1], shapes[0][-1] + 3)
    inputs = {"x": (dtype, whole), **({} if constant else {"y": (dtype, shapes[1])})}
    cut = {"begin": (2,), "end": (whole[-1] - 1,), "axes": (len(whole) - 1,), "strides": (1,)}
    part = ("strided_slice", "x", "part", cut)
    attrs = {
        "mantissa": (3 << 29, 5 << 28), "shift": (0, 0), "zero_points": (3, -1), "zero_point": 7, "dtype": dtype,
        "per_operand": False, "rounding": "tflite_single",
    }  # fmt: skip
    add = ("integer.add", "part y", "sum", attrs) if dtype in ("uint8", "int16") else ("add", "part y", "sum", {})
    constants = {"y": numbers(seed + 1, dtype, shapes[1])} if constant else None
    check(graph_of(inputs, part, add, ("concatenate", "sum sum", "z", {"axis": -1}), constants=constants), seed)


@given(shape=SHAPES, dtypes=THREE, seed=SEED, data=st.data())
def test_add_float32(shape, dtypes, seed, data) -> None:
    attrs = {
        "multipliers": tuple(data.draw(st.floats(-3, 3, width=32)) for _ in range(2)),
        "zero_points": tuple(int(numbers(seed, dtype, ())) for dtype in dtypes[:2]),
        "zero_point": int(numbers(seed, dtypes[2], ())), "dtype": dtypes[2],
    }  # fmt: skip
    inputs = {"x": (dtypes[0], shape), "y": (dtypes[1], broadcast_to(shape, data))}
    check(graph_of(inputs, ("integer.add_float32", "x y", "sum", attrs)), seed)


@given(shape=SHAPES, dtypes=st.tuples(DTYPE, DTYPE), seed=SEED, data=st.data())
def test_table(shape, dtypes, seed, data) -> None:
    axes = [None, *(i for i, size in enumerate(shape) if isinstance(size, int))]
    axis = data.draw(st.sampled_from(axes))
    entries = 2 ** (8 * np.dtype(dtypes[0]).itemsize)
    table = numbers(seed, dtypes[1], (entries,) if axis is None else (shape[axis], entries))
    attrs = {} if axis is None else {"axis": axis}
    nodes = [("integer.table", "x t", "y", attrs)]
    constants = {"t": table}
    if data.draw(st.booleans()) and (axis is None or len(shape) > 1):
        result, zero = data.draw(DTYPE), int(numbers(seed, dtypes[1], ()))
        constants |= {"m": np.full((1,), 3 << 29, np.int32), "s": np.full((1,), -1, np.int32)}
        attrs = {"dtype": result, "data_zero_point": zero, "rounding": "tflite_single"}
        nodes.append(("integer.requantize", "y m s", "z", attrs))
    check(graph_of({"x": (dtypes[0], shape)}, *nodes, constants=constants), seed)


@given(
    shape=SHAPES | st.just((2, 3, 2, 3, 4)), dtypes=st.tuples(DTYPE, DTYPE), seed=SEED, turned=st.booleans(),
    data=st.data(),
)  # fmt: skip
def test_prelu(shape, dtypes, seed, turned, data) -> None:
    """In the order of its axes, and as an input with channels last gives it."""
    axis = data.draw(st.sampled_from([None, *(i for i, size in enumerate(shape) if isinstance(size, int))]))
    slopes = np.random.default_rng(seed).normal(size=1 if axis is None else shape[axis]).astype(np.float32)
    zeros = [int(numbers(seed, dtype, ())) for dtype in dtypes]
    attrs = {"data_zero_point": zeros[0], "zero_point": zeros[1], "dtype": dtypes[1]}
    attrs |= {} if axis is None else {"axis": axis}
    turned = turned and len(shape) > 1
    whole, nodes = shape, [("integer.prelu", "t m s" if turned else "x m s", "y", attrs)]
    if turned:
        whole = (shape[0], *shape[2:], shape[1])
        nodes.insert(0, ("transpose", "x", "t", {"axes": (0, len(shape) - 1, *range(1, len(shape) - 1))}))
    mantissa, shift = prelu_multipliers(0.77, slopes)
    check(graph_of({"x": (dtypes[0], whole)}, *nodes, constants={"m": mantissa, "s": shift}), seed)


@given(shape=SHAPES, dtype=st.sampled_from(["int8", "uint8"]), result=DTYPE, seed=SEED, data=st.data())
def test_requantize_of_eight_bits(shape, dtype, result, seed, data) -> None:
    rounding = data.draw(st.sampled_from(sorted(FIXED_POINT)))
    axis = data.draw(st.sampled_from([None, *(i for i, size in enumerate(shape) if isinstance(size, int))]))
    sizes = [size if i == axis else 1 for i, size in enumerate(shape)]
    random = np.random.default_rng(seed)
    constants = {
        "m": random.integers(2**30, 2**31, sizes).astype(np.int32),
        "s": random.integers(-6, 3, sizes).astype(np.int32),
    }
    attrs = {
        "dtype": result, "zero_point": int(numbers(seed, result, ())), "data_zero_point": int(numbers(seed, dtype, ())),
        "rounding": rounding,
    }  # fmt: skip
    graph = graph_of(
        {"x": (dtype, shape)},
        ("integer.requantize", "x m s", "narrow", attrs),
        ("nn.relu", "narrow", "y", {}),
        constants=constants,
    )
    check(graph, seed)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_clip(dtype) -> None:
    check(graph_of({"x": (dtype, (2, 5, 4, 3))}, ("clip", "x", "y", {"a_min": -3.0, "a_max": 7.0})))


@pytest.mark.parametrize("shape", [(2, 5, 4, 3), ("N", 3, 8)])
@pytest.mark.parametrize("head", ["integer.multiply", "integer.requantize"])
@settings(max_examples=10)
@given(seed=SEED, dtype=st.sampled_from(["int8", "uint8"]))
def test_a_bias_for_each_channel_makes_tables(head, shape, seed, dtype) -> None:
    random = np.random.default_rng(seed)
    column = (shape[1], *(1 for _ in shape[2:]))
    constants = {
        "w": random.integers(-127, 128, column, np.int8), "b": random.integers(-9999, 9999, shape[1]).astype(np.int32),
        "m": random.integers(2**30, 2**31, column).astype(np.int32),
        "s": random.integers(-12, -5, column).astype(np.int32),
        "one": np.full((1,) * len(shape), 2**30, np.int32), "more": np.full((1,) * len(shape), 8, np.int32),
    }  # fmt: skip
    zero, narrow = int(numbers(seed, dtype, ())), {"dtype": dtype, "zero_point": 3, "rounding": "tflite_single"}
    widen = {"dtype": "int32", "data_zero_point": zero, "rounding": "tflite_single"}
    first = {
        "integer.multiply": (head, "x w", "wide", {"lhs_zero_point": zero}),
        "integer.requantize": (head, "x one more", "wide", widen),
    }[head]
    rest = ("nn.bias_add", "wide b", "sum", {}), ("integer.requantize", "sum m s", "y", narrow)
    graph = graph_of({"x": (dtype, shape)}, first, *rest, constants=constants)
    check(graph, seed)
    assert sum(bool(step.nodes) for step in plan(graph).steps) == 1


def lines_of_channels(seed: int, dtype: str) -> Graph:
    random, zero = np.random.default_rng(seed), int(numbers(seed, dtype, ()))
    constants = {
        "w": random.integers(-127, 128, 24, np.int8), "b": random.integers(-9999, 9999, 24).astype(np.int32),
        "m": random.integers(2**30, 2**31, 24).astype(np.int32), "s": random.integers(-9, -5, 24).astype(np.int32),
    }  # fmt: skip
    first = ("integer.multiply", "x w", "wide", {"lhs_zero_point": zero}), ("nn.bias_add", "wide b", "sum", {})
    rest = "integer.requantize", "sum m s", "y", {"dtype": dtype, "zero_point": 3, "rounding": "tflite_single"}
    return graph_of({"x": (dtype, ("N", 24))}, *first, rest, constants=constants)


@settings(max_examples=20)
@given(seed=SEED, dtype=st.sampled_from(["int8", "uint8"]))
def test_a_line_for_each_of_many_channels(seed, dtype) -> None:
    check(lines_of_channels(seed, dtype), seed)


def prelu_of_channels(channels: int, pixels: int) -> Graph:
    return prelu_along(("N", pixels, channels), 2)


def prelu_along(shape: tuple[int | str, ...], axis: int) -> Graph:
    slopes = np.random.default_rng(0).uniform(-0.3, 0.5, shape[axis])
    reals = np.arange(-128, 128) * 0.04
    table = np.clip(np.rint(np.where(reals >= 0, reals, reals * slopes[:, None]) / 0.031), -128, 127).astype(np.int8)
    return graph_of({"x": ("int8", shape)}, ("integer.table", "x t", "y", {"axis": axis}), constants={"t": table})


@pytest.mark.parametrize(("channels", "pixels"), [(16, 30), (24, 7), (600, 3)])
def test_two_lines_for_each_channel(channels: int, pixels: int) -> None:
    check(prelu_of_channels(channels, pixels))


@pytest.mark.parametrize(
    ("shape", "axis"), [((600, 1), 0), ((1031, 1), 0), ((3, 600, 1), 1), ((1, 700, 1, 1), 1), ((700, 1, 1), 0)]
)
def test_channels_may_have_axes_of_one_behind_them(shape: tuple[int, ...], axis: int) -> None:
    """As a detector's boxes have that are scaled by the size of each anchor."""
    check(prelu_along(shape, axis))


@pytest.mark.parametrize("level", [level for level in LEVELS if level.vectors in ISAS])
def test_they_are_no_tables(level) -> None:
    for graph in (lines_of_channels(0, "int8"), prelu_of_channels(16, 30)):
        names = [one.kernel.name for step in plan(graph, level=level).steps for one in step.instructions]
        assert any(name.startswith("lines") for name in names), names


def test_many_axes_are_walked_along_the_long_ones() -> None:
    """As points around which a deformable detector looks."""
    inputs = {"a": ("float32", (1, 100, 1, 4, 1, 2)), "b": ("float32", (1, 100, 8, 4, 3, 2))}
    check(graph_of(inputs, ("add", "a b", "y", {})))
