"""Lines in place of tables: the same codes, or none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from qbench.kernels.isa import ISAS
from qbench.kernels.levels import Level
from qbench.kernels.lines import lines_kernel, lines_through
from tests.kernels.harness import COMPILED, launch

CODES = np.arange(256)


def table_of(slopes: np.ndarray, starts: np.ndarray, low: int, high: int) -> np.ndarray:
    return np.clip(np.rint(slopes[:, None] * CODES + starts[:, None]), low, high).astype(np.uint8)


@pytest.mark.parametrize("level", [level for level in COMPILED if level in ISAS])
@given(
    seed=st.integers(0, 2**32 - 1),
    channels=st.sampled_from([1, 16, 31, 64, 70, 130]),
    steepness=st.sampled_from([0.0, 0.003, 0.1, 1.0, 40.0, 3000.0]),
    low=st.integers(0, 60),
    high=st.integers(60, 255),
    gap=st.sampled_from([0, 5]),
    kink=st.sampled_from([0, 1, 77, 128, 255]),
    threads=st.integers(1, 3),
)
def test_every_code_of_every_channel(level: Level, seed, channels, steepness, low, high, gap, kink, threads) -> None:
    rng = np.random.default_rng(seed)
    slopes, starts = rng.normal(size=channels) * steepness, rng.normal(size=channels) * 120 + 100
    table = table_of(slopes, starts, low, high)
    if kink:  # from there on all channels go on alike, from where one of them has come to
        table = table_of(slopes, starts[:1] + kink * (slopes[:1] - slopes), low, high)
        table[:, kink:] = table_of(slopes[:1] * 0.7, starts[:1] + kink * slopes[:1] * 0.3, low, high)[:, kink:]
    lines = lines_through(table)
    assume(lines is not None)
    pixels = np.array([rng.permutation(256) for _ in range(channels)], np.uint8).T  # each code once in each channel
    memory = np.zeros(256 * (channels + gap) + 128, np.uint8)  # vectors read on behind it
    memory[: -128 or None].reshape(256, -1)[:, :channels] = pixels
    out = rng.integers(0, 256, (256, channels + gap)).astype(np.uint8)
    beside = out[:, channels:].copy()
    bounds = {name: int(np.float32(getattr(lines, name)).view(np.int32)) for name in ("low", "high", "kink")}
    slopes, starts = lines.as_read()
    launch(
        lines_kernel(level, len(slopes)), threads, x=memory, out=out, slopes=slopes, starts=starts,
        apart=slopes[0].nbytes, rows=256, channels=channels, x_pitch=channels + gap, out_pitch=channels + gap,
        **bounds,
    )  # fmt: skip
    np.testing.assert_array_equal(out[:, :channels], table[np.arange(channels), pixels])
    np.testing.assert_array_equal(out[:, channels:], beside)


@pytest.mark.parametrize("steepness", [0.003, 0.1, 1.0, 40.0])
def test_nearly_all_lines_are_found(steepness: float) -> None:
    rng = np.random.default_rng(0)
    slopes, starts = rng.normal(size=(2, 500)) * [[steepness], [100]]
    tables = table_of(slopes, starts + 100, 3, 250)
    missed = sum(lines_through(table[None]) is None for table in tables)
    assert missed <= 1
    assert lines_through(np.full((3, 256), 9, np.uint8)) is not None


def test_prelu_is_two_lines() -> None:
    slopes = np.random.default_rng(0).uniform(-0.3, 0.5, 64)
    reals = (CODES - 113) * 0.04
    table = np.clip(np.rint(np.where(reals >= 0, reals, reals * slopes[:, None]) / 0.031) + 20, 0, 255).astype(np.uint8)
    lines = lines_through(table)
    assert lines is not None and len(lines.slopes) == 2 and 100 < lines.kink <= 115


@given(seed=st.integers(0, 2**32 - 1), code=st.integers(1, 254))
def test_what_is_no_line_is_told_so(seed: int, code: int) -> None:
    rng = np.random.default_rng(seed)
    table = table_of(rng.uniform(0.2, 0.8, 20), rng.uniform(0, 40, 20), 0, 255)
    table[7, code] += 2
    assert lines_through(table) is None
