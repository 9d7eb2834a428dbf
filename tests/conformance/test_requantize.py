"""qnn.requantize: every mode against fractions, in the cases of TVM's tests of it and at the edges of each type."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance.exact import MODES, RANGES, each, requantized
from tests.conformance.graphs import Array, node, per_axis, q, run

CASES = {
    # name: (input scale, output scale, output zero point, accumulators)
    "same scale": (0.5, 0.5, 0, range(-200, 200)),
    "downscale by 16": (1.0, 16.0, 0, range(-300, 300)),
    "downscale, ties": (1.0, 2.0, 0, range(-600, 600)),
    "upscale by 16": (16.0, 1.0, 0, range(-30, 30)),
    "not a power of two, down": (1.0, 3.0, 0, range(-400, 400)),
    "not a power of two, up": (3.0, 1.0, 0, range(-60, 60)),
    "saturation": (0.5, 0.5, 0, (-(2**31), -129, -128, 127, 128, 2**31 - 1)),
    "zero point of the output": (1.0, 16.0, -1, range(-300, 300)),
    "multiplier just below one": (math.nextafter(1.0, 0), 1.0, 0, range(-200, 200)),
    "mantissa that rounds up to 2^31": (1 - 2.0**-33, 1.0, 0, range(-200, 200)),
    "tiny multiplier": (2.0**-40, 1.0, 3, (-(2**31), -1, 0, 1, 2**31 - 1)),
    "huge multiplier": (2.0**20, 1.0, 3, (-(2**31), -5, -1, 0, 1, 5, 2**31 - 1)),
}


def check(acc: Array, scale: float, out: float, zero_point: int, dtype: str, mode: str) -> None:
    steps = [node("qnn.requantize", ["x"], "y", rounding=mode)]
    got = run(steps, {"x": acc}, {"x": q(scale, 0, acc.dtype.name), "y": q(out, zero_point, dtype)})
    source, target = q(scale, 0, acc.dtype.name).scales[0], q(out, zero_point, dtype).scales[0]
    real = float(np.float32(source) / np.float32(target)) if mode == "fp32_rne" else source / target
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, each(lambda x: requantized(x, real, zero_point, dtype, mode), acc))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES)
def test_accumulators(case: str, mode: str, dtype: str) -> None:
    scale, out, zero_point, values = CASES[case]
    if zero_point < RANGES[dtype][0]:
        zero_point = -zero_point
    check(np.array([values], np.int32), scale, out, zero_point, dtype, mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "dtypes", [("int8", "int8"), ("int8", "uint8"), ("uint8", "int8"), ("int16", "int8"), ("int8", "int16")]
)
def test_from_narrow_types_with_zero_points(dtypes: tuple[str, str], mode: str) -> None:
    low, high = RANGES[dtypes[0]]
    x = np.arange(low, high + 1, max(1, (high - low) // 1000)).astype(dtypes[0])[None]
    before, after = (low + high) // 2 + 5, sum(RANGES[dtypes[1]]) // 2 - 3
    steps = [node("qnn.requantize", ["x"], "y", rounding=mode)]
    source, target = q(0.0431, before, dtypes[0]), q(0.0765, after, dtypes[1])
    got = run(steps, {"x": x}, {"x": source, "y": target})
    real = source.scales[0] / target.scales[0]
    if mode == "fp32_rne":
        real = float(np.float32(source.scales[0]) / np.float32(target.scales[0]))
    np.testing.assert_array_equal(got, each(lambda v: requantized(v - before, real, after, dtypes[1], mode), x))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("same", [True, False])
def test_per_channel(mode: str, axis: int, same: bool) -> None:
    x = np.random.default_rng(axis).integers(-5000, 5000, (3, 3, 3)).astype(np.int32)
    scales = (0.5,) * 3 if same else (0.5, 0.0123, 1.7)
    qparams = {"x": per_axis(scales, axis, "int32"), "y": q(0.9, -7)}
    got = run([node("qnn.requantize", ["x"], "y", rounding=mode)], {"x": x}, qparams)
    out = qparams["y"].scales[0]
    for index, part in enumerate(np.moveaxis(x, axis, 0)):
        scale = qparams["x"].scales[index]
        real = float(np.float32(scale) / np.float32(out)) if mode == "fp32_rne" else scale / out
        want = each(lambda v, real=real: requantized(v, real, -7, "int8", mode), part)
        np.testing.assert_array_equal(np.moveaxis(got, axis, 0)[index], want)


@pytest.mark.parametrize("mode", ["pow2_half_up", "pow2_half_even"])
@pytest.mark.parametrize("shift", [-3, 0, 1, 2, 7, 20])
def test_power_of_two_shifts(mode: str, shift: int) -> None:
    x = np.concatenate([np.arange(-600, 600), [-(2**31), 2**31 - 1]]).astype(np.int32)[None]
    qparams = {"x": q(2.0**-shift, 0, "int32"), "y": q(1.0, 5)}
    got = run([node("qnn.requantize", ["x"], "y", rounding=mode)], {"x": x}, qparams)

    def want(value: int) -> int:
        if shift <= 0:
            rounded = value << -shift
        else:
            rounded, rest = value >> shift, value & (2**shift - 1)
            half = 2 ** (shift - 1)
            rounded += rest > half or (rest == half and (mode == "pow2_half_up" or rounded % 2 == 1))
        return min(max(rounded + 5, -128), 127)

    np.testing.assert_array_equal(got, each(want, x))


@pytest.mark.parametrize("mode", MODES)
@given(
    scale=st.floats(2.0**-30, 2.0**4),
    out=st.floats(2.0**-6, 2.0**3),
    zero_point=st.integers(-128, 127),
    values=st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=20),
)
def test_any_multiplier(mode: str, scale: float, out: float, zero_point: int, values: list[int]) -> None:
    check(np.array([values], np.int32), scale, out, zero_point, "int8", mode)
