"""Sums, differences, products and concatenations of quantized tensors, over all pairs of codes."""

from __future__ import annotations

import numpy as np
import pytest

from qbench.ir.qparams import QParams
from tests.conformance.exact import all_codes, each, requantized, rescaled, saturate
from tests.conformance.graphs import Array, node, per_axis, q, run

FIXED_POINT = ("tflite_double", "tflite_single", "tvm_upward", "tvm_tonearest")
SCALES = {
    "one set of qparams": (q(0.00784314, 127, "uint8"),) * 3,
    "three sets": (q(0.0235294, 127, "uint8"), q(0.0078431, 120, "uint8"), q(0.0235294, 110, "uint8")),
    "saturating": (q(0.5, 0, "int8"), q(0.5, 3, "int8"), q(0.01, -4, "int8")),
    "signed, wide apart": (q(0.9, -20, "int8"), q(0.0031, 40, "int8"), q(0.4, 7, "int8")),
    "multipliers above one": (q(0.9, 1, "int8"), q(0.7, 2, "int8"), q(0.11, 3, "int8")),
}


def pairs(lhs: QParams, rhs: QParams) -> tuple[Array, Array]:
    a, b = all_codes(lhs.dtype), all_codes(rhs.dtype)[::3]
    return np.repeat(a, len(b))[None], np.tile(b, len(a))[None]


@pytest.mark.parametrize("mode", ["tvm_upward", "tvm_tonearest"])
@pytest.mark.parametrize("op", ["qnn.add", "qnn.subtract"])
@pytest.mark.parametrize("case", SCALES)
def test_sums_round_each_operand(case: str, op: str, mode: str) -> None:
    lhs, rhs, out = SCALES[case]
    a, b = pairs(lhs, rhs)
    got = run([node(op, ["a", "b"], "y", rounding=mode)], {"a": a, "b": b}, {"a": lhs, "b": rhs, "y": out})
    sign = 1 if op == "qnn.add" else -1
    parts = [
        each(lambda v, part=part: rescaled(v - part.zero_points[0], part.scales[0] / out.scales[0], mode), codes)
        for part, codes in ((lhs, a), (rhs, b))
    ]
    want = each(lambda x, y: saturate(x + sign * y + out.zero_points[0], out.dtype), *parts)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("mode", FIXED_POINT)
@pytest.mark.parametrize("case", SCALES)
def test_products(case: str, mode: str) -> None:
    lhs, rhs, out = SCALES[case]
    a, b = pairs(lhs, rhs)
    product = lhs.scales[0] * rhs.scales[0]
    steps = [node("qnn.multiply", ["a", "b"], "acc"), node("qnn.requantize", ["acc"], "y", rounding=mode)]
    got = run(steps, {"a": a, "b": b}, {"a": lhs, "b": rhs, "acc": q(product, 0, "int32"), "y": out})
    real, zero_point = product / out.scales[0], out.zero_points[0]
    acc = (a.astype(np.int64) - lhs.zero_points[0]) * (b.astype(np.int64) - rhs.zero_points[0])
    known = {value: requantized(value, real, zero_point, out.dtype, mode) for value in np.unique(acc).tolist()}
    np.testing.assert_array_equal(got, each(known.__getitem__, acc))


@pytest.mark.parametrize("mode", FIXED_POINT)
def test_product_with_a_constant_per_channel(mode: str) -> None:
    x = np.random.default_rng(0).integers(-128, 128, (2, 3, 4, 4)).astype(np.int8)
    w = np.array([100, -128, 3], np.int8).reshape(3, 1, 1)
    scales, out = (0.01, 0.2, 1.5), q(0.05, 11)
    weight = per_axis(scales, 0)
    sums = per_axis([0.03 * s for s in weight.scales], 1, "int32")
    steps = [node("qnn.multiply", ["x", "w"], "acc"), node("qnn.requantize", ["acc"], "y", rounding=mode)]
    qparams = {"x": q(0.03, -5), "w": weight, "acc": sums, "y": out}
    got = run(steps, {"x": x}, qparams, {"w": w})
    for c in range(3):
        real = sums.scales[c] / out.scales[0]
        factor = int(w[c, 0, 0])
        want = each(lambda v, r=real, f=factor: requantized((v + 5) * f, r, 11, "int8", mode), x[:, c])
        np.testing.assert_array_equal(got[:, c], want)


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
@pytest.mark.parametrize("mode", FIXED_POINT)
@pytest.mark.parametrize("same", [True, False])
def test_concatenation(axis: int, mode: str, same: bool) -> None:
    rng = np.random.default_rng(axis)
    sources = [q(0.05, 10, "uint8")] * 3 if same else [q(0.05, 10, "uint8"), q(0.11, 99, "uint8"), q(0.013, 0, "uint8")]
    target = sources[0]
    shapes = [tuple(size if i == axis else 2 for i in range(4)) for size in (1, 2, 3)]
    feeds = {f"x{i}": rng.integers(0, 256, shape).astype(np.uint8) for i, shape in enumerate(shapes)}
    steps, parts, wants = [], [], []
    for (name, array), source in zip(feeds.items(), sources, strict=True):
        part = name if source == target else f"{name}.for.y"
        if part != name:
            steps.append(node("qnn.requantize", [name], part, rounding=mode))
        parts.append(part)
        real = source.scales[0] / target.scales[0]
        zero = source.zero_points[0]
        wants.append(each(lambda v, r=real, z=zero: requantized(v - z, r, 10, "uint8", mode), array))
    steps.append(node("concatenate", parts, "y", axis=axis))
    qparams = (
        dict(zip(feeds, sources, strict=True))
        | dict.fromkeys([*parts, "y"], target)
        | dict(zip(feeds, sources, strict=True))
    )
    np.testing.assert_array_equal(run(steps, feeds, qparams), np.concatenate(wants, axis))
