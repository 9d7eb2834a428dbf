"""Things that exporters write and that a model may have, though few do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, helper, numpy_helper

from qbench.errors import ModelError
from qbench.frontends import load
from qbench.runtime.interpreter import run
from tests.frontends.models import check, model, node, random, reference, save


@pytest.mark.parametrize(("left", "right"), [("unk__1", "unk__2"), (None, ""), ("None", "?")])
def test_batches_without_a_name_are_the_same(tmp_path: Path, left: str | None, right: str | None) -> None:
    proto = model([node("Sub", ["a", "b"], ["y"])], {"a": [left, 3], "b": [right, 3]})
    graph = check(save(proto, tmp_path), {"a": random(2, 3), "b": random(2, 3, seed=1)})
    assert graph.types["y"].shape == ("N", 3)


@pytest.mark.parametrize(("width", "factor"), [(5, 2.6), (5, 1.4), (10, 2.3), (10, 0.7), (7, 1.37)])
@pytest.mark.parametrize("size", ["known", "open"])
def test_sizes_by_factors_are_as_onnxruntime_multiplies(tmp_path: Path, width: int, factor: float, size: str) -> None:
    """In float32, where 5 times 2.6 is 13, though the nearest number to 2.6 lies below it."""
    attrs = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    proto = model(
        [node("Resize", ["x", "", "factors"], ["y"], **attrs)],
        {"x": [1, 2, 3, width if size == "known" else "W"]},
        constants={"factors": np.array([1, 1, 1, factor], np.float32)},
    )
    graph, x = load(save(proto, tmp_path)), random(1, 2, 3, width)
    assert run(graph, {"x": x})["y"].shape == reference(save(proto, tmp_path), {"x": x})["y"].shape


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
    assert np.isinf(graph.constants["mask"].array).any()


def test_infinity_in_an_embedding_is_data(tmp_path: Path) -> None:
    table = np.array([[0, 1], [-np.inf, 2]], "f4")
    nodes = [node("Gather", ["table", "ids"], ["rows"]), node("Exp", ["rows"], ["y"])]
    proto = model(nodes, {"ids": ["N"]}, constants={"table": table}, dtypes={"ids": 7})
    check(save(proto, tmp_path), {"ids": np.array([1, 0, 1])})


def test_nan_is_refused(tmp_path: Path) -> None:
    proto = model([node("MatMul", ["x", "w"], ["y"])], {"x": ["N", 1]}, constants={"w": np.array([[1, np.nan]], "f4")})
    with pytest.raises(ModelError, match="'w' contains NaN"):
        load(save(proto, tmp_path))


def test_the_second_node_of_a_name_is_renamed_with_a_note(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    proto = model([node("Relu", ["x"], ["h"], "twin"), node("Neg", ["h"], ["y"], "twin")], {"x": ["N", 2]})
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    graph = load(path)  # onnxruntime takes it too
    assert [n.name for n in graph.nodes] == ["twin", "twin.2"]
    assert "names of earlier nodes are numbered here: 'twin'" in caplog.text


@pytest.mark.parametrize("rank", [2, 3])
def test_the_branch_of_an_if_whose_condition_folds(tmp_path: Path, rank: int) -> None:
    """As torch exports ``x.squeeze(1) if x.size(1) == 1 else x``."""
    then = helper.make_graph(
        [node("Neg", ["x"], ["t"], "same")], "then", [], [helper.make_tensor_value_info("t", 1, None)]
    )
    inner = [node("Mul", ["x", "two"], ["d"]), node("Relu", ["d"], ["e"], "same")]
    two = numpy_helper.from_array(np.float32(2), "two")
    other = helper.make_graph(inner, "else", [], [helper.make_tensor_value_info("e", 1, None)], [two])
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "one"], ["size"]),
        node("Equal", ["size", "one"], ["is_one"]),
        node("If", ["is_one"], ["branch"], "if", then_branch=then, else_branch=other),
        node("Abs", ["branch"], ["y"], "same"),
    ]
    proto = model(nodes, {"x": ["N", rank - 1, 3]}, constants={"one": np.int64(1)})
    check(save(proto, tmp_path), {"x": random(2, rank - 1, 3)})


def test_an_enlarged_constant_counts_its_own_elements(tmp_path: Path) -> None:
    """Position embeddings of many channels, brought to the image's size."""
    constants = {"table": random(1, 384, 37, 37), "sizes": np.array([1, 384, 45, 73])}
    nodes = [
        node(
            "Resize", ["table", "", "", "sizes"], ["grown"], mode="cubic", coordinate_transformation_mode="asymmetric"
        ),
        node("Add", ["grown", "x"], ["y"]),
    ]
    check(save(model(nodes, {"x": [1, 384, 1, 1]}, constants=constants), tmp_path), {"x": random(1, 384, 1, 1)})


@pytest.mark.parametrize(
    ("op", "attrs"), [("CenterCropPad", {"axes": [0, 1]}), ("Shrink", {"lambd": 0.5, "bias": 0.1})]
)
def test_what_onnx_spells_in_other_ops_is_read_so(tmp_path: Path, op: str, attrs: dict[str, object]) -> None:
    inputs = ["x", "size"] if op == "CenterCropPad" else ["x"]
    constants = {"size": np.array([4, 3])} if op == "CenterCropPad" else {}
    proto = model([node(op, inputs, ["y"], "it", **attrs)], {"x": [2, 5]}, constants=constants, opset=18)
    check(save(proto, tmp_path), {"x": random(2, 5)})


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


@pytest.mark.parametrize("said", [{}, {"periodic": 0}])
def test_functions_of_onnx_have_their_defaults(tmp_path: Path, said: dict[str, int]) -> None:
    nodes = [node("HannWindow", ["size"], ["window"], **said), node("Mul", ["x", "window"], ["y"])]
    proto = model(nodes, {"x": ["N", 8]}, constants={"size": np.array(8, np.int64)})
    check(save(proto, tmp_path), {"x": random(2, 8)})


@pytest.mark.parametrize(("body", "opset"), [(["Twice"], 17), (["Relu"], 11)])
def test_functions_that_cannot_be_inlined(tmp_path: Path, body: list[str], opset: int) -> None:
    with pytest.raises(ModelError, match=r"functions of its own \('Twice'\)"):
        load(save(with_function(body, opset), tmp_path))


@pytest.mark.parametrize("signs", [{}, {"detect_negative": 0}, {"detect_positive": 0}])
def test_what_is_infinite(tmp_path: Path, signs: dict[str, int]) -> None:
    nodes = [node("Div", ["x", "by"], ["h"]), node("IsInf", ["h"], ["is"], **signs), node("Cast", ["is"], ["y"], to=1)]
    proto = model(nodes, {"x": ["N", 4]}, constants={"by": np.float32([0, 1, 0, 2])}, opset=20)
    with np.errstate(divide="ignore"):
        check(save(proto, tmp_path), {"x": np.float32([[1, 2, -3, 4], [-1, 0, 3, 4]])})


def test_nan_fills_places_that_mean_nothing(tmp_path: Path) -> None:
    nodes = [node("Greater", ["x", "zero"], ["is_up"]), node("Where", ["is_up", "x", "none"], ["y"])]
    constants = {"zero": np.float32(0), "none": np.float32(np.nan)}
    path = save(model(nodes, {"x": ["N", 4]}, constants=constants), tmp_path)
    x = random(2, 4)
    np.testing.assert_array_equal(run(load(path), {"x": x})["y"], reference(path, {"x": x})["y"])
