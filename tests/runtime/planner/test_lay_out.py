"""How values lie: as those want it who read them, also through a change of axes' names."""

from __future__ import annotations

import numpy as np
import pytest

import qbench as qb
from qbench.ir.build import build
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.kernels.levels import current
from qbench.runtime import interpreter
from qbench.runtime.layout import CHANNELS_LAST, row_major
from qbench.runtime.planner.lay_out import Copy, lay_out
from qbench.runtime.planner.tasks import tasks
from tests.networks import node

POOL = {"pool_size": (2, 2), "strides": (2, 2), "padding": (0, 0, 0, 0)}


@pytest.mark.parametrize("relus", [0, 1, 2])
@pytest.mark.parametrize("channels_first", [False, True])
def test_an_image_is_quantized_to_where_a_pool_reads_it(channels_first: bool, relus: int):
    """The pool reads channels-last codes; those of a file whose images are channels-last lie so as they come, whatever
    is done to each of them on the way."""
    shape = (1, 3, 8, 6) if channels_first else (1, 8, 6, 3)
    nodes = [
        node("qnn.quantize", ["x"], "codes"),
        *(node("clip", [f"clipped{i - 1}" if i else "codes"], f"clipped{i}", a_min=4, a_max=90) for i in range(relus)),
    ]
    if not channels_first:
        nodes.append(node("transpose", [nodes[-1].outputs[0]], "turned", axes=(0, 3, 1, 2)))
    nodes.append(node("nn.max_pool2d", [nodes[-1].outputs[0]], "y", **POOL))
    q = QParams(0.1, 3, "uint8")
    quantized = {each.outputs[0]: q for each in nodes}
    graph = build("image", {"x": TensorType(shape, "float32")}, ["y"], nodes, {}, quantized)
    laid = lay_out(graph, tasks(graph, (), current()))
    assert laid.layouts["codes"] == (CHANNELS_LAST if channels_first else row_major(4))
    assert not any(isinstance(step, Copy) for step in laid.steps)
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    assert np.array_equal(qb.plan(graph).run({"x": x})["y"], interpreter.run(graph, {"x": x})["y"])
