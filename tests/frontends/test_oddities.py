"""Things that exporters write and that a model may have, though few do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, helper

from qbench.errors import ModelError
from qbench.frontends import load
from tests.frontends.models import check, model, node, random, save


@pytest.mark.parametrize(("left", "right"), [("unk__1", "unk__2"), (None, ""), ("None", "?")])
def test_batches_without_a_name_are_the_same(tmp_path: Path, left: str | None, right: str | None) -> None:
    proto = model([node("Sub", ["a", "b"], ["y"])], {"a": [left, 3], "b": [right, 3]})
    graph = check(save(proto, tmp_path), {"a": random(2, 3), "b": random(2, 3, seed=1)})
    assert graph.types["y"].shape == ("N", 3)


@pytest.mark.parametrize("shape", [(), (1, 4)])
def test_infinity_hides_scores_from_a_softmax(tmp_path: Path, shape: tuple[int, ...]) -> None:
    mask = np.full(shape, -np.inf, np.float32)
    if shape:
        mask[0, :3] = 0
        hide = node("Add", ["x", "mask"], ["h"])
    else:
        hide = node("Where", ["few", "x", "mask"], ["h"])
    constants = {"mask": mask, "few": np.array([True, True, False, True])}
    proto = model([hide, node("Softmax", ["h"], ["y"])], {"x": ["N", 4]}, ["y", "h"], constants)
    proto.graph.output.pop()
    graph = check(save(proto, tmp_path), {"x": random(2, 4)})
    assert np.isfinite(graph.constants["mask"].array).all()


def test_infinity_elsewhere_is_refused(tmp_path: Path) -> None:
    proto = model([node("MatMul", ["x", "w"], ["y"])], {"x": ["N", 1]}, constants={"w": np.array([[1, np.inf]], "f4")})
    with pytest.raises(ModelError, match="'w' contains NaN or infinity"):
        load(save(proto, tmp_path))


def with_function(body: list[str], opset: int = 17) -> ModelProto:
    nodes = [node("Twice", ["x"], ["h"], "first", domain="mine"), node("Twice", ["h"], ["y"], "second", domain="mine")]
    proto = model(nodes, {"x": ["N", 3]})
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("mine", 1)]
    values = ["a", *(f"t{i}" for i in range(len(body) - 1)), "b"]
    inner = [
        helper.make_node(op, [values[i]], [values[i + 1]], domain="mine" if op == "Twice" else "")
        for i, op in enumerate(body)
    ]
    proto.functions.append(helper.make_function("mine", "Twice", ["a"], ["b"], inner, opsets))
    proto.opset_import.append(helper.make_opsetid("mine", 1))
    return proto


def test_functions_of_the_model_are_inlined(tmp_path: Path) -> None:
    graph = check(save(with_function(["Neg", "Relu"]), tmp_path), {"x": random(2, 3)})
    assert [n.op for n in graph.nodes] == ["negative", "nn.relu", "negative", "nn.relu"]


@pytest.mark.parametrize(("body", "opset"), [(["Twice"], 17), (["Relu"], 11)])
def test_functions_that_cannot_be_inlined(tmp_path: Path, body: list[str], opset: int) -> None:
    with pytest.raises(ModelError, match=r"functions of its own \('Twice'\)"):
        load(save(with_function(body, opset), tmp_path))
