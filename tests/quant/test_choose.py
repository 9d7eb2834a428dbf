from __future__ import annotations

from qbench.ir.qparams import QParams
from qbench.quant.choose import from_range


def test_a_range_of_both_signs() -> None:
    assert from_range(-1.0, 3.0, "uint8", symmetric=False) == QParams(4 / 255, 64, "uint8")
