"""A TFLite file computed as other runtimes would: other roundings and forms, the same names and scales."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import qbench as qb
from qbench.errors import ModelError
from qbench.quant.semantics import Semantics
from qbench.runtime.interpreter import run
from tests.frontends.tflite.checking import check, save
from tests.frontends.tflite.networks import quantized
from tests.tflite_files import Operator, Tensor, model, operator

ROUNDINGS = {"onnx": "fp32_rne", "tvm": "tvm_upward"}


@pytest.mark.parametrize("semantics", ["onnx", "tvm"])
def test_the_arithmetic_is_the_users_choice(tmp_path: Path, semantics: Semantics) -> None:
    parts, operators = quantized()
    path = save(model(parts, operators[:-1], outputs=["logits"]), tmp_path)
    ours, theirs = qb.load(path), qb.load(path, semantics=semantics)
    tensors = [tensor.name for tensor in parts[:-1] if tensor.data is None]
    assert set(tensors) <= set(theirs.types)
    assert {name: theirs.qparams[name] for name in tensors} == {name: ours.qparams[name] for name in tensors}
    rounding = {node.attrs["rounding"] for node in theirs.nodes if node.op == "qnn.requantize"}
    assert rounding == {ROUNDINGS[semantics]}
    x = np.random.default_rng(0).integers(-128, 128, (3, 4, 4, 2)).astype(np.int8)
    got, want = (run(graph, {"x": x}, keep=["c", "a", "p"]) for graph in (theirs, ours))
    for name in ("c", "a", "p"):
        assert np.abs(got[name].astype(int) - want[name]).max() <= 1
    assert np.array_equal(qb.plan(theirs).run(x)["logits"], got["logits"])


def test_an_unknown_semantics_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="'torch' is none of tflite, onnx, tvm"):
        qb.load(save(model(*quantized()), tmp_path), semantics="torch")  # type: ignore[arg-type]


def test_an_unknown_layout_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="'NHWC'"):
        qb.load(save(model(*quantized()), tmp_path), layout="NHWC")  # type: ignore[arg-type]


def image_in_and_out() -> tuple[list[Tensor], list[Operator]]:
    tensors = [Tensor("x", (1, 4, 6, 3)), Tensor("h", (1, 4, 6, 3)), Tensor("y", (1, 4, 6, 3))]
    return tensors, [operator("TANH", ["x"], ["h"]), operator("ABS", ["h"], ["y"])]


def test_images_keep_the_files_layout_at_both_ends(tmp_path: Path) -> None:
    graph = qb.load(save(model(*image_in_and_out()), tmp_path))
    assert [node.op for node in graph.nodes] == ["transpose", "tanh", "abs", "transpose"]
    assert {name: graph.types[name].shape for name in ("x", "h", "y")} == {
        "x": (1, 4, 6, 3),
        "h": (1, 3, 4, 6),
        "y": (1, 4, 6, 3),
    }
    assert graph.types["x.nchw"].shape == graph.types["y.nchw"].shape == (1, 3, 4, 6)


def test_images_have_their_channels_first_where_asked(tmp_path: Path) -> None:
    graph = qb.load(save(model(*image_in_and_out()), tmp_path), layout="NCHW")
    assert [node.op for node in graph.nodes] == ["tanh", "abs"]
    assert graph.types["x"].shape == graph.types["y"].shape == (1, 3, 4, 6)


@pytest.mark.parametrize("opened", ["by the file", "by the caller"])
def test_the_batch_may_be_open(tmp_path: Path, opened: str) -> None:
    tensors, operators = quantized()
    if opened == "by the caller":
        tensors[0] = Tensor("x", (1, 4, 4, 2), "int8", scale=0.05, zero_point=3)
    path = save(model(tensors, operators), tmp_path)
    graph = qb.load(path, shapes={"x": ("N", 4, 4, 2)} if opened == "by the caller" else None)
    assert graph.types["y"].shape == ("N", 5)


def test_a_shape_that_no_other_batch_fills_means_that_the_batch_is_one(tmp_path: Path) -> None:
    x = np.arange(12, dtype=np.float32).reshape(1, 12)
    tensors = [Tensor("x", (1, 12), signature=(-1, 12)), Tensor("rows", (4, 3)), Tensor("y", (4, 3))]
    operators = [operator("RESHAPE", ["x"], ["rows"], new_shape=(4, 3)), operator("EXP", ["rows"], ["y"])]
    graph = check(save(model(tensors, operators, ["x"], ["y"]), tmp_path), {"x": x})
    assert graph.types["x"].shape == (1, 12)


def test_a_shape_that_states_a_batch_of_one_means_an_open_batch(tmp_path: Path) -> None:
    tensors = [Tensor("x", (1, 2, 2, 3)), Tensor("y", (1, 12))]
    path = save(model(tensors, [operator("RESHAPE", ["x"], new_shape=(1, 12))]), tmp_path)
    assert qb.load(path, shapes={"x": ("N", 2, 2, 3)}).types["y"].shape == ("N", 12)
