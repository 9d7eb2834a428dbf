"""The predicted rates, against drawing many accumulators and rounding them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbench.parity.theory import disagreement
from qbench.quant.fixed_point import quantized_multiplier
from qbench.quant.rescaling import rescale, rescale_float32, rounding_shift

FIXED = ("tflite_double", "tflite_single", "tvm_upward", "tvm_tonearest", "pow2_half_even", "litert_builtin")
POWERS = (2**-9, 2**-4, 0.25, 0.5, 1.0, 4.0)
GENERIC = (0.01172377, 0.07314159, 0.24971828, 0.26180339, 0.49932377, 0.7171717, 1.7320508)
"""Far from simple fractions: multiples of 0.26 = 13/50 have 50 fractions only, until the mantissa's last bits show."""


def rounded(mode, acc, multiplier):
    """What each mode makes of accumulators, slow and obvious where `rescale` has no such mode."""
    mantissa, shift = quantized_multiplier(multiplier)
    if mode == "litert_builtin":
        high = (np.left_shift(acc, max(int(shift), 0)) * int(mantissa) + 2**30) >> 31
        return (high + (1 << -int(shift) >> 1)) >> -int(shift) if shift < 0 else high
    if mode == "pow2_half_even":  # the exact product, its ties to even
        return rounding_shift(acc * int(mantissa), 31 - shift, "pow2_half_even")
    if mode == "fp32_rne":
        return rescale_float32(acc, np.float32(multiplier))
    return rescale(acc, mantissa, shift, mode)


@pytest.mark.parametrize("multiplier", POWERS + GENERIC)
@pytest.mark.parametrize("pair", list(combinations(FIXED, 2)), ids="/".join)
def test_two_ways_to_round_disagree_as_often_as_predicted(pair, multiplier):
    rng = np.random.default_rng(1)
    acc = rng.integers(-(2**20), 2**20, 200_000)
    acc = np.where(rng.random(acc.size) < 0.3, -np.abs(acc), np.abs(acc))
    left, right = (rounded(mode, acc, multiplier) for mode in pair)
    measured = np.mean(left != right)
    predicted = disagreement(*pair, multiplier, negative=float(np.mean(acc < 0)))
    assert abs(measured - predicted) <= 5 * np.sqrt(max(predicted, 1e-9) / acc.size) + 2e-6


@pytest.mark.parametrize("shift", range(1, 13))
def test_double_and_single_differ_by_half_a_unit_of_the_shift(shift):
    assert disagreement("tflite_double", "tflite_single", 0.7 * 2.0**-shift) == 2.0 ** -(shift + 1)
    assert disagreement("tflite_double", "litert_builtin", 0.7 * 2.0**-shift, negative=0.25) == 0.25 * 2.0**-shift


@pytest.mark.parametrize("mode", ["tflite_single", "tvm_tonearest", "tflite_double"])
@pytest.mark.parametrize("multiplier", [0.30471731, 0.71230987, 0.04321731, 0.5])
@pytest.mark.parametrize("sign", [1, -1])
def test_float32_differs_as_its_multiplier_and_its_digits_say(mode, multiplier, sign):
    low, high = (int(part * 2**18 / multiplier) for part in (0.9, 1.0))  # products of one size, large enough to see it
    acc = sign * np.random.default_rng(2).integers(low, min(high, 2**24), 500_000)
    measured = np.mean(rounded(mode, acc, multiplier) != rounded("fp32_rne", acc, multiplier))
    predicted = disagreement(
        mode, "fp32_rne", multiplier, negative=float(sign < 0), magnitude=float(np.mean(np.abs(acc * multiplier)))
    )
    assert measured == pytest.approx(predicted, rel=0.1, abs=3e-4)


@given(st.floats(2**-20, 64.0), st.floats(0, 1))
def test_nothing_disagrees_with_itself_and_the_order_does_not_matter(multiplier, negative):
    for left, right in combinations((*FIXED, "fp32_rne"), 2):
        there = disagreement(left, right, multiplier, negative=negative)
        assert 0 <= there == disagreement(right, left, multiplier, negative=negative) <= 1
        assert disagreement(left, left, multiplier, negative=negative) == 0


def test_integers_need_no_rounding():
    assert disagreement("pow2_half_even", "tvm_tonearest", 8.0) == 0
