"""If: decided while loading, by the sizes at run time, or by data; and inputs that are fixed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

from qbench.errors import DataError, ModelError, UnsupportedOpsError
from qbench.frontends import load
from qbench.runtime.interpreter import run
from tests.frontends.models import check, model, node, random, reference, save


def branch(name: str, *nodes: NodeProto) -> object:
    outputs = [helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)]
    return helper.make_graph(list(nodes), name, [], outputs)


def by_rate(then: NodeProto, other: NodeProto) -> ModelProto:
    """As voice detectors ask for a sampling rate."""
    choice = {"then_branch": branch("then", then), "else_branch": branch("else", other)}
    nodes = [node("Equal", ["rate", "wide"], ["is_wide"]), node("If", ["is_wide"], ["y"], "if", **choice)]
    inputs = {"x": ["N", 3], "rate": [1]}
    return model(nodes, inputs, constants={"wide": np.array([16000])}, dtypes={"rate": TensorProto.INT64})


@pytest.mark.parametrize("rate", [16000, 8000])
def test_a_branch_that_data_decides(tmp_path: Path, rate: int) -> None:
    path = save(by_rate(node("Neg", ["x"], ["t"]), node("Abs", ["x"], ["e"])), tmp_path)
    check(path, {"x": random(2, 3), "rate": np.array([rate])})


@pytest.mark.parametrize("rate", [16000, 8000])
def test_an_input_that_is_fixed_decides_it_while_loading(tmp_path: Path, rate: int) -> None:
    path = save(by_rate(node("Neg", ["x"], ["t"]), node("Transpose", ["x"], ["e"])), tmp_path)
    with pytest.raises(UnsupportedOpsError, match=r"as the run decides.*values=.\"rate\": 16000.\) decides it"):
        load(path)
    graph = load(path, values={"rate": rate})
    assert graph.inputs == ("x",)
    assert [n.op for n in graph.nodes] == ["negative" if rate == 16000 else "transpose"]
    want = reference(path, {"x": random(2, 3), "rate": np.array([rate])})
    np.testing.assert_array_equal(run(graph, {"x": random(2, 3)})["y"], want["y"])


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"rat": 1}, "no input 'rat'; did you mean 'rate'"),
        ({"rate": 1.5}, "'rate' is int64 of shape"),
        ({"rate": [1, 2]}, "not int64 of"),
    ],
)
def test_what_an_input_cannot_be_fixed_to(tmp_path: Path, values: dict[str, object], told: str) -> None:
    path = save(by_rate(node("Neg", ["x"], ["t"]), node("Abs", ["x"], ["e"])), tmp_path)
    with pytest.raises(ModelError, match=told):
        load(path, values=values)  # pyright: ignore[reportArgumentType]


def test_a_squeeze_of_an_axis_that_is_of_size_one_for_some_lengths(tmp_path: Path) -> None:
    """As torch scripts ``x.squeeze(-1)``: an axis that is 1 for the lengths that the model is meant for."""
    choice = {
        "then_branch": branch("then", node("Squeeze", ["c", "last"], ["t"])),
        "else_branch": branch("else", node("Identity", ["c"], ["e"])),
    }
    nodes = [
        node("MaxPool", ["x"], ["c"], kernel_shape=[4], strides=[4]),
        node("Shape", ["c"], ["shape"]),
        node("Gather", ["shape", "two"], ["size"]),
        node("Equal", ["size", "one"], ["is_one"]),
        node("If", ["is_one"], ["y"], "if", **choice),
    ]
    constants = {"last": np.array([-1]), "two": np.int64(2), "one": np.int64(1)}
    inside = {f"{name}_branch": branch(name, *nodes) for name in ("then", "else")}
    decided = [
        node("Cast", ["rate"], ["is_high"], to=TensorProto.BOOL),
        node("If", ["is_high"], ["y"], "by_rate", **inside),
    ]
    given = {"x": ["N", 2, "T"], "rate": []}
    dtypes = {"rate": TensorProto.INT64}
    twice = save(model(decided, given, constants=constants, dtypes=dtypes), tmp_path, "twice.onnx")
    with pytest.raises(UnsupportedOpsError, match=r"'by_rate' \(If\).*both.*values={\"rate\": \.\.\.}\)[^\n]*$"):
        load(twice)
    assert load(twice, values={"rate": 1}).inputs == ("x",)
    path = save(model(nodes, {"x": ["N", 2, "T"]}, constants=constants), tmp_path)
    graph = check(path, {"x": random(1, 2, 5)})
    check(path, {"x": random(1, 2, 7)})
    with pytest.raises(DataError, match=r"has size 2, not 1"):
        run(graph, {"x": random(1, 2, 9)})


def test_branches_may_use_the_same_names(tmp_path: Path) -> None:
    """Each is a scope of its own."""
    then, other = ((node(op, ["x"], ["a"], "one"), node("Exp", ["a"], ["b"], "two")) for op in ("Neg", "Abs"))
    choice = {"then_branch": branch("then", *then), "else_branch": branch("else", *other)}
    nodes = [node("Greater", ["rate", "zero"], ["is_up"]), node("If", ["is_up"], ["y"], "if", **choice)]
    path = save(model(nodes, {"x": ["N", 3], "rate": []}, constants={"zero": np.float32(0)}), tmp_path)
    for rate in (1.0, -1.0):
        check(path, {"x": random(2, 3), "rate": np.array(rate, np.float32)})
