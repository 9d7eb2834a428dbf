"""Sums of products of 16-bit integers that become real numbers without being rounded, against the interpreter."""

import numpy as np
import pytest

from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Node
from qbench.ir.qparams import QParams
from qbench.kernels.levels import Level
from tests.graphs import graph_of
from tests.runtime.lowerings.agree import LEVELS, assert_agree


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("rows", "depth", "units"), [(3, 2000, 37), (20, 700, 130), (1, 64, 5)])
@pytest.mark.parametrize("has_bias", [False, True])
def test_sums_that_need_64_bits_become_real(level: Level, rows: int, depth: int, units: int, has_bias: bool) -> None:
    """Each is rounded to float32 once, then multiplied by its channel's scale: bit for bit."""
    rng, wide = np.random.default_rng(0), depth > 64
    dtype, most = ("int64", 2**33) if wide else ("int32", 9)
    x = rng.integers(-32768, 32768, (rows, depth)).astype(np.int16)
    held = {"w": rng.integers(-127, 128, (units, depth)).astype(np.int8)}
    x[0], held["w"][0] = 32767, 127  # which together need 33 bits where there are many
    scales = tuple((rng.uniform(0.5, 2, units) * 1e-6).tolist())
    sums = QParams(scales, (0,) * units, dtype, 1)
    nodes = [Node("dense", "integer.dense", ("x", "w"), ("sums",), FrozenMap({"accumulator": dtype}))]
    if has_bias:
        held["b"] = rng.integers(-most, most, units).astype(dtype)
        nodes.append(Node("bias", "nn.bias_add", ("sums", "b"), ("biased",)))
    nodes.append(Node("real", "qnn.dequantize", (nodes[-1].output,), ("y",)))
    qparams = {"x": QParams(0.01, 0, "int16"), "sums": sums, "biased": sums}
    graph = graph_of({"x": x}, nodes, "y", qparams=qparams, **held)
    assert_agree(graph, {"x": x}, level=level, threads=2, exact=True)
