"""A network whose channels have ranges far apart, though it computes what an even one does."""

import numpy as np

from qbench.ir.build import build
from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph
from qbench.ir.types import TensorType
from tests.networks import node

WIDTH = 16


def network(decades: float) -> Graph:
    """Three dense layers with relus between; channels are scaled over so many decades, and back by the next layer."""
    rng = np.random.default_rng(0)
    scales = [np.ones(WIDTH), *(10 ** rng.uniform(-decades / 2, decades / 2, (2, WIDTH))), np.ones(WIDTH)]
    constants = {f"w{i}": rng.normal(0, 0.4, (WIDTH, WIDTH)) * scales[i + 1][:, None] / scales[i] for i in range(3)}
    nodes = [
        node("nn.dense", ["x", "w0"], "fc0"),
        node("nn.relu", ["fc0"], "act0"),
        node("nn.dense", ["act0", "w1"], "fc1"),
        node("nn.relu", ["fc1"], "act1"),
        node("nn.dense", ["act1", "w2"], "y"),
    ]
    kept = {name: Constant(array.astype(np.float32)) for name, array in constants.items()}
    return build("spread", {"x": TensorType(("N", WIDTH), "float32")}, ["y"], nodes, kept)
