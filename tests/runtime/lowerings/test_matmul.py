"""Matrix products of activations as programs, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbench.ir.qparams import QParams
from qbench.quant.rounding import ROUNDINGS
from qbench.runtime import interpreter
from qbench.runtime.programs import plan
from tests.runtime.lowerings.graphs import LEVELS, check, graph_of, numbers, requantize

TYPES = (
    ("int8", "int8", "int8"), ("uint8", "int8", "uint8"), ("int16", "int16", "int16"), ("int8", "int16", "uint8"),
    ("int16", "uint8", "int8"), ("uint8", "uint8", "int16"),
)  # fmt: skip
MODES = [None, *ROUNDINGS[1:]]
KINDS = [(types, MODES[i % len(MODES)]) for i, types in enumerate(TYPES)]
"""Types of both factors and of the result, each with one rounding."""


@settings(max_examples=60)
@given(
    kind=st.sampled_from(KINDS), turned=st.tuples(st.booleans(), st.booleans()), seed=st.integers(0, 2**31),
    batch=st.sampled_from([((), ()), (("N",), ("N",)), ((2, 3), (3,)), ((2, 1), (2, 3)), ((), (4,))]),
    sizes=st.sampled_from([(4, 5, 7), (9, 34, 40), (1, 8, 16), (33, 130, 70), (70, 64, 17)]),
    accumulator=st.sampled_from(["int32", "int64"]),
    constant=st.booleans(), real=st.booleans(), ends=st.booleans(),
)  # fmt: skip
def test_batch_matmul(kind, turned, seed, batch, sizes, accumulator, constant, real, ends) -> None:
    dtypes, rounding = kind
    rows, depth, columns = sizes
    a, b = (*batch[0], rows, depth), (*batch[1], depth, columns)
    zeros = [0 if dtype == "int16" and seed % 2 else int(numbers(seed, dtype, ())) for dtype in dtypes[:2]]
    if ends and dtypes[1] != "int16":  # the least number, or the middle
        zeros[1] = {"uint8": 0, "int8": -128}[dtypes[1]] + 128 * (seed % 2)
    accumulator = "int64" if "int16" in dtypes[:2] else accumulator
    a, b = ((*s[:-2], s[-1], s[-2]) if turn else s for s, turn in zip((a, b), turned, strict=True))
    attrs = {
        "transpose_lhs": turned[0], "transpose_rhs": turned[1], "lhs_zero_point": zeros[0],
        "rhs_zero_point": zeros[1], "accumulator": accumulator,
    }  # fmt: skip
    inputs, constants = {"a": (dtypes[0], a), "b": (dtypes[1], b)}, {}
    if constant and "N" not in b:
        constants["b"] = numbers(seed + 1, *inputs.pop("b"))
    nodes, more = requantize("sums", "y", rounding, dtypes[2], seed, ())
    made, qparams = [("integer.batch_matmul", "a b", "sums", attrs), *nodes], {}
    if real and (nodes or accumulator == "int32"):
        zero_point = nodes[0][3]["zero_point"] if nodes else 0
        qparams[made[-1][2]] = QParams(0.0123, zero_point, dtypes[2] if nodes else "int32")
        made.append(("qnn.dequantize", made[-1][2], "real", {}))
    graph = graph_of(inputs, *made, constants={**constants, **more}, qparams=qparams)
    check(graph, seed)


@pytest.mark.parametrize("rows", [4, 40])
def test_bias_along_the_columns(rows: int) -> None:
    attrs = {"accumulator": "int32", "lhs_zero_point": 3}
    nodes, constants = requantize("biased", "y", "tflite_single", "int8", 1, ())
    bias = np.arange(37, dtype=np.int32) * 1000
    graph = graph_of(
        {"a": ("int8", (2, rows, 5)), "b": ("int8", (2, 5, 37))},
        ("integer.batch_matmul", "a b", "sums", attrs),
        ("nn.bias_add", "sums bias", "biased", {"axis": 2}),
        *nodes,
        constants={"bias": bias, **constants},
    )
    check(graph)


def test_sums_of_many_large_16_bit_products() -> None:
    depth = 1100  # the bytes of one side times the other exceed 32 bits twice
    random = np.random.default_rng(0).integers(-(2**15), 2**15, depth)
    matrix = np.array([np.full(depth, -(2**15)), np.full(depth, 2**15 - 1), random], np.int16)
    attrs = {"accumulator": "int64", "transpose_rhs": True}
    nodes, constants = requantize("sums", "y", "tflite_single", "int16", 1, ())
    constants |= {"y.shift": np.array(-27, np.int32), "b": matrix}
    sums = ("integer.batch_matmul", "a b", "sums", attrs)
    graph = graph_of({"a": ("int16", (3, depth))}, sums, *nodes, constants=constants)
    wanted = interpreter.run(graph, {"a": matrix})["y"]
    assert len(np.unique(wanted)) > 3
    for level in LEVELS:
        np.testing.assert_array_equal(plan(graph, level=level).run(matrix)["y"], wanted)
