from __future__ import annotations

import pytest

import qbench.runtime.lowerings  # noqa: F401  finds them all
from qbench.runtime.lowerings.lowering import LOWERINGS, dispatch


@pytest.mark.parametrize("op", sorted(LOWERINGS))
def test_the_order_of_an_ops_lowerings_is_declared(op: str) -> None:
    ranks = [rank for rank, _ in LOWERINGS[op]]
    assert ranks == sorted(set(ranks))


def test_the_table_of_lowerings_can_be_read() -> None:
    lines = dispatch().splitlines()
    assert "integer.conv2d: SingleTapLowering, DepthwiseLowering, ConvLowering, GeneralLowering" in lines
    assert len(lines) == len(LOWERINGS)
