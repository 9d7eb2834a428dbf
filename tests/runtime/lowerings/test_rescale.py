"""Requantize and multiply as programs, against the interpreter."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from qbench.quant.rounding import ROUNDINGS
from tests.runtime.lowerings.graphs import check, graph_of, numbers, requantize
from tests.runtime.lowerings.test_elements import DTYPE, SEED, SHAPES, broadcast_to

MODES = st.sampled_from(ROUNDINGS)
EIGHT_BITS = st.sampled_from(["uint8", "int8"])


@settings(max_examples=60)
@given(shape=SHAPES, dtype=st.sampled_from(["int16", "int32"]), result=DTYPE, seed=SEED, rounding=MODES, data=st.data())
def test_requantize(shape, dtype, result, seed, rounding, data) -> None:
    axis = data.draw(st.sampled_from([None, *(i for i, size in enumerate(shape) if isinstance(size, int))]))
    nodes, constants = requantize("x", "narrow", rounding, result, seed, shape, axis)
    clip = ("clip", "narrow", "y", {"a_min": -20.0, "a_max": 60.0})
    check(graph_of({"x": (dtype, shape)}, *nodes, clip, constants=constants), seed)


@settings(max_examples=60)
@given(
    shape=SHAPES, dtypes=st.tuples(DTYPE, DTYPE, DTYPE), seed=SEED, rounding=st.none() | MODES, data=st.data(),
)  # fmt: skip
def test_multiply(shape, dtypes, seed, rounding, data) -> None:
    shapes = (shape, broadcast_to(shape, data))
    attrs = {"lhs_zero_point": int(numbers(seed, dtypes[0], ()))}
    attrs |= {"rhs_zero_point": int(numbers(seed, dtypes[1], ())), "accumulator": "int64"}
    inputs = dict(zip("xy", zip(dtypes[:2], shapes, strict=True), strict=True))
    constants = {}
    if data.draw(st.booleans()) and not isinstance(shapes[1][0], str):
        constants["y"] = numbers(seed + 1, *inputs.pop("y"))
        if data.draw(st.booleans()) and dtypes[1] != "int16":
            axis = data.draw(st.integers(0, len(shapes[1]) - 1))
            zeros = numbers(seed, dtypes[1], shapes[1][axis : axis + 1])
            attrs |= {"rhs_zero_point": tuple(zeros.tolist()), "rhs_axis": axis}
    wide = "int16" in dtypes[:2] and rounding == "tflite_double"  # its accumulators have 32 bits
    nodes, more = requantize("z", "narrow", "tvm_upward" if wide else rounding, dtypes[2], seed, shape)
    graph = graph_of(inputs, ("integer.multiply", "x y", "z", attrs), *nodes, constants={**constants, **more})
    check(graph, seed)


@settings(max_examples=40)
@given(
    shapes=st.sampled_from(
        [((2, 3, 70), (2, 3, 70)), ((200,), (200,)), ((4, 5, 33), (33,)), ((2, 3, 65), (2, 1, 65)), ((9, 40), ())]
    ),
    dtypes=st.tuples(EIGHT_BITS, EIGHT_BITS, EIGHT_BITS), seed=SEED, constant=st.booleans(),
    rounding=MODES, threads=st.integers(1, 3),
)  # fmt: skip
def test_products_of_codes(shapes, dtypes, seed, constant, rounding, threads) -> None:
    zeros = [int(numbers(seed, dtype, ())) for dtype in dtypes[:2]]
    attrs = {"lhs_zero_point": zeros[0], "rhs_zero_point": zeros[1], "accumulator": "int32"}
    inputs = dict(zip("xy", zip(dtypes[:2], shapes, strict=True), strict=True))
    constants = {"y": numbers(seed + 1, *inputs.pop("y"))} if constant else {}
    nodes, more = requantize("z", "narrow", rounding, dtypes[2], seed, (1,))
    graph = graph_of(inputs, ("integer.multiply", "x y", "z", attrs), *nodes, constants={**constants, **more})
    check(graph, seed, threads=threads)


FIVE_AXES = st.sampled_from(
    [
        ((2, 3, 2, 3, 5), (2, 3, 2, 3, 5)),
        ((2, 3, 2, 3, 5), (2, 1, 2, 1, 5)),
        ((2, 3, 4, 2, 33), (4, 1, 33)),
        ((2, 2, 3, 2, 3, 4), (1, 2, 1, 2, 1, 4)),
    ]
)


@settings(max_examples=60)
@given(shapes=FIVE_AXES, dtypes=st.tuples(DTYPE, DTYPE, DTYPE), seed=SEED, rounding=MODES, data=st.data())
def test_products_of_five_axes(shapes, dtypes, seed, rounding, data) -> None:
    zeros = [int(numbers(seed, dtype, ())) for dtype in dtypes[:2]]
    attrs = {"lhs_zero_point": zeros[0], "rhs_zero_point": zeros[1], "accumulator": "int64"}
    inputs = dict(zip("xy", zip(dtypes[:2], shapes, strict=True), strict=True))
    wide = "int16" in dtypes[:2] and rounding == "tflite_double"
    axis = data.draw(st.none() | st.integers(0, len(shapes[0]) - 1))
    nodes, more = requantize("z", "narrow", "tvm_upward" if wide else rounding, dtypes[2], seed, shapes[0], axis)
    check(graph_of(inputs, ("integer.multiply", "x y", "z", attrs), *nodes, constants=more), seed)


@settings(max_examples=40)
@given(shapes=FIVE_AXES, dtype=st.sampled_from(["int8", "int16", "int32"]), result=DTYPE, seed=SEED, data=st.data())
def test_requantize_of_five_axes(shapes, dtype, result, seed, data) -> None:
    axis = data.draw(st.none() | st.integers(0, len(shapes[0]) - 1))
    nodes, constants = requantize("x", "y", data.draw(MODES), result, seed, shapes[0], axis)
    check(graph_of({"x": (dtype, shapes[0])}, *nodes, constants=constants), seed)
