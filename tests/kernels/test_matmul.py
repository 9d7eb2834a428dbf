"""Matrix products against integer.batch_matmul."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbench.kernels.matmul import matmul_kernel
from qbench.kernels.rounding import is_plain
from tests.kernels.harness import codes, launch, stored
from tests.kernels.requantizing import parameters, requantized
from tests.kernels.test_pool import numbers

CASES = [("int8", "uint8", "int8", mode) for mode in (None, "tflite_single", "fp32_rne", "tvm_tonearest")]
CASES += [("int16", "int16", "int16", "tflite_single"), ("uint8", "int16", "uint8", None)]


@pytest.mark.parametrize(("a_dtype", "b_dtype", "dtype", "rounding"), CASES)
@settings(max_examples=50)
@given(
    sizes=st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 9) | st.just(300), st.integers(0, 40)),
    turned=st.tuples(st.booleans(), st.booleans()), seed=st.integers(0, 2**32), threads=st.integers(1, 3),
)  # fmt: skip
def test_any_strides(a_dtype, b_dtype, dtype, rounding, sizes, turned, seed, threads) -> None:
    batch, rows, columns, depth = sizes
    a, b = numbers(seed, a_dtype, (batch, rows, depth)), numbers(seed + 1, b_dtype, (batch, depth, columns))
    zeros = int(numbers(seed, a_dtype, ())), int(numbers(seed, b_dtype, ()))
    bias = np.random.default_rng(seed).integers(-999, 999, columns)
    acc = (a.astype(np.int64) - zeros[0]) @ (b.astype(np.int64) - zeros[1]) + bias
    nothing = dict.fromkeys(("mantissa", "shift", "multiplier"), np.zeros(1, np.int32))
    fields, wanted = (
        ({**nothing, "zero_point": 0, "low": 0, "high": 0}, acc)
        if rounding is None
        else requantized(acc, *parameters(seed, 1, rounding), rounding, dtype)
    )
    small = np.abs(acc).max(initial=0) < 2**31
    plain = rounding is not None and bool(seed % 3 and small) and is_plain(fields["shift"], rounding)
    largest = int(np.abs(a.astype(int) - zeros[0]).max(initial=0) * np.abs(b.astype(int) - zeros[1]).max(initial=0))
    placed = [codes(array) for array in (a, b)]
    placed = [
        np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2) if turn else x
        for x, turn in zip(placed, turned, strict=True)
    ]
    steps = [[stride // x.itemsize for stride in x.strides] for x in placed]
    y, _ = stored(wanted.dtype.name, (batch, rows, columns + 2))
    count = np.arange(batch)
    launch(
        matmul_kernel(*(x.dtype.str[1:] for x in (*placed, y)), rounding, plain), threads, a=placed[0],
        b=placed[1], y=y, bias=bias, a_starts=count * steps[0][0], b_starts=count * steps[1][0],
        y_starts=count * rows * (columns + 2),
        batch=batch, rows=rows, columns=columns, depth=depth, a_row=steps[0][1], a_step=steps[0][2], b_step=steps[1][1],
        b_column=steps[1][2], y_row=columns + 2, a_extent=a.size, b_extent=b.size,
        zero_a=zeros[0] + (128 if a_dtype == "int8" else 0), zero_b=zeros[1] + (128 if b_dtype == "int8" else 0),
        run=(2**31 - 1) // max(largest, 1), **fields,
    )  # fmt: skip
    np.testing.assert_array_equal(y[..., :columns], codes(wanted))
    assert np.all(y[..., columns:] == 77)
