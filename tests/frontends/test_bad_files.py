"""Whatever is wrong with a file becomes one clear error, never a traceback from a library."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper, numpy_helper

from qbench.errors import ModelError, QBenchError, UnsupportedOpsError
from qbench.frontends import load
from tests.frontends.models import check, model, node, random, save


def small(opset: int = 17) -> ModelProto:
    nodes = [
        node("Conv", ["x", "w", "b"], ["c"], "conv", pads=[1, 1, 1, 1]),
        node("Relu", ["c"], ["r"], "relu"),
        node("Shape", ["r"], ["s"]),
        node("Slice", ["s", "i0", "i1"], ["n"]),
        node("Concat", ["n", "minus"], ["t"], axis=0),
        node("Reshape", ["r", "t"], ["flat"]),
        node("Gemm", ["flat", "v", "u"], ["y"], "fc", transB=1),
    ]
    constants = {"w": random(2, 1, 3, 3), "b": random(2), "v": random(3, 32), "u": random(3)}
    indices = {"i0": np.array([0]), "i1": np.array([1]), "minus": np.array([-1])}
    return model(nodes, {"x": ["N", 1, 4, 4]}, constants=constants | indices, opset=opset)


def refused(path: Path, *words: str) -> ModelError:
    with pytest.raises(ModelError) as caught:
        load(path)
    for word in words:
        assert word in str(caught.value)
    return caught.value


def test_the_small_model_is_fine(tmp_path: Path) -> None:
    check(save(small(), tmp_path), {"x": random(3, 1, 4, 4)})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ["is empty"]),
        (b"hello", ["not an ONNX model"]),
        (b"PK\x03\x04" + b"\0" * 100, ["not an ONNX model"]),
        (b"{}\n", ["not an ONNX model"]),
        (b"\0" * 50, ["not an ONNX model"]),
    ],
)
def test_not_a_model(tmp_path: Path, content: bytes, words: list[str]) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    refused(path, *words)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shapes": [1, 1, 4, 4]}, "shapes= goes by the names of inputs: a dict, not list"),
        ({"shapes": {"x": 3}}, "shapes: that of input 'x' is a tuple of 4 sizes, not int"),
        ({"shapes": {"x": (1, 4, 4)}}, "shapes: that of input 'x' is a tuple of 4 sizes, not 3"),
        ({"values": "x"}, "values= goes by the names of inputs: a dict, not str"),
        ({"outputs": "logits"}, "outputs= takes the names of values in a list, not str"),
    ],
)
def test_options_of_another_kind(tmp_path: Path, options: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        load(save(small(), tmp_path), **options)


@pytest.mark.parametrize("path", [None, np.zeros(3)])
def test_what_is_no_path(path: Any) -> None:
    with pytest.raises(ModelError, match="a model is read from a path, not"):
        load(path)


def test_a_name_in_capitals(tmp_path: Path) -> None:
    check(save(small(), tmp_path, "MODEL.ONNX"), {"x": random(3, 1, 4, 4)})


def test_missing_file_and_folder(tmp_path: Path) -> None:
    refused(tmp_path / "absent.onnx", "absent.onnx", "No such file")
    refused(tmp_path, "is a directory but no qbench archive")
    refused(tmp_path / ("x" * 10_000), "(", "characters)", "too long")
    refused(tmp_path / "a\0b", "a\\x00b", "null byte")


def test_every_truncation_is_an_error(tmp_path: Path) -> None:
    data = small().SerializeToString()
    path = tmp_path / "model.onnx"
    for length in range(0, len(data), 7):
        path.write_bytes(data[:length])
        refused(path)


Edit = Callable[[ModelProto], object]

BROKEN: dict[str, tuple[Edit, list[str]]] = {
    "old opset": (lambda m: setattr(m.opset_import[0], "version", 6), ["opset 6", "7 to 28"]),
    "new opset": (lambda m: setattr(m.opset_import[0], "version", 99), ["opset 99"]),
    "no opset": (lambda m: m.ClearField("opset_import"), ["opset none"]),
    "unknown domain": (lambda m: setattr(m.graph.node[0], "domain", "my.ops"), ["'conv'", "domain 'my.ops'"]),
    "cycle": (lambda m: m.graph.node[0].input.__setitem__(0, "y"), ["cycle", "'conv'"]),
    "twin values": (lambda m: m.graph.node[1].output.__setitem__(0, "c"), ["two values are called 'c'"]),
    "twin initializers": (lambda m: setattr(m.graph.initializer[0], "name", "b"), ["two initializers", "'b'"]),
    "undefined input": (lambda m: m.graph.node[1].input.__setitem__(0, "cc"), ["'relu'", "'cc'", "did you mean 'c'"]),
    "undefined output": (lambda m: setattr(m.graph.output[0], "name", "yy"), ["'yy'", "did you mean 'y'"]),
    "no outputs": (lambda m: m.graph.ClearField("output"), ["no outputs"]),
    "huge size": (
        lambda m: setattr(m.graph.input[0].type.tensor_type.shape.dim[2], "dim_value", 2**62),
        ["2^40"],
    ),
    "huge weight": (lambda m: m.graph.initializer[0].dims.__setitem__(0, 2**60), ["'w'", "shape"]),
    "overflowing weight": (lambda m: m.graph.initializer[0].dims.extend([2**62, 2**62]), ["'w'", "shape"]),
    "negative size": (lambda m: m.graph.initializer[0].dims.__setitem__(0, -2), ["'w'", "shape"]),
    "weight of nothing": (
        lambda m: m.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.zeros((0, 3, 3, 3), np.float32), "w")),
        ["'conv'", "no outputs"],
    ),
    "short weight": (lambda m: m.graph.initializer[0].dims.__setitem__(0, 3), ["'w'"]),
    "unknown dtype": (lambda m: setattr(m.graph.initializer[0], "data_type", 99), ["'w'", "99"]),
    "unknown attribute": (
        lambda m: m.graph.node[0].attribute.append(helper.make_attribute("padz", [1])),
        ["'conv'", "'padz'", "did you mean 'pads'"],
    ),
    "wrong attribute": (
        lambda m: m.graph.node[0].attribute[0].CopyFrom(helper.make_attribute("pads", "one")),
        ["'conv'", "'pads'"],
    ),
    "attribute too short": (
        lambda m: m.graph.node[0].attribute[0].CopyFrom(helper.make_attribute("pads", [1])),
        ["'conv'", "pads"],
    ),
    "attribute that is no text": (
        lambda m: m.graph.node[0].attribute.append(helper.make_attribute("auto_pad", b"\xba")),
        ["'conv'", "'auto_pad' should be a str"],
    ),
    "missing input": (lambda m: m.graph.node[0].input.__delitem__(slice(1, None)), ["'conv'", "lacks its input W"]),
    "input too many": (lambda m: m.graph.node[1].input.append("x"), ["'relu'", "2 inputs"]),
    "string input": (
        lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", TensorProto.STRING),
        ["'x'", "string"],
    ),
    "double input": (
        lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", TensorProto.DOUBLE),
        ["'x'", "float64"],
    ),
    "input without shape": (lambda m: m.graph.input[0].type.tensor_type.ClearField("shape"), ["'x'", "no shape"]),
    "wrong channels": (
        lambda m: setattr(m.graph.input[0].type.tensor_type.shape.dim[1], "dim_value", 2),
        ["'conv'", "channels"],
    ),
    "sequence input": (lambda m: m.graph.input[0].type.sequence_type.elem_type.tensor_type, ["'x'", "not a tensor"]),
}
BROKEN["sequence input"] = (
    lambda m: m.graph.input[0].type.CopyFrom(helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, [1]))),
    ["'x'", "not a tensor"],
)


@pytest.mark.parametrize("what", BROKEN)
def test_broken_models(tmp_path: Path, what: str) -> None:
    edit, words = BROKEN[what]
    proto = small()
    edit(proto)
    refused(save(proto, tmp_path), *words)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_numbers_are_named(tmp_path: Path, value: float) -> None:
    proto = small()
    weight = random(2, 1, 3, 3)
    weight[1, 0, 2, 2] = value
    proto.graph.initializer[0].CopyFrom(numpy_helper.from_array(weight, "w"))
    refused(save(proto, tmp_path), "'w'", "contains NaN")


def test_all_unsupported_nodes_are_listed_at_once(tmp_path: Path) -> None:
    nodes = [
        node("RNN", ["x", "w", "r"], ["a"], "rnn", hidden_size=2, activations=["Relu"]),
        node("Relu", ["a"], ["b"], "fine"),
        node("NonZero", ["b"], ["c"], "nz"),
        helper.make_node("FusedThing", ["c"], ["d"], name="fused", domain="com.example"),
        node("MaxPool", ["v"], ["e", "indices"], "pool", kernel_shape=[2, 2]),
        node("MaxUnpool", ["e", "indices"], ["f"], "unpool", kernel_shape=[2, 2]),
        node("Conv", ["volume", "k"], ["y"], "conv4d"),
    ]
    inputs = {"x": [3, 1, 2], "v": ["N", 1, 4, 4], "volume": ["N", 1, 3, 3, 3, 3]}
    constants = {"w": random(1, 2, 2), "r": random(1, 2, 2), "k": random(1, 1, 2, 2, 2, 2)}
    proto = model(nodes, inputs, ["y", "d", "f"], constants)
    proto.opset_import.append(helper.make_opsetid("com.example", 1))
    with pytest.raises(UnsupportedOpsError) as caught:
        load(save(proto, tmp_path))
    lines = str(caught.value).splitlines()[1:]
    assert [line.split(":")[0].strip() for line in lines] == [
        "'rnn' (RNN)",
        "'nz' (NonZero)",
        "'fused' (com.example.FusedThing)",
        "'pool' (MaxPool)",
        "'unpool' (MaxUnpool)",
        "'conv4d' (Conv)",
    ]
    assert "4 spatial dimensions" in str(caught.value)


def test_a_node_may_hold_data_that_are_no_text(tmp_path: Path) -> None:
    """As one that cuts texts into words has a model of its own for that: the file is whole, the op is what lacks."""
    attrs = {"model": b"\x0a\xba\xff", "words": [b"a", b"\xba"], "domain": "ai.onnx.contrib"}
    split = helper.make_node("SentencepieceTokenizer", ["x"], ["ids"], name="tokens", **attrs)
    proto = model([split, node("Relu", ["ids"], ["y"])], {"x": ["N", 4]})
    proto.opset_import.append(helper.make_opsetid("ai.onnx.contrib", 1))
    with pytest.raises(UnsupportedOpsError, match=r"'tokens' \(ai.onnx.contrib.SentencepieceTokenizer\)"):
        load(save(proto, tmp_path))


def test_a_scale_that_is_not_constant_is_refused_by_name(tmp_path: Path) -> None:
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["y"], "q")]
    proto = model(nodes, {"x": ["N", 4], "s": []}, ["y"], {"z": np.uint8(3)})
    with pytest.raises(
        UnsupportedOpsError, match=r"'q' \(QuantizeLinear\): the scale 's' of 'y' is computed at run time"
    ):
        load(save(proto, tmp_path))


@pytest.mark.parametrize(
    "bomb",
    [
        node("ConstantOfShape", ["big"], ["k"]),
        node("Expand", ["one", "big"], ["k"]),
        node("Tile", ["one", "big"], ["k"]),
        node("Range", ["zero", "top", "step"], ["k"]),
        node("Pad", ["one", "pads"], ["k"]),
    ],
    ids=lambda n: n.op_type,
)
def test_a_small_file_cannot_ask_for_a_huge_constant(tmp_path: Path, bomb: object) -> None:
    constants = {
        "big": np.array([2**20, 2**20]),
        "one": random(1, 1),
        "pads": np.array([0, 0, 2**20, 2**20]),
        "zero": np.array(0),
        "top": np.array(2**50),
        "step": np.array(1),
    }
    nodes = [bomb, node("Shape", ["k"], ["y"])]
    refused(save(model(nodes, {}, constants=constants), tmp_path), "2")  # type: ignore[list-item]


HOSTILE = [
    "<script>alert(1)</script>",
    "line\nbreak",
    "\N{SNOWMAN} \u202e name",
    "x" * 10_000,
    "a b%@{}\"'\\",
    "N",
    "main",
]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_survive(tmp_path: Path, name: str) -> None:
    nodes = [node("MatMul", [name, f"{name}.w"], [f"{name}.y"], name), node("Relu", [f"{name}.y"], [f"{name}.z"])]
    path = save(model(nodes, {name: ["N", 3]}, [f"{name}.z"], {f"{name}.w": random(3, 2)}), tmp_path)
    graph = load(path)
    assert graph.inputs == (name,)
    assert [n.name for n in graph.nodes] == [name, f"{name}.z"]
    assert graph.outputs == (f"{name}.z",)
    assert f"{name}.w" in graph.constants


def test_hostile_names_in_errors_are_quoted_and_short(tmp_path: Path) -> None:
    for name in HOSTILE:
        proto = model([node("NonZero", ["x"], [name], name)], {"x": [2]}, [name])
        with pytest.raises(UnsupportedOpsError) as caught:
            load(save(proto, tmp_path))
        assert len(str(caught.value)) < 500
        assert "line\nbreak" not in str(caught.value)


def external(folder: Path, location: str, **entries: str) -> Path:
    proto = small()
    weight = proto.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        weight.external_data.add(key=key, value=value)
    return save(proto, folder)


def test_external_data_inside_the_folder_is_read(tmp_path: Path) -> None:
    data = random(2, 1, 3, 3)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "w.bin").write_bytes(b"1234" + data.tobytes() + b"5678")
    path = external(tmp_path, "deep/w.bin", offset="4", length="72")
    assert np.array_equal(load(path).constants["w"].array, data)
    check(path, {"x": random(3, 1, 4, 4)})


@pytest.mark.parametrize("way", ["absolute", "parent", "symlink", "linked folder", "missing", "a folder", "empty"])
def test_external_data_elsewhere_is_refused(tmp_path: Path, way: str) -> None:
    secret, home = tmp_path / "secret", tmp_path / "home"
    home.mkdir()
    secret.write_bytes(random(2, 1, 3, 3).tobytes())
    (home / "link").symlink_to(secret)
    (home / "way").symlink_to(tmp_path)
    (home / "folder").mkdir()
    locations = {
        "absolute": str(secret),
        "parent": "../secret",
        "symlink": "link",
        "linked folder": "way/secret",
        "missing": "nothing.bin",
        "a folder": "folder",
        "empty": "",
    }
    refused(external(home, locations[way], offset="0", length="72"), "initializer 'w'", "external data")


@pytest.mark.parametrize(
    "entries", [{"offset": "40"}, {"length": "71"}, {"offset": "-4"}, {"offset": "x"}, {"length": "1e9"}]
)
def test_external_data_of_another_size_is_refused(tmp_path: Path, entries: dict[str, str]) -> None:
    (tmp_path / "w.bin").write_bytes(random(2, 1, 3, 3).tobytes())
    refused(external(tmp_path, "w.bin", **entries), "initializer 'w'")


SEED = small().SerializeToString()


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(SEED) - 1), st.integers(0, 255)), max_size=4), st.integers(0, len(SEED)))
@example([], len(SEED))
def test_damaged_files_give_a_graph_or_an_error(tmp_path: Path, edits: list[tuple[int, int]], length: int) -> None:
    data = bytearray(SEED)
    for place, byte in edits:
        data[place] ^= byte
    path = tmp_path / "fuzz.onnx"
    path.write_bytes(data[: length if not edits else None])
    with contextlib.suppress(QBenchError):
        load(path)
