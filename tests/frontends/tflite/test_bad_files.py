"""Whatever is wrong with a TFLite file becomes one clear error that names the tensor or the operator."""

from __future__ import annotations

import contextlib
import dataclasses
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from qbench.errors import ModelError, QBenchError, UnsupportedOpsError
from qbench.frontends import load
from qbench.frontends.tflite import reading
from qbench.frontends.tflite.guard import Budget, Guard
from qbench.frontends.tflite.sparse import Sparsity
from tests.frontends.test_bad_files import HOSTILE
from tests.frontends.tflite.checking import check, save
from tests.frontends.tflite.networks import Parts, quantized, real
from tests.tflite_files import Operator, Tensor, constant, model, operator

FILE = model(*quantized())


def refused(folder: Path, data: bytes, *words: str) -> ModelError:
    with pytest.raises(ModelError) as caught:
        load(save(data, folder))
    for word in words:
        assert word in str(caught.value)
    return caught.value


def changed(name: str, parts: Parts | None = None, **fields: Any) -> bytes:
    """The small network with one tensor that is otherwise."""
    tensors, operators = parts or quantized()
    return model([dataclasses.replace(t, **fields) if t.name == name else t for t in tensors], operators)


def rewired(index: int, **fields: Any) -> bytes:
    """The small network with one operator that is otherwise."""
    tensors, operators = quantized()
    operators[index] = dataclasses.replace(operators[index], **fields)
    return model(tensors, operators)


@pytest.mark.parametrize("parts", [quantized, real])
def test_the_small_networks_are_fine(tmp_path: Path, parts: Callable[[], Parts]) -> None:
    load(save(model(*parts()), tmp_path))


def test_the_content_decides_what_a_file_is(tmp_path: Path) -> None:
    assert load(save(FILE, tmp_path, "model.onnx")).outputs == ("y",)


def test_without_the_parser_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tflite", None)
    reading._parser.cache_clear()
    refused(tmp_path, FILE, "pip install 'qbench[tflite]'")


def test_every_truncation_is_an_error(tmp_path: Path) -> None:
    for length in range(8, len(FILE) - 1, 19):
        refused(tmp_path, FILE[:length])


