"""What a softmax compares, and that what a mask hides of it counts nowhere."""

from __future__ import annotations

import numpy as np
import pytest

from qbench.forms.scores import HIDDEN, floors
from qbench.ir.build import build
from qbench.ir.frozen import Constant
from qbench.ir.types import TensorType
from qbench.session.session import Session
from tests.networks import node

ROWS = 6
MASK = np.triu(np.ones((ROWS, ROWS), bool), 1)


def attention(hidden: float):
    """Scores of a sequence with itself, each position seeing those up to it."""
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((8, 8)).astype(np.float32)
    bias = np.where(MASK, np.float32(hidden), np.float32(0))
    nodes = [
        node("nn.dense", ["x", "w"], "queries"),
        node("nn.batch_matmul", ["queries", "x"], "scores", transpose_rhs=True),
        node("add", ["scores", "bias"], "masked"),
        node("nn.softmax", ["masked"], "shares", axis=-1),
        node("nn.batch_matmul", ["shares", "x"], "y"),
    ]
    constants = {"w": Constant(weight), "bias": Constant(bias)}
    return build("attention", {"x": TensorType(("N", ROWS, 8), "float32")}, ["y"], nodes, constants)


def test_only_what_nothing_but_a_softmax_reads():
    assert floors(attention(-1e9)) == {"scores": HIDDEN, "masked": HIDDEN}


@pytest.mark.parametrize("hidden", [-1e4, -1e9, float(np.finfo(np.float32).min), -np.inf])
def test_masked_positions_count_neither_in_histograms_nor_in_ratios(hidden):
    data = np.random.default_rng(1).standard_normal((12, ROWS, 8)).astype(np.float32)
    session = Session(attention(hidden), data, preset="int8")
    layer = session.run(progress=False).layer("masked")
    values = session.values("masked")
    assert np.array_equal(np.isnan(values.exact), np.broadcast_to(MASK, values.exact.shape))
    seen = values.exact[~np.isnan(values.exact)].astype(np.float64)
    lost = seen - values.quantized[~np.isnan(values.exact)]
    assert layer.sqnr_db == pytest.approx(10 * np.log10(np.sum(seen**2) / np.sum(lost**2)), abs=2)  # of 8 samples of 12
    found = session.statistics["masked"]
    assert found.count == len(data) * (~MASK).sum()
    assert found.min > HIDDEN
