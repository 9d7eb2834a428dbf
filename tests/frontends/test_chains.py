"""Constant chains and chains over sizes known only at run time are folded, as exporters write them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper

from qbench.errors import DataError
from qbench.frontends import load
from qbench.runtime.interpreter import run
from qbench.runtime.programs import Programs
from tests.frontends.models import check, model, node, random, save

ONE = {"zero": np.array([0]), "one": np.array([1]), "i0": np.array(0), "minus": np.array([-1])}


def test_a_view_with_the_batch_taken_from_the_input(tmp_path: Path) -> None:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "i0"], ["n"]),
        node("Unsqueeze", ["n", "zero"], ["n1"]),
        node("Concat", ["n1", "minus"], ["target"], axis=0),
        node("Reshape", ["x", "target"], ["out"]),
    ]
    graph = check(save(model(nodes, {"x": ["N", 3, 4]}, ["out"], ONE), tmp_path), {"x": random(2, 3, 4)})
    assert [(n.op, n.attrs["newshape"]) for n in graph.nodes] == [("reshape", ("N", 12))]
    assert not graph.constants


def test_channel_shuffle_multiplies_and_divides_sizes(tmp_path: Path) -> None:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Slice", ["s", "zero", "one"], ["n"]),
        node("Slice", ["s", "one", "two"], ["c"]),
        node("Div", ["c", "two"], ["half"]),
        node("Slice", ["s", "two", "big"], ["hw"]),
        node("Concat", ["n", "two", "half", "hw"], ["t1"], axis=0),
        node("Reshape", ["x", "t1"], ["r1"]),
        node("Transpose", ["r1"], ["r2"], perm=[0, 2, 1, 3, 4]),
        node("Concat", ["n", "minus", "hw"], ["t2"], axis=0),
        node("Reshape", ["r2", "t2"], ["out"]),
    ]
    constants = ONE | {"two": np.array([2]), "big": np.array([2**63 - 1])}
    graph = check(save(model(nodes, {"x": ["N", 6, 3, 5]}, ["out"], constants), tmp_path), {"x": random(2, 6, 3, 5)})
    assert [n.op for n in graph.nodes] == ["reshape", "transpose", "reshape"]
    assert graph.types["out"].shape == ("N", 6, 3, 5)


def test_heads_fold_into_the_batch_and_back(tmp_path: Path) -> None:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "i0"], ["n"]),
        node("Mul", ["n", "four"], ["n4"]),
        node("Unsqueeze", ["n4", "zero"], ["n41"]),
        node("Concat", ["n41", "rest"], ["t1"], axis=0),
        node("Reshape", ["x", "t1"], ["r"]),
        node("Softmax", ["r"], ["p"]),
        node("Div", ["n4", "four"], ["nn"]),
        node("Unsqueeze", ["nn", "zero"], ["nn1"]),
        node("Concat", ["nn1", "four1", "rest"], ["t2"], axis=0),
        node("Reshape", ["p", "t2"], ["out"]),
    ]
    constants = ONE | {"four": np.array(4), "four1": np.array([4]), "rest": np.array([5, 6])}
    graph = check(save(model(nodes, {"x": ["B", 4, 5, 6]}, ["out"], constants), tmp_path), {"x": random(3, 4, 5, 6)})
    assert graph.types["p"].shape == ("4*B", 5, 6)


def test_pads_computed_in_five_steps(tmp_path: Path) -> None:
    nodes = [
        node("Constant", [], ["pads"], value=numpy_helper.from_array(np.array([1, 2, 0, 1]))),
        node("ConstantOfShape", ["four"], ["zeros"], value=numpy_helper.from_array(np.array([0]))),
        node("Concat", ["pads", "zeros"], ["all"], axis=0),
        node("Reshape", ["all", "pairs"], ["m"]),
        node("Slice", ["m", "minus", "low", "zero", "minus"], ["flipped"]),
        node("Transpose", ["flipped"], ["t"], perm=[1, 0]),
        node("Reshape", ["t", "minus"], ["flat"]),
        node("Cast", ["flat"], ["final"], to=TensorProto.INT64),
        node("Pad", ["x", "final"], ["out"]),
    ]
    constants = ONE | {"four": np.array([4]), "pairs": np.array([-1, 2]), "low": np.array([-(2**63)])}
    graph = check(save(model(nodes, {"x": ["N", 3, 4, 5]}, ["out"], constants), tmp_path), {"x": random(2, 3, 4, 5)})
    assert [n.op for n in graph.nodes] == ["nn.pad"]


@pytest.mark.parametrize("way", ["Expand", "Tile", "ConstantOfShape"])
def test_a_class_token_is_repeated_for_each_sample(tmp_path: Path, way: str) -> None:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Slice", ["s", "zero", "one"], ["n"]),
        node("Concat", ["n", "one", "one" if way == "Tile" else "five"], ["t"], axis=0),
        node(way, ["t"] if way == "ConstantOfShape" else ["token", "t"], ["tokens"]),
        node("Concat", ["tokens", "x"], ["out"], axis=1),
    ]
    constants = ONE | {"five": np.array([5]), "token": random(1, 1, 5)}
    graph = check(save(model(nodes, {"x": ["N", 3, 5]}, ["out"], constants), tmp_path), {"x": random(2, 3, 5)})
    assert [n.op for n in graph.nodes] == ["tile" if way == "Tile" else "broadcast_to", "concatenate"]


def test_expand_with_the_usual_choice_between_shape_and_ones(tmp_path: Path) -> None:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Slice", ["s", "zero", "one"], ["n"]),
        node("Concat", ["n", "minus", "minus"], ["t"], axis=0),
        node("Shape", ["t"], ["rank"]),
        node("ConstantOfShape", ["rank"], ["ones"], value=numpy_helper.from_array(np.array([1]))),
        node("Mul", ["ones", "minus"], ["minuses"]),
        node("Equal", ["t", "minuses"], ["same"]),
        node("Where", ["same", "ones", "t"], ["target"]),
        node("Expand", ["token", "target"], ["out"]),
    ]
    constants = ONE | {"token": random(1, 4, 5)}
    check(save(model(nodes, {"x": ["N", 3, 5]}, ["out"], constants), tmp_path), {"x": random(2, 3, 5)})


def test_the_usual_choice_where_steps_are_cut_off_on_the_way(tmp_path: Path) -> None:
    """As many frames as a convolution leaves, which no file says: still not -1, which stands for "as it is"."""
    nodes = [
        node("Conv", ["x", "window"], ["frames"], strides=[4]),
        node("Shape", ["frames"], ["s"]),
        node("ConstantOfShape", ["three"], ["ones"], value=numpy_helper.from_array(np.array([1]))),
        node("Mul", ["ones", "minus"], ["minuses"]),
        node("Equal", ["s", "minuses"], ["same"]),
        node("Where", ["same", "ones", "s"], ["target"]),
        node("Expand", ["token", "target"], ["out"]),
    ]
    constants = ONE | {"token": random(1, 4, 1), "window": random(4, 1, 9), "three": np.array([3])}
    graph = check(save(model(nodes, {"x": ["N", 1, "n"]}, ["out"], constants), tmp_path), {"x": random(2, 1, 33)})
    assert graph.types["out"].shape == ("N", 4, "(n + 3)//4 - 2")


def test_attention_scale_from_a_size(tmp_path: Path) -> None:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "last"], ["d"]),
        node("Cast", ["d"], ["f"], to=TensorProto.DOUBLE),
        node("Sqrt", ["f"], ["r"]),
        node("Cast", ["r"], ["scale"], to=TensorProto.FLOAT),
        node("Div", ["x", "scale"], ["out"]),
    ]
    graph = check(
        save(model(nodes, {"x": ["N", 3, 16]}, ["out"], ONE | {"last": np.array(-1)}), tmp_path),
        {"x": random(2, 3, 16)},
    )
    assert graph.constants["scale"].array == np.float32(4)


def test_data_made_from_an_open_size(tmp_path: Path) -> None:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Cast", ["s"], ["f"], to=TensorProto.FLOAT),
        node("Mul", ["x", "f"], ["out"]),
    ]
    graph = check(save(model(nodes, {"x": ["N", 2]}, ["out"]), tmp_path), {"x": random(3, 2)})
    x = random(5, 2)
    np.testing.assert_array_equal(Programs(graph).of({"x": x}).run(x)["out"], x * np.float32([5, 2]))


def test_outputs_behind_identities_keep_their_names(tmp_path: Path) -> None:
    nodes = [
        node("Relu", ["x"], ["a"]),
        node("Identity", ["a"], ["out1"]),
        node("Identity", ["a"], ["out2"]),
        node("Identity", ["x"], ["out3"]),
        node("Identity", ["c"], ["out4"]),
        node("Neg", ["a"], ["out5"]),
    ]
    outputs = [f"out{i}" for i in range(1, 6)]
    graph = check(save(model(nodes, {"x": ["N", 2]}, outputs, {"c": random(3)}), tmp_path), {"x": random(3, 2)})
    assert graph.outputs == tuple(outputs)


def test_double_and_half_precision_constants(tmp_path: Path) -> None:
    nodes = [
        node("Cast", ["c"], ["f"], to=TensorProto.FLOAT),
        node("Mul", ["x", "f"], ["y"]),
        node("Cast", ["y"], ["h"], to=TensorProto.FLOAT16),
        node("Mul", ["h", "half"], ["out"]),
    ]
    constants = {"c": random(3, dtype=np.float64), "half": random(3, dtype=np.float16)}
    proto = model(nodes, {"x": ["N", 3]}, ["out"], constants, dtypes={"out": TensorProto.FLOAT16})
    check(save(proto, tmp_path), {"x": random(2, 3)})


def test_what_a_network_computes_in_64_bits_has_32(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    nodes = [
        node("Cast", ["x"], ["wide"], "widen", to=TensorProto.DOUBLE),
        node("Softmax", ["wide"], ["shares"]),
        node("Mul", ["shares", "c"], ["scaled"]),
        node("CastLike", ["x", "c"], ["again"], "like"),
        node("Add", ["scaled", "again"], ["sum"]),
        node("Cast", ["sum"], ["out"], to=TensorProto.FLOAT),
    ]
    path = save(model(nodes, {"x": ["N", 3]}, ["out"], {"c": random(3, dtype=np.float64)}), tmp_path)
    graph = check(path, {"x": random(2, 3)})
    assert {kind.dtype for kind in graph.types.values()} == {"float32"}
    assert "real numbers of 64 bits have 32 here: 'widen', 'like'" in caplog.text


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ([None, 3], ("N", 3)),
        ([0, 3], ("N", 3)),
        ([-1, 3, "?", "?"], ("N", 3, "H", "W")),
        (["?", "None", 4], ("N", "D1", 4)),
        (["batch size", "4 x"], ("batch_size", "_4_x")),
        (["a b", "a_b"], ("a_b", "a_b_1")),
        (["seq", "seq"], ("seq", "seq")),
        (["\N{GREEK SMALL LETTER ALPHA}1", 2], ("_1", 2)),
        (["x" * 10_000, 2], ("x" * 60, 2)),
    ],
)
def test_names_of_open_sizes(tmp_path: Path, given: list[object], wanted: tuple[object, ...]) -> None:
    proto = model([node("Relu", ["x"], ["y"])], {"x": [1 if d in (0, -1) else d for d in given]})  # type: ignore[misc]
    for size, dim in zip(given, proto.graph.input[0].type.tensor_type.shape.dim, strict=True):
        if size in (0, -1):
            dim.dim_value = size  # type: ignore[assignment]
    assert load(save(proto, tmp_path)).types["x"].shape == wanted


def test_equal_sizes_are_found_out(tmp_path: Path) -> None:
    """The mask is as long as cache and input together; an image is halved and doubled."""
    nodes = [node("Concat", ["past", "x"], ["k"], axis=1), node("Add", ["k", "mask"], ["y"])]
    shapes = {"past": ["B", "P", 4], "x": ["batch", "S", 4], "mask": ["b", "T", 1]}
    feeds = {"past": random(2, 3, 4), "x": random(2, 2, 4), "mask": random(2, 5, 1)}
    graph = check(save(model(nodes, shapes), tmp_path), feeds)
    assert graph.types["mask"].shape == ("B", "P + S", 1)
    with pytest.raises(DataError, match=r"axis 1 has size 6, not P \+ S = 5 \(P=3, S=2\)"):
        run(graph, feeds | {"mask": random(2, 6, 1)})

    first = {"past": random(2, 0, 4), "x": random(2, 3, 4), "mask": random(2, 3, 1)}
    check(save(model(nodes, shapes), tmp_path), first)
    with pytest.raises(DataError, match=r"input 'x' has a length of zero: axis 1 \(T\) must be 1 or more"):
        run(load(save(model([node("Relu", ["x"], ["y"])], {"x": ["N", "T"]}), tmp_path)), {"x": random(2, 0)})

    nodes = [
        node("MaxPool", ["x"], ["half"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Resize", ["half", "", "twice"], ["again"], mode="nearest"),
        node("Add", ["x", "again"], ["y"]),
    ]
    proto = model(nodes, {"x": [1, 3, "H", 8]}, constants={"twice": np.array([1, 1, 2, 2], np.float32)})
    graph = check(save(proto, tmp_path), {"x": random(1, 3, 6, 8)})
    assert graph.types["x"].shape == (1, 3, "2*H", 8)
    with pytest.raises(DataError, match="size 7 of axis 2 is not a multiple of 2"):
        run(graph, {"x": random(1, 3, 7, 8)})


def test_rows_of_a_table_that_is_too_short(tmp_path: Path) -> None:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "one"], ["t"]),
        node("Slice", ["table", "zero", "t", "one"], ["rows"]),
        node("Add", ["x", "rows"], ["y"]),
    ]
    proto = model(nodes, {"x": [1, "T", 4]}, constants=ONE | {"table": random(1, 9, 4)})
    graph = check(save(proto, tmp_path), {"x": random(1, 5, 4)})
    with pytest.raises(DataError, match=r"the model does not take the sizes T=10: .*do not broadcast"):
        run(graph, {"x": random(1, 10, 4)})


@pytest.mark.parametrize("length", [1, 7])
def test_sizes_as_a_causal_mask_computes_with_them(tmp_path: Path, length: int) -> None:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "one"], ["t"]),
        node("Squeeze", ["t"], ["n"]),
        node("Range", ["zero.0", "n", "one.0"], ["rows"]),
        node("Unsqueeze", ["rows", "one"], ["columns"]),
        node("Less", ["columns", "rows"], ["later"]),
        node("Concat", ["t", "t"], ["square"], axis=0),
        node("ConstantOfShape", ["square"], ["hidden"], value=numpy_helper.from_array(np.float32([-np.inf]))),
        node("Where", ["later", "hidden", "zero.f"], ["mask"]),
        node("Add", ["x", "mask"], ["scores"]),
        node("Softmax", ["scores"], ["y"]),
        node("Sub", ["t", "one"], ["last"]),
        node("Gather", ["y", "last"], ["z"], axis=1),
    ]
    constants = ONE | {"zero.0": np.int64(0), "one.0": np.int64(1), "zero.f": np.float32(0)}
    proto = model(nodes, {"x": ["N", "T", "T"]}, ["y", "z"], constants)
    x = random(2, length, length)
    graph = check(save(proto, tmp_path), {"x": x})
    made, wanted = Programs(graph).of({"x": x}).run(x), run(graph, {"x": x})
    for name in wanted:
        np.testing.assert_allclose(made[name], wanted[name], rtol=1e-5)
