"""Steps that want rows, where these are parts of something larger, with gaps between them.

Images are cut in place. Those of one row and one column lie alike in every order of their axes, so that
nothing but the gaps tells the parts from rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from qbench.ir.qparams import QParams
from tests.graphs import graph_of
from tests.runtime.lowerings.agree import assert_agree
from tests.runtime.lowerings.layers import node
from tests.runtime.lowerings.test_tflite import Arrays, agree, legal

Q = QParams(0.1, 3, "uint8")
NARROW, SUMS = QParams(1 / 256, 0, "uint8"), QParams(1e-6, 0, "int32")
X = np.random.default_rng(0).integers(0, 256, (6, 1, 1, 20)).astype(np.uint8)
CUT = ("strided_slice", "t", "s", {"begin": (5,), "end": (13,), "strides": (1,), "axes": (3,)})
GAMMA: Arrays = {"gamma": np.arange(8, dtype=np.int16) * 1000 - 3000}
ROWS: dict[str, tuple[str, str, dict[str, Any], QParams, Arrays]] = {
    "softmax": ("qnn.softmax", "s", {"semantics": "tflite"}, NARROW, {}),
    "normalization": ("qnn.rms_norm", "s gamma", {"epsilon": 1e-5}, SUMS, GAMMA),
}


@pytest.mark.parametrize("kind", ROWS)
def test_what_is_read_was_cut_in_place(kind: str) -> None:
    op, reads, attrs, made, constants = ROWS[kind]
    before = ("qnn.unary", "x", "t", {"function": "nn.relu", "semantics": "tflite"})
    qs = {"x": Q, "t": Q, "s": Q, "y": made}
    agree(legal({"x": X}, qs, [before, CUT, (op, reads, "y", attrs)], constants), {"x": X})


def test_what_is_picked_from_was_cut_in_place() -> None:
    feeds = {"x": X.astype(np.float32), "at": np.array([2, 0, 7, -1], np.int64)}
    nodes = [
        node("nn.relu", "x", "t"),
        node("strided_slice", "t", "s", begin=(5,), end=(13,), strides=(1,), axes=(3,)),
        node("take", "s at", "y", axis=3),
    ]
    assert_agree(graph_of(feeds, nodes, "y", {}), feeds)