BROKEN: dict[str, tuple[bytes, list[str]]] = {
    "no elements, but too large a shape": (
        changed("w", shape=(0, 2**31 - 1, 2**31 - 1, 2**31 - 1), raw=b""),
        ["'w'", "too large"],
    ),
    "version": (model(*quantized(), version=2), ["version 2", "version 3"]),
    "subgraphs": (model(*quantized(), subgraphs=2), ["2 subgraphs"]),
    "no subgraph": (model(*quantized(), subgraphs=0), ["0 subgraphs"]),
    "no outputs": (model(*quantized(), outputs=[]), ["no outputs"]),
    "twin outputs": (model(*quantized(), outputs=["y", "y"]), ["'y'", "twice", "outputs"]),
    "twin inputs": (model(*quantized(), inputs=["x", "x"]), ["'x'", "twice", "inputs"]),
    "input that is made": (model(*quantized(), inputs=["x", "c"]), ["'c'", "there already"]),
    "missing input": (model(*quantized(), inputs=[]), ["'c'", "'x'", "made by nothing"]),
    "sparse": (changed("w", sparse=Sparsity((), (), ())), ["sparse", "'w'"]),
    "no such buffer": (changed("w", buffer=99), ["'w'", "buffer 99"]),
    "short buffer": (changed("w", raw=b"123"), ["'w'", "54 bytes", "has 3"]),
    "long buffer": (changed("b", raw=bytes(16)), ["'b'", "12 bytes", "has 16"]),
    "element type": (changed("w", dtype=42, raw=b"123"), ["'w'", "type 42"]),
    "strings": (changed("w", dtype=5, raw=b"123"), ["'w'", "string"]),
    "negative size": (changed("x", shape=(1, -4, 4, 2), signature=None), ["'x'", "-4"]),
    "huge size": (changed("x", shape=(1, 2**30, 2**30, 2), signature=None), ["2^40"]),
    "zero scale": (changed("c", scale=0.0), ["'c'", "scale 0.0"]),
    "negative scale": (changed("w", scale=[0.1, -0.2, 0.1]), ["'w'", "scale -0.2", "index 1"]),
    "scale that is no number": (changed("c", scale=np.nan), ["'c'", "scale nan"]),
    "infinite scale": (changed("c", scale=np.inf), ["'c'", "scale inf"]),
    "zero point": (changed("c", zero_point=128), ["'c'", "zero point 128", "int8"]),
    "too few scales": (changed("w", scale=[0.1, 0.2]), ["'w'", "2 scales", "axis 0", "3"]),
    "quantized axis": (changed("w", axis=4), ["'w'", "axis 4"]),
    "negative quantized axis": (changed("w", axis=-1), ["'w'", "axis -1"]),
    "scales along another axis": (changed("w", axis=1), ["'c' (CONV_2D)", "'w'", "axis 1", "along 0"]),
    "activations per axis": (changed("c", scale=[0.1] * 3, axis=3), ["'c'", "per axis"]),
    "weights without scale": (changed("w", scale=None), ["'w'", "int8 without a scale"]),
    "result of another type": (changed("flat", dtype="int16", zero_point=0), ["'flat'", "int16", "int8"]),
    "bias of another type": (changed("b", dtype="int16", scale=None), ["'b'", "int16", "int32"]),
    "bias of another length": (
        changed("b", shape=(2,), data=np.zeros(2, np.int32), scale=None),
        ["'b'", "2 elements", "3 channels"],
    ),
    "filters of another shape": (changed("w", shape=(3, 6, 3), axis=0), ["'w'", "4 dimensions"]),
    "filters for other channels": (changed("w", shape=(3, 3, 1, 6)), ["'w'", "'x'", "2 channels"]),
    "shape that does not fill": (changed("shape", data=np.array([-1, 5], np.int32)), ["'p'", "5"]),
    "no such tensor": (rewired(0, inputs=[99, 1, 2]), ["tensor 99 of 12"]),
    "negative tensor": (rewired(0, outputs=[-7]), ["tensor -7 of 12"]),
    "made twice": (rewired(1, outputs=["c"]), ["'c'", "there already"]),
    "reads its own result": (rewired(1, inputs=["a", "a"]), ["'a'", "made only after it"]),
    "no results": (rewired(1, outputs=[]), ["ADD", "makes no tensor"]),
    "too many results": (rewired(4, outputs=["logits", "a"]), ["there already"]),
    "too many inputs": (rewired(0, inputs=["x", "w", "b", "b"]), ["'c' (CONV_2D)", "4 inputs"]),
    "absent input": (rewired(1, inputs=["c", ""]), ["'a' (ADD)", "lacks its input rhs"]),
    "no strides": (rewired(0, options={}), ["'c' (CONV_2D)", "strides (0, 0)"]),
    "activation": (rewired(1, options={"fused_activation_function": 9}), ["'a' (ADD)", "activation 9"]),
    "padding": (rewired(2, options={"padding": 7}), ["'p' (AVERAGE_POOL_2D)", "padding 7"]),
    "beta": (rewired(5, options={"beta": np.nan}), ["'y' (SOFTMAX)", "beta is nan"]),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_files(tmp_path: Path, case: str) -> None:
    data, words = BROKEN[case]
    refused(tmp_path, data, *words)


AXES = {
    "CONCATENATION": (["x", "x"], {"axis": 4}),
    "MEAN": (["x", "axis"], {}),
    "EXPAND_DIMS": (["x", "axis"], {}),
    "SPLIT": (["axis", "x"], {"num_splits": 1}),
    "GATHER": (["x", "axis"], {"axis": -5}),
    "PACK": (["x", "x"], {"axis": 6, "values_count": 2}),
    "UNPACK": (["x"], {"axis": 5, "num": 1}),
    "SQUEEZE": (["x"], {"squeeze_dims": (9,)}),
}


@pytest.mark.parametrize("op", AXES)
def test_an_axis_out_of_range_names_the_operator(tmp_path: Path, op: str) -> None:
    inputs, options = AXES[op]
    tensors = [Tensor("x", (1, 2, 3, 4)), constant("axis", np.array([7], np.int32)), Tensor("y", (1,))]
    refused(tmp_path, model(tensors, [operator(op, inputs, **options)]), f"'y' ({op})")


def test_everything_unsupported_is_listed_at_once(tmp_path: Path) -> None:
    tensors = [Tensor(name, (2, 3)) for name in "xabcdey"]
    operators = [
        operator("LSTM", ["x"], ["a"]),
        Operator("CUSTOM", ["x"], ["b"], custom="Flex<Thing>"),
        operator("199", ["x"], ["c"]),
        operator("250", ["x"], ["d"]),
        operator("ADD", ["a", "b"], ["e"]),
        operator("WHERE", ["e"], ["y"]),
    ]
    with pytest.raises(UnsupportedOpsError) as caught:
        load(save(model(tensors, operators), tmp_path))
    assert [line.strip() for line in str(caught.value).splitlines()[1:]] == [
        "'a' (LSTM)",
        "'b' (custom.Flex<Thing>)",
        "'c' (STABLEHLO_SORT)",
        "'d' (builtin operator 250)",
        "'y' (WHERE)",
    ]


def test_hybrid_operators_compute_with_the_real_numbers_of_their_weights(tmp_path: Path) -> None:
    """LiteRT rounds their input to 8 bits in every run, so that it agrees within that."""
    rng = np.random.default_rng(0)
    weights = rng.integers(-127, 128, (4, 3, 3, 8), np.int8), rng.integers(-127, 128, (2, 64), np.int8)
    tensors = [
        Tensor("x", (1, 4, 4, 8)),
        constant("w", weights[0], scale=(0.01, 0.02, 0.03, 0.01), zero_point=(0,) * 4),
        constant("b", np.zeros(4, np.float32)),
        Tensor("h", (1, 4, 4, 4)),
        constant("v", weights[1], scale=0.1),
        Tensor("y", (1, 2)),
    ]
    window = {"padding": "SAME", "stride_w": 1, "stride_h": 1}
    operators = [operator("CONV_2D", ["x", "w", "b"], ["h"], **window), operator("FULLY_CONNECTED", ["h", "v"], ["y"])]
    path = save(model(tensors, operators), tmp_path)
    graph = check(path, {"x": rng.standard_normal((1, 4, 4, 8)).astype(np.float32)}, tolerance=0.02)
    assert [node.op for node in graph.nodes if node.op.startswith("nn.")] == ["nn.conv2d", "nn.bias_add", "nn.dense"]
    np.testing.assert_array_equal(graph.constants["v"].array, weights[1] * np.float32(0.1))


def test_weights_stored_in_fewer_bits_are_fine(tmp_path: Path) -> None:
    """Dequantized weights are constants: the model computes in float."""
    tensors = [
        Tensor("x", (1, 8)),
        constant("half", np.full((4, 8), 1.5, np.float16)),
        Tensor("w", (4, 8)),
        Tensor("y", (1, 4)),
    ]
    operators = [operator("DEQUANTIZE", ["half"], ["w"]), operator("FULLY_CONNECTED", ["x", "w"])]
    graph = load(save(model(tensors, operators), tmp_path))
    assert [node.op for node in graph.nodes] == ["nn.dense"]
    assert graph.constants["w"].array.dtype == np.float32


def test_sums_that_leave_32_bits_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A bias at the end of the range, as dead channels have it, is fine where the output is at its end too."""
    tensors, operators = quantized()
    big = np.full(3, 2**31 - 1, np.int32)
    bias = load(save(changed("b", data=big, scale=None), tmp_path)).constants["b"].array
    assert np.all((bias > 2**30) & (bias < 2**31 - 1))
    tensors = [dataclasses.replace(t, data=big, scale=None) if t.name == "b" else t for t in tensors]
    assert "32 bits" not in caplog.text
    graph = load(save(changed("c", (tensors, operators), scale=1e6), tmp_path))
    assert "sums with 'w' may leave 32 bits" in caplog.text
    assert "int64" in {q.dtype for q in graph.qparams.values()}


def test_tensors_without_a_name_or_with_the_same_get_one(tmp_path: Path) -> None:
    tensors = [Tensor("t", (2, 3)), Tensor("", (2, 3)), Tensor("t", (2, 3)), Tensor("t", (2, 3))]
    operators = [operator("TANH", [0], [1]), operator("TANH", [1], [2]), operator("TANH", [2], [3])]
    data = model(tensors, operators, inputs=[0], outputs=[3])  # type: ignore[list-item]
    graph = load(save(data, tmp_path))
    assert list(graph.activations()) == ["t", "tensor_1", "t.2", "t.3"]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_survive(tmp_path: Path, name: str) -> None:
    tensors = [Tensor(name, (2, 3)), Tensor(f"{name}.y", (2, 3))]
    data = model(tensors, [operator("TANH", [name], [f"{name}.y"])], [name], [f"{name}.y"])
    graph = load(save(data, tmp_path))
    assert (graph.inputs, graph.outputs) == ((name,), (f"{name}.y",))
    assert graph.nodes[0].name == f"{name}.y"
    bad = model(tensors, [operator("WHERE", [name], [f"{name}.y"])], [name], [f"{name}.y"])
    error = refused(tmp_path, bad)
    assert len(str(error)) < 500
    assert "line\nbreak" not in str(error)


def test_offsets_that_lead_anywhere_are_errors(tmp_path: Path) -> None:
    """Every word of the file, replaced by numbers that are too large, negative, or lead back."""
    for place in range(8, len(FILE) - 4, 12):
        for word in (0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, len(FILE), 0):
            data = bytearray(FILE)
            struct.pack_into("<I", data, place, word)
            with contextlib.suppress(QBenchError):
                load(save(bytes(data), tmp_path))


def test_a_file_that_repeats_itself_is_refused() -> None:
    """Thousands of tensors may share one name of a megabyte: reading them all would take gigabytes."""
    text = struct.pack("<II", 4, 2**20) + bytes(2**20)
    guard = Guard(text, 0, Budget(len(text)))
    with pytest.raises(ModelError, match="same bytes too often"):
        for _ in range(100):
            guard.String(0)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(FILE) - 1), st.integers(0, 255)), max_size=4), st.integers(0, len(FILE)))
@example([], len(FILE))
def test_damaged_files_give_a_graph_or_an_error(tmp_path: Path, edits: list[tuple[int, int]], length: int) -> None:
    data = bytearray(FILE)
    for place, byte in edits:
        data[place] ^= byte
    with contextlib.suppress(QBenchError):
        load(save(bytes(data[: length if not edits else None]), tmp_path))


def test_the_damaged_file_is_named(tmp_path: Path) -> None:
    path = save(FILE[: len(FILE) // 2], tmp_path)
    with pytest.raises(ModelError, match=rf"'.*{path.name}': the file is damaged or cut off"):
        load(path)


def test_a_shape_of_another_rank_and_a_name_in_capitals(tmp_path: Path) -> None:
    path = save(FILE, tmp_path).rename(tmp_path / "MODEL.TFLITE")
    (name,), rank = load(path).inputs, len(load(path).types[load(path).inputs[0]].shape)
    with pytest.raises(ModelError, match=f"shapes: that of input .* is a tuple of {rank} sizes, not {rank + 1}"):
        load(path, shapes={name: (1,) * (rank + 1)})
