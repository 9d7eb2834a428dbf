"""PReLU of integers against integer.prelu."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbench.kernels.prelu import prelu_kernel
from qbench.kernels.walk import strided
from qbench.ops.integer.prelu import IntegerPrelu, prelu_multipliers
from tests.kernels.harness import codes, launch, padded, stored


@pytest.mark.parametrize(
    ("dtype", "result"), [("int16", "int16"), ("int16", "int8"), ("uint8", "uint8"), ("int8", "int16")]
)
@given(
    seed=st.integers(0, 2**32), rows=st.integers(1, 5), channels=st.sampled_from([1, 3, 32, 70]),
    by=st.sampled_from(["channel", "row", "all"]), step=st.sampled_from([1, 2]),
    ratio=st.sampled_from([1.0, 0.5, 0.77, 3e-5, 2.0**-17, 750.0, 1e-30]), threads=st.integers(1, 3),
)  # fmt: skip
def test_prelu(dtype, result, seed, rows, channels, by, step, ratio, threads) -> None:
    random = np.random.default_rng(seed)
    info, target = np.iinfo(dtype), np.iinfo(result)
    x = random.integers(info.min, info.max, (rows, channels * step), dtype, endpoint=True)
    axis = {"channel": 1, "row": 0, "all": None}[by]
    slopes = random.choice([0.0, -0.25, 0.5, 0.1, 1.7], 1 if axis is None else (rows, channels)[axis])
    multipliers = prelu_multipliers(ratio, slopes.astype(np.float32))
    zero, zero_point = (int(random.integers(kind.min, kind.max)) for kind in (info, target))
    op = IntegerPrelu(dtype=result, data_zero_point=zero, zero_point=zero_point, axis=axis)
    out, flip = stored(result, (rows, channels))
    along = {"channel": (0, 1), "row": (1, 0), "all": (0, 0)}[by]
    walk = strided((rows, channels), x=(channels * step, step), m=along, y=(channels, 1))
    above, below = np.ldexp(multipliers[0].astype(np.float64), multipliers[1] - 31)
    launch(
        prelu_kernel(codes(x).dtype.str[1:], out.dtype.str[1:]), threads, x=padded(codes(x)), above=padded(above),
        below=padded(below), y=out, **walk, zero=zero + (128 if dtype == "int8" else 0), zero_point=zero_point + flip,
        low=target.min + flip, high=target.max + flip,
    )  # fmt: skip
    np.testing.assert_array_equal(out, codes(op.compute(x[:, ::step], *multipliers)))


def test_multipliers_are_the_reals_to_31_bits() -> None:
    slopes = np.array([0.25, -0.3, 0.0, 1.9], np.float32)
    mantissa, shift = prelu_multipliers(0.77, slopes)
    reals = 0.77 * np.stack([np.ones(4), slopes.astype(np.float64)])
    np.testing.assert_allclose(np.ldexp(mantissa.astype(np.float64), shift - 31), reals, rtol=2**-31)
