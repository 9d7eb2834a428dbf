"""Loop and Scan with turns that can be counted give onnxruntime's outputs; others are refused with the way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import qbench as qb
from qbench.errors import UnsupportedOpsError
from qbench.frontends import load
from qbench.frontends.onnx import loops
from tests.frontends.models import check, model, node, random, save

STEPS = [node("MatMul", ["state", "w"], ["product"]), node("Add", ["xt", "product"], ["sum"])]
STEPS += [node("Tanh", ["sum"], ["next"]), node("Neg", ["next"], ["item"])]
WEIGHT = {"w": random(4, 4)}
FEEDS = {"x": random(3, 2, 4, seed=1), "h": random(2, 4, seed=2)}


def body(steps: list[Any], inputs: dict[str, int], outputs: dict[str, int]) -> Any:
    shapes = {"turn": [], "go": []}
    infos = [
        [helper.make_tensor_value_info(k, t, shapes.get(k)) for k, t in each.items()] for each in (inputs, outputs)
    ]
    return helper.make_graph(steps, "body", *infos)


def loop(condition: str = "go") -> Any:
    steps = [node("Gather", ["x", "turn"], ["xt"]), *STEPS, node("Identity", [condition], ["on"])]
    steps.insert(-1, node("Less", ["next_sum", "limit"], ["small"])) if condition == "small" else None
    steps.insert(-2, node("ReduceSum", ["next"], ["next_sum"], keepdims=0)) if condition == "small" else None
    inputs = {"turn": TensorProto.INT64, "go": TensorProto.BOOL, "state": TensorProto.FLOAT}
    outputs = {"on": TensorProto.BOOL, "next": TensorProto.FLOAT, "item": TensorProto.FLOAT}
    return node("Loop", ["count", "", "h"], ["last", "y"], "loop", body=body(steps, inputs, outputs))


def test_a_loop_of_constant_length(tmp_path: Path) -> None:
    constants = WEIGHT | {"count": np.array(3)}
    proto = model([loop()], {"x": [3, "N", 4], "h": ["N", 4]}, ["y", "last"], constants)
    graph = check(save(proto, tmp_path), FEEDS)
    assert [n.op for n in graph.nodes].count("tanh") == 3


@pytest.mark.parametrize("directions", [(0, 0), (1, 0), (0, 1)])
def test_a_scan_of_known_length(tmp_path: Path, directions: tuple[int, int]) -> None:
    kinds = {"state": TensorProto.FLOAT, "xt": TensorProto.FLOAT}
    made = body(STEPS, kinds, {"next": TensorProto.FLOAT, "item": TensorProto.FLOAT})
    attrs = {"scan_input_axes": [1], "scan_input_directions": directions[:1], "scan_output_directions": directions[1:]}
    scan = node("Scan", ["h", "x"], ["last", "y"], "scan", body=made, num_scan_inputs=1, scan_output_axes=[2], **attrs)
    proto = model([scan], {"x": ["N", 3, 4], "h": ["N", 4]}, ["y", "last"], WEIGHT)
    check(save(proto, tmp_path), {"x": random(2, 3, 4), "h": FEEDS["h"]})


@pytest.mark.parametrize(
    ("condition", "count", "told"),
    [
        ("small", [], "its data say so"),
        ("go", ["x"], "as often as an open size says; fix sizes"),
        ("go", ["n"], "its data say so"),
    ],
)
def test_loops_that_the_run_counts(tmp_path: Path, condition: str, count: list[str], told: str) -> None:
    constants: dict[str, np.ndarray] = WEIGHT | {"limit": np.array(9, np.float32)}
    inputs: dict[str, list[int | str]] = {"x": ["T", "N", 4], "h": ["N", 4]}
    before = []
    if count == ["x"]:
        constants["first"] = np.array(0)
        before = [node("Shape", ["x"], ["sizes"]), node("Gather", ["sizes", "first"], ["count"])]
    elif count == ["n"]:
        inputs["count"] = []
    else:
        constants["count"] = np.array(3)
    proto = model([*before, loop(condition)], inputs, ["y"], constants, dtypes={"count": TensorProto.INT64})
    with pytest.raises(UnsupportedOpsError, match=told):
        load(save(proto, tmp_path))


def counted(count: int | None) -> ModelProto:
    """A loop that goes on while a number that it counts itself is below 3, and at most `count` times."""
    counts = [node("Add", ["number", "one"], ["counted"]), node("Less", ["counted", "three"], ["on"])]
    whole, real, truth = TensorProto.INT64, TensorProto.FLOAT, TensorProto.BOOL
    inputs = {"turn": whole, "go": truth, "number": whole, "state": real}
    outputs = {"on": truth, "counted": whole, "next": real, "y": real}
    steps = [node("Gather", ["x", "number"], ["xt"]), *STEPS, node("Identity", ["item"], ["y"])]
    given = ["count" if count else "", "start", "zero", "h"]
    made = node("Loop", given, ["turns", "last", "y"], "loop", body=body([*steps, *counts], inputs, outputs))
    constants = WEIGHT | {name: np.array(i) for i, name in enumerate(["zero", "one", "two", "three"])}
    constants |= {"start": np.array(True)} | ({"count": np.array(count)} if count else {})
    return model([made], {"x": [3, "N", 4], "h": ["N", 4]}, ["y", "last"], constants)


@pytest.mark.parametrize(("count", "turns"), [(None, 3), (2**63 - 1, 3), (7, 3), (3, 3), (2, 2)])
def test_a_loop_that_counts_itself(tmp_path: Path, count: int | None, turns: int) -> None:
    """As tf2onnx writes the layers of Keras that go from step to step."""
    graph = check(save(counted(count), tmp_path), FEEDS)
    assert [n.op for n in graph.nodes].count("tanh") == turns
    assert not [step for step in qb.plan(graph, sizes={"N": 2}).steps if step.reason]
    for name, array in qb.run(graph, FEEDS).items():
        np.testing.assert_allclose(array, qb.interpret(graph, FEEDS)[name], atol=1e-6)


def test_a_loop_that_turns_too_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "MOST", 2)
    with pytest.raises(UnsupportedOpsError, match="turns more than 2 times"):
        load(save(counted(None), tmp_path))
    with pytest.raises(UnsupportedOpsError, match="turns 7 times"):
        load(save(counted(7), tmp_path))
