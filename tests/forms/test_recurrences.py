"""Recurrent layers whose weights are integers, against the same layer of real numbers."""

from typing import Any

import numpy as np
import pytest

from qbench.forms.recurrences import with_stored_recurrences
from qbench.ir.build import build
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.memo import Memo
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.ops.products import macs
from qbench.quant.arithmetic import quantize
from qbench.runtime.interpreter import run
from qbench.runtime.programs import plan

STEPS, N, UNITS = 5, 2, 7
GATES = {"nn.lstm": 4, "nn.gru": 3, "nn.rnn": 1}


def scales(array: np.ndarray, dtype: str, axis: int | None) -> QParams:
    """Symmetric for signed integers; with a zero point for others, from which some of 8 bits lie 230 away."""
    rest = tuple(i for i in range(array.ndim) if i != axis)
    largest = np.abs(array).max(axis=rest)
    steps, zero = {"int8": (127, 0), "uint4": (7, 8), "uint8": (230, 20), "int16": (32767, 0)}[dtype]
    if axis is None:
        return QParams(float(largest / steps), zero, dtype)
    return QParams(tuple((largest / steps).tolist()), (zero,) * len(largest), dtype, axis)


def layer(
    op: str,
    *,
    data: str | None = "uint8",
    weights: str = "int8",
    axis: int | None = 1,
    ways: int = 2,
    inputs: int = 6,
    **attrs: Any,
) -> tuple[Graph, dict[str, np.ndarray]]:
    """A layer of dequantized weights, on data that are dequantized from integers of a type, or real; what is fed."""
    rng, rows = np.random.default_rng(0), GATES[op] * UNITS
    real = {"w": rng.normal(size=(ways, rows, inputs)), "r": rng.normal(size=(ways, rows, UNITS)) / np.sqrt(UNITS)}
    real = {name: array.astype(np.float32) for name, array in real.items()}
    states = ("h", "c") if op == "nn.lstm" else ("h",)
    feeds = {"x": rng.normal(size=(STEPS, N, inputs)).astype(np.float32)}
    feeds |= {name: rng.normal(size=(ways, N, UNITS)).astype(np.float32) for name in states}
    held: dict[str, np.ndarray] = {"o": rng.normal(size=(ways, 2 * rows)).astype(np.float32)}
    nodes, qparams = list[Node](), dict[str, QParams]()
    for name, array in real.items():
        qparams[name] = scales(array, weights, axis)
        held[name] = quantize(array, qparams[name])
        nodes.append(Node(f"real {name}", "qnn.dequantize", (name,), (f"{name}!",)))
    entering = "x"
    if data is not None:
        largest = np.abs(feeds["x"]).max()
        steps, zero = (127, 128) if data == "uint8" else (32767, 0)
        qparams["xq"] = QParams(float(largest / steps), zero, data)
        nodes.append(Node("quantize", "qnn.quantize", ("x",), ("xq",)))
        nodes.append(Node("real x", "qnn.dequantize", ("xq",), ("x!",)))
        entering = "x!"
    attrs |= {"direction": "bidirectional" if ways == 2 else "forward"}
    made = ("y", *(f"last {state}" for state in states))
    nodes.append(Node("layer", op, (entering, "w!", "r!", "o", *states), made, FrozenMap(attrs)))
    types = {name: TensorType(array.shape, "float32") for name, array in feeds.items()}
    constants = {name: Constant(array) for name, array in held.items()}
    return build("recurrent", types, made, nodes, constants, qparams), feeds


def check(graph: Graph, feeds: dict[str, np.ndarray], *ops: str) -> Graph:
    """What it becomes: the same numbers, from nodes of these ops among others."""
    found = with_stored_recurrences(graph)
    assert {*ops} <= {node.op for node in found.nodes}
    wanted = run(graph, feeds)
    for got in (run(found, feeds), plan(graph).run(feeds)):
        for name, array in wanted.items():
            np.testing.assert_allclose(got[name], array, rtol=0, atol=1e-4)
    return found


@pytest.mark.parametrize("ways", [1, 2])
@pytest.mark.parametrize(
    ("op", "attrs"), [("nn.lstm", {}), ("nn.rnn", {}), ("nn.gru", {}), ("nn.gru", {"linear_before_reset": True})]
)
def test_data_of_8_bits_are_multiplied_as_integers(op: str, attrs: dict[str, Any], ways: int) -> None:
    graph, feeds = layer(op, ways=ways, **attrs)
    found = check(graph, feeds, "qnn.dense", op.replace("nn.", "integer."))
    (product,) = (node for node in found.nodes if node.op == "qnn.dense")
    assert product.inputs[0] == "xq"
    rows = GATES[op] * UNITS
    each = [sum(macs(one, node) for node in one.nodes) for one in (graph, found)]
    assert each == 2 * [STEPS * N * ways * rows * (6 + UNITS)]  # of data, and of states


@pytest.mark.parametrize("data", [None, "int16"])
def test_other_data_are_multiplied_as_they_come(data: str | None) -> None:
    graph, feeds = layer("nn.lstm", data=data)
    check(graph, feeds, "integer.lstm", "nn.dense" if data is None else "qnn.dense")


@pytest.mark.parametrize("axis", [None, 1])
@pytest.mark.parametrize("weights", ["int8", "uint4"])
def test_weights_of_any_scales_that_8_bits_hold(weights: str, axis: int | None) -> None:
    graph, feeds = layer("nn.gru", weights=weights, axis=axis, data=None)
    check(graph, feeds, "integer.gru")


def test_weights_of_other_kinds_stay_what_they_are() -> None:
    for graph in (
        layer("nn.lstm", axis=2)[0],  # scales along what is summed
        layer("nn.lstm", weights="uint8")[0],  # less their zero points they need nine bits
        layer("nn.lstm", weights="int16")[0],
    ):
        assert with_stored_recurrences(graph) is graph


def test_sums_that_32_bits_do_not_hold_are_of_real_numbers() -> None:
    graph, feeds = layer("nn.rnn", data="int16", inputs=4000)
    check(graph, feeds, "integer.rnn", "nn.dense")


def test_a_second_time_its_parts_are_the_same_objects() -> None:
    graph, memo = layer("nn.lstm")[0], Memo()
    first, second = (with_stored_recurrences(graph, memo) for _ in range(2))
    assert all(one is two for one, two in zip(first.nodes, second.nodes, strict=True))
    assert all(first.constants[name] is constant for name, constant in second.constants.items())
