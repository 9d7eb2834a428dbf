"""Channels whose output cannot change get other numbers, and the same codes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbench.ir.build import build
from qbench.ir.frozen import Constant
from qbench.ir.types import TensorType
from qbench.kernels.levels import Level
from qbench.kernels.rounding import rescale_one
from qbench.quant.fixed_point import quantized_multiplier
from qbench.quant.rounding import POWER_OF_TWO, ROUNDINGS, Rounding
from qbench.runtime.lowerings.rescaling import Rescaling
from qbench.runtime.lowerings.settle import LARGE, settle
from qbench.runtime.programs import plan
from tests.runtime.lowerings.agree import LEVELS, assert_agree
from tests.runtime.lowerings.layers import node, requantize


def codes(totals, channel: int, found: Rescaling) -> list[int]:
    numbers = found.mantissa[channel], found.shift[channel], found.multiplier[channel], found.code
    return [min(max(int(rescale_one(t, *numbers)) + found.zero_point, found.low), found.high) for t in totals]


@pytest.mark.parametrize("rounding", ROUNDINGS)
@given(seed=st.integers(0, 2**32), zero_point=st.integers(0, 255), bounds=st.tuples(*[st.integers(0, 255)] * 2))
def test_the_codes_are_the_same_for_all_totals(rounding: Rounding, seed: int, zero_point: int, bounds) -> None:
    rng, channels = np.random.default_rng(seed), 8
    real = 2.0 ** rng.uniform(-30, -5, channels)
    if rounding in POWER_OF_TWO:
        real = 2.0 ** np.floor(np.log2(real))
    mantissa, shift = quantized_multiplier(real)
    low, high = sorted(bounds)
    found = Rescaling(rounding, mantissa, shift, real.astype(np.float32), 0, zero_point, low, high, "uint8")
    reach, added = rng.integers(0, 2**20, channels), rng.integers(-(2**31), 2**31, channels)
    settled, new_added, new = settle(added, reach, found)
    for channel in range(channels):
        sums = rng.integers(-reach[channel], reach[channel] + 1, 20)
        totals = [int(added[channel] + s) for s in sums if abs(added[channel] + s) < 2**31]
        kept = [int(new_added[channel])] * len(totals) if channel in settled else totals
        assert codes(kept, channel, new) == codes(totals, channel, found)
    assert np.all(np.abs(new_added[settled]) <= LARGE)


def test_a_dead_channel_is_settled() -> None:
    mantissa, shift = quantized_multiplier([2.0**-24, 2.0**-8])
    found = Rescaling("tflite_single", mantissa, shift, np.ones(2, np.float32), 0, 3, 0, 255, "uint8")
    settled, added, new = settle(np.array([2**30, 100]), np.array([1000, 1000]), found)
    assert settled.tolist() == [0]
    assert codes(added[:1].tolist(), 0, new) == [64 + 3]
    assert (added[1], new.shift[1]) == (100, shift[1])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("groups", [1, 20])
def test_a_convolution_with_dead_channels(level, groups: int) -> None:
    rng, dead = np.random.default_rng(0), [3, 7]
    real, bias = np.full(20, 2.0**-8), rng.integers(-1000, 1000, 20).astype(np.int32)
    real[dead], bias[dead] = 2.0**-24, 2**30 + 7
    requantized, constants = requantize("b", "y", real.reshape(20, 1, 1), "tflite_single", "uint8", 3)
    constants |= {
        "w": Constant(rng.integers(-127, 128, (20, 20 // groups, 3, 3)).astype(np.int8)),
        "bias": Constant(bias),
    }
    nodes = [node("integer.conv2d", "x w", "c", groups=groups), node("nn.bias_add", "c bias", "b"), requantized]
    graph = build("g", {"x": TensorType((1, 20, 6, 6), "uint8")}, ["y"], nodes, constants)
    x = rng.integers(0, 256, (1, 20, 6, 6), np.uint8)
    assert_agree(graph, {"x": x}, level=level)
    if level is Level.AVX512VNNI:
        kernels = [timing.kernel for timing in plan(graph, level=level).profile({"x": x}, repeat=1)]
        assert any("fixed_float" in kernel for kernel in kernels), kernels
