"""Functions of one element, as tables over all codes: each entry is the quantized value of the function, in float64.

qbench fills its tables in float32. Where the exact value lies within a thousandth of a step of a tie, float32 cannot
tell on which side; there, and only there, either neighbour is right.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.conformance.exact import all_codes, saturate
from tests.conformance.graphs import node, q, run


def gelu(x: float) -> float:
    return 0.5 * x * (1 + math.erf(x / math.sqrt(2)))


FUNCTIONS = {
    # op: (function, input scale, input zero point at the type's middle + this, output scale)
    "sigmoid": (lambda x: 1 / (1 + math.exp(-x)), 0.05, 0, 1 / 256),
    "tanh": (math.tanh, 0.03, 3, 1 / 128),
    "exp": (math.exp, 0.02, 0, 0.05),
    "erf": (math.erf, 0.02, -7, 1 / 128),
    "sqrt": (math.sqrt, 0.1, -128, 0.02),
    "log": (math.log, 0.1, -129, 0.03),
    "abs": (abs, 0.05, 10, 0.0371),
    "negative": (lambda x: -x, 0.05, 10, 0.0371),
    "floor": (math.floor, 0.05, 1, 0.06),
    "ceil": (math.ceil, 0.05, 1, 0.06),
    "sin": (math.sin, 0.05, 0, 1 / 127),
    "cos": (math.cos, 0.05, 0, 1 / 127),
    "reciprocal": (lambda x: 1 / x, 0.1, -129, 0.1),
    "nn.hard_swish": (lambda x: x * min(max(x + 3, 0), 6) / 6, 0.05, 0, 0.0317),
    "nn.hard_sigmoid": (lambda x: min(max(0.2 * x + 0.5, 0), 1), 0.05, 0, 1 / 255),
    "nn.leaky_relu": (lambda x: x if x >= 0 else 0.01 * x, 0.05, 20, 0.03),
    "nn.elu": (lambda x: x if x >= 0 else math.expm1(x), 0.05, 20, 0.03),
    "nn.gelu": (gelu, 0.03, 0, 0.02),
    "nn.silu": (lambda x: x / (1 + math.exp(-x)), 0.05, 0, 0.03),
    "nn.softplus": (lambda x: math.log1p(math.exp(-abs(x))) + max(x, 0), 0.05, 0, 0.03),
}
UNDECIDED = 1e-3


@pytest.mark.parametrize("types", [("int8", "int8"), ("uint8", "uint8"), ("int8", "uint8")], ids="-".join)
@pytest.mark.parametrize("op", FUNCTIONS)
def test_every_code(op: str, types: tuple[str, str]) -> None:
    function, scale, offset, out_scale = FUNCTIONS[op]
    codes = all_codes(types[0])
    middle = 128 if types[0] == "uint8" else 0
    source = q(scale, min(max(middle + offset, int(codes[0])), int(codes[-1])), types[0])
    target = q(out_scale, 100 if types[1] == "uint8" else -17, types[1])
    got = run([node("qnn.unary", ["x"], "y", function=op)], {"x": codes[None]}, {"x": source, "y": target})[0]
    undecided = 0
    for code, result in zip(codes.tolist(), got.tolist(), strict=True):
        x = float(np.float32(code - source.zero_points[0]) * np.float32(source.scales[0]))
        try:
            exact = function(x) / target.scales[0]
        except (ValueError, ZeroDivisionError):  # outside of its domain: the nearest entry that is inside stands there
            continue
        nearest = {
            saturate(math.floor(exact + side * UNDECIDED + 0.5) + target.zero_points[0], types[1]) for side in (-1, 1)
        }
        assert result in nearest, (code, x, exact)
        undecided += len(nearest) > 1
    assert undecided <= 8


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_prelu_has_a_table_for_each_channel(dtype: str) -> None:
    codes = np.tile(all_codes(dtype), (1, 3, 1))
    source, target = q(0.05, 3 if dtype == "int8" else 131, dtype), q(0.04, 0 if dtype == "int8" else 90, dtype)
    slopes = (0.1, 0.25, -0.5)
    steps = [node("qnn.unary", ["x"], "y", function="nn.prelu", slopes=slopes, axis=1)]
    got = run(steps, {"x": codes}, {"x": source, "y": target})
    for channel, slope in enumerate(slopes):
        for code, result in zip(codes[0, channel].tolist(), got[0, channel].tolist(), strict=True):
            x = float(np.float32(code - source.zero_points[0]) * np.float32(source.scales[0]))
            exact = (x if x >= 0 else x * slope) / target.scales[0]
            near = {
                saturate(math.floor(exact + e + 0.5) + target.zero_points[0], dtype) for e in (-UNDECIDED, UNDECIDED)
            }
            assert result in near
