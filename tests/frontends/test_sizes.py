"""What symbols must stand for so that sizes are equal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto

import qbench as qb
from qbench.exporters.onnx_qdq import write_onnx
from qbench.frontends import load
from qbench.frontends.sizes import Unresolved, element_of, equal, greater, solved, substituted
from qbench.ir.sizes import size_of
from qbench.runtime.interpreter import call
from tests.frontends.models import check, model, node, random, save


def test_a_symbol_stands_for_the_others_or_for_a_multiple() -> None:
    assert solved("T", "P + S", ["P", "S", "T"]) == {"T": "P + S"}
    assert solved("T", 512, ["T"]) == {"T": 512}
    assert solved("2*(H//2)", "H", ["H"]) == {"H": "2*H"}
    assert solved("(H + 15)//48", 1, ["H"]) == {"H": 48}
    assert solved("W*(2*((H + 15)//48))", "4*W", ["H", "W"]) == {"H": 96}
    assert solved("H*W", "4*((H*W)//(4*(H//2)*(W//2)))*(H//2)*(W//2)", ["H", "W"]) == {"H": "2*H", "W": "2*W"}
    assert solved("4*B", "(4//B)*B", ["B"]) == solved("(4*(17//B))//17", 4, ["B"]) == {"B": 1}
    assert solved("(48*(196//B))//(49*B)", 192, ["B"]) == {"B": 1}
    assert solved("7//B", 1, ["B"]) is solved("H", "H + 1", ["H"]) is None


def test_the_length_of_an_axis_is_one_or_more_whatever_is_taken_off_it() -> None:
    length, difference = element_of("(n + 257)//384 - 2"), size_of("n - m")
    assert greater(length, 0) and not greater(-1, length)
    assert not equal(length, -1) and not equal(0, length)
    for undecided in ((length, 1), (length - 1, -1), (difference, -1)):
        with pytest.raises(Unresolved):
            equal(*undecided)


def test_substitutions_follow_one_another() -> None:
    assert substituted({"W": "2*W"}, {"W": "2*W"}) == {"W": "4*W"}
    assert substituted({"T": "P + S"}, {"P": "2*P"}) == {"T": "2*P + S", "P": "2*P"}


def test_each_level_of_a_u_net_doubles_what_the_sizes_must_be_multiples_of(tmp_path: Path) -> None:
    half = {"kernel_shape": [2, 2], "strides": [2, 2]}
    made = [
        node("MaxPool", ["x"], ["a"], **half),
        node("MaxPool", ["a"], ["b"], **half),
        node("DepthToSpace", ["b"], ["c"], blocksize=2),
        node("Concat", ["a", "c"], ["d"], axis=1),
        node("DepthToSpace", ["d"], ["e"], blocksize=2),
        node("Concat", ["x", "e"], ["y"], axis=1),
    ]
    graph = load(save(model(made, {"x": [1, 16, "H", "W"]}, ["y"]), tmp_path))
    assert graph.types["x"].shape == (1, 16, "4*H", "4*W")
    assert graph.types["y"].shape == (1, 21, "4*H", "4*W")


def test_what_holds_for_some_sizes_only_says_how_to_give_them(tmp_path: Path) -> None:
    made = [
        node("Shape", ["x"], ["rows"], end=1),
        node("Div", ["seven", "rows"], ["one"]),
        node("Concat", ["rows", "one", "six"], ["to"], axis=0),
        node("Reshape", ["x", "to"], ["y"]),
    ]
    numbers = {"seven": np.array([7]), "six": np.array([6])}
    saved = save(model(made, {"x": ["B", 6]}, ["y"], numbers), tmp_path)
    with pytest.raises(qb.ModelError, match=r"reshape.*fix the open ones with shapes="):
        load(saved)
    assert load(saved, shapes={"x": (5, 6)}).types["y"].shape == (5, 1, 6)


@pytest.mark.parametrize(("row", "length", "rows"), [(24, 6, "N"), (40, 10, "N"), (8, "L", "((L + 1)//2)*N")], ids=str)
def test_rows_of_a_fixed_length_fix_a_sample_and_not_the_batch(
    tmp_path: Path, row: int, length: int | str, rows: str
) -> None:
    """As classifiers of sounds flatten what their convolutions leave."""
    pool = node("MaxPool", ["x"], ["a"], kernel_shape=[3], strides=[2], pads=[1, 1])
    flat = node("Reshape", ["a", "to"], ["y"])
    constants = {"to": np.array([-1, row])}
    graph = load(save(model([pool, flat], {"x": ["N", 8, "L"]}, ["y"], constants), tmp_path))
    assert graph.types["x"].shape == ("N", 8, length)
    assert graph.types["y"].shape == (rows, row)


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_pools_of_two_by_two_cover_images_of_any_size(tmp_path: Path, op: str) -> None:
    """With auto_pad, which pads odd sizes alone."""
    pool = node(op, ["x"], ["y"], kernel_shape=[2, 2], strides=[2, 2], auto_pad="SAME_UPPER")
    path = save(model([pool], {"x": ["N", 3, "H", 6]}, ["y"]), tmp_path)
    graph = load(path)
    theirs = pytest.importorskip("onnxruntime").InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for height in (5, 6, 3):
        x = np.random.default_rng(height).normal(size=(2, 3, height, 6)).astype(np.float32)
        np.testing.assert_allclose(call(graph, x), theirs.run(None, {"x": x})[0], rtol=1e-6)


@pytest.mark.parametrize("read", [False, True])
def test_a_size_may_be_an_output(tmp_path: Path, read: bool) -> None:
    """As models of sounds say how many frames they made; perhaps another node reads it as well."""
    made = [
        node("Relu", ["x"], ["y"]),
        node("Shape", ["y"], ["sizes"]),
        node("Gather", ["sizes", "at"], ["length"]),
        node("Div", ["length", "three"], ["frames"]),
        *([node("Add", ["k", "frames"], ["more"])] if read else []),
    ]
    inputs = {"x": [1, "L"], "k": [2]} if read else {"x": [1, "L"]}
    outputs = ["y", "frames", "more"] if read else ["y", "frames"]
    constants = {"at": np.array([1]), "three": np.array(3)}
    whole = dict.fromkeys(["k", "frames", "more"], TensorProto.INT64)
    path = save(model(made, inputs, outputs, constants, dtypes=whole), tmp_path)
    feeds = {"x": random(1, 10)} | ({"k": np.array([1, 2])} if read else {})
    graph = check(path, feeds, 0)
    assert graph.outputs == tuple(outputs)
    assert not qb.plan(graph, sizes={"L": 10}).fallbacks
    for name, array in qb.run(graph, feeds).items():
        np.testing.assert_array_equal(array, qb.interpret(graph, feeds)[name])
    check(write_onnx(graph, tmp_path / "again.onnx"), feeds, 0)
