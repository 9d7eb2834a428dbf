"""NaN that arises within a program, and would be quantized there."""

from __future__ import annotations

import numpy as np
import pytest

from qbench.errors import DataError
from qbench.ir.build import build
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Attr, Graph, Node
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.runtime import interpreter
from qbench.runtime.programs import plan

POOL = FrozenMap[str, Attr]({"pool_size": (3, 3), "strides": (1, 1), "padding": (1, 1, 1, 1)})


def mixed(op: str = "log", shape: tuple[int | str, ...] = ("N", 3, 4, 5), dtype: str = "float32") -> Graph:
    """Float, then integers, the first of which may lie within a border."""
    two = ["x", "x"] if op in ("divide", "power") else ["x"]
    nodes = [Node("f", op, tuple(two), ("f",)), Node("q", "qnn.quantize", ("f",), ("q",))]
    nodes.append(
        Node("y", "nn.max_pool2d", ("q",), ("y",), POOL) if len(shape) == 4 else Node("y", "nn.relu", ("q",), ("y",))
    )
    q = QParams(0.25, 3, "uint8")
    return build("mixed", {"x": TensorType(shape, dtype)}, ["y"], nodes, qparams={"q": q, "y": q})


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [("N", 3, 4, 5), ("N", 7), (2, 3, 4, 5), ("N", 64, 9, 9)])
@pytest.mark.parametrize("op", ["log", "divide", "power"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_is_reported_with_its_value_and_sample(op: str, shape: tuple[int | str, ...], threads: int, dtype: str):
    graph = mixed(op, shape, dtype)
    program = plan(graph, keep=["f"])
    sizes = [5 if size == "N" else size for size in shape]
    x = np.random.default_rng(0).uniform(0.5, 3, sizes).astype(dtype)
    assert np.array_equal(program.run(x, threads=threads)["y"], interpreter.run(graph, {"x": x})["y"])
    x.flat[-2] = {"log": -1, "divide": 0, "power": -0.5}[op]
    with pytest.raises(DataError, match="NaN cannot be quantized"):
        interpreter.run(graph, {"x": x})
    sample = 4 if shape[0] == "N" else 0
    said = f"value 'f' holds NaN, .*sample {sample} of the run" if dtype == "float32" else "NaN cannot be quantized"
    for _ in range(2):
        with pytest.raises(DataError, match=said):  # of float16 the interpreter does it
            program.run(x, threads=threads)
    x.flat[-2] = 1.5
    assert np.array_equal(program.run(x, threads=threads)["y"], interpreter.run(graph, {"x": x})["y"])


def test_infinity_saturates():
    x, graph = np.zeros((1, 7), np.float32), mixed(shape=("N", 7))
    assert np.array_equal(plan(graph).run(x)["y"], interpreter.run(graph, {"x": x})["y"])


def test_integer_networks_are_not_slowed_down():
    nodes = [Node("q", "qnn.quantize", ("x",), ("q",)), Node("y", "nn.max_pool2d", ("q",), ("y",), POOL)]
    q = QParams(0.25, 3, "uint8")
    graph = build("g", {"x": TensorType(("N", 3, 4, 5), "float32")}, ["y"], nodes, qparams={"q": q, "y": q})
    program = plan(graph)
    program.run(np.zeros((2, 3, 4, 5), np.float32))
    (schedule,) = program._schedules.values()
    assert not [entry.kernel.name for entry in schedule.instructions if entry.kernel.name.startswith("nan")]
