"""16 bits as two bytes."""

import numpy as np
import pytest

from qbench.ir.qparams import QParams
from qbench.quant.arithmetic import dequantize, quantize
from qbench.quant.halves import below_upper, halves

STEPS = 0.0123, 2.0**-7, 3e-39, 1e30


@pytest.mark.parametrize("scale", STEPS)
@pytest.mark.parametrize(
    ("dtype", "zero_point"),
    [("int16", 0), ("int16", -32768), ("int16", 77), ("uint16", 0), ("uint16", 32768), ("uint16", 65535)],
)
def test_both_bytes_of_every_number_come_back(dtype: str, zero_point: int, scale: float) -> None:
    """Rounded to the nearest upper byte, what is left is what the lower one can say, of all 65,536 numbers."""
    q = QParams(scale, zero_point, dtype)  # pyright: ignore[reportArgumentType]
    every = np.arange(q.qmin, q.qmax + 1)
    x, (upper, lower) = dequantize(every.astype(dtype), q), halves(q)
    high = quantize(x - np.float32(below_upper(q)), upper)
    low = quantize(x - dequantize(high, upper), lower)
    assert high.dtype == low.dtype == np.uint8
    together = 256 * (high.astype(int) - upper.zero_points[0]) + (low.astype(int) - lower.zero_points[0])
    np.testing.assert_array_equal(together, every - zero_point)
