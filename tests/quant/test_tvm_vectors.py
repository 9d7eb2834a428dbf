"""Vectors from TVM's QNN tests: its own two modes pass all, and the others miss exactly where the file says."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qbench.ir.dtypes import DType
from qbench.ir.qparams import QParams
from qbench.quant.arithmetic import add, dequantize, quantize, requantize, subtract
from qbench.quant.rounding import Rounding

Vector = dict[str, Any]

MODES: dict[str, Rounding] = {
    "UPWARD": "tvm_upward",
    "TONEAREST": "tvm_tonearest",
    "TFL_DOUBLE": "tflite_double",
    "EVEN_F32": "fp32_rne",
}
DTYPES: dict[tuple[int, int], DType] = {(-128, 127): "int8", (0, 255): "uint8", (-32768, 32767): "int16"}

FOLDER = os.environ.get("QBENCH_SHARED_CONFORMANCE", Path(__file__).parents[3] / "shared" / "conformance")
FILE = Path(FOLDER) / "tvm_qnn_vectors.json"
VECTORS: list[Vector] = json.loads(FILE.read_text())["vectors"] if FILE.is_file() else []


def qparams(vector: Vector, scale: float, zero_point: int) -> QParams:
    return QParams(scale, zero_point, DTYPES[tuple(vector["clip"])])


def run_requantize(v: Vector, rounding: Rounding) -> Any:
    x = np.array(v["x"], np.int32).reshape(v.get("shape", -1))
    out = qparams(v, v["out_scale"], v["out_zp"])
    return requantize(x, np.float32(v["in_scale"]), out, rounding, axis=v["axis"], in_zero_point=v["in_zp"])


def run_binary(op: Callable[..., Any]) -> Callable[[Vector, Rounding], Any]:
    def run(v: Vector, rounding: Rounding) -> Any:
        x, y = np.array(v["x"], np.uint8), np.array(v["y"], np.uint8)
        return op(x, y, *(qparams(v, *v[name]) for name in ("lhs", "rhs", "out")), rounding)

    return run


def matmul(v: Vector, other: str) -> Any:
    lhs = np.array(v["x"]).reshape(v["x_shape"]) - v["x_zp"]
    return lhs @ (np.array(v[other]).reshape(v[other + "_shape"]) - v[other + "_zp"]).T


def run_dense(v: Vector, rounding: Rounding) -> Any:
    acc = matmul(v, "k") + v.get("bias", 0)
    if "out_scale" not in v:
        return acc
    scale = np.float64(np.float32(v["in_scale"])) * np.float32(v["k_scale"])
    return requantize(acc, scale, qparams(v, v["out_scale"], v["out_zp"]), rounding, axis=1)


def run_batch_matmul(v: Vector, rounding: Rounding) -> Any:
    acc = matmul(v, "y")
    if "ratio" not in v:
        return acc
    return requantize(acc, v["ratio"][0], qparams(v, v["ratio"][1], v["out_zp"]), rounding)


def run_conv2d(v: Vector, rounding: Rounding) -> Any:
    x = np.array(v["x"]).reshape(v["x_shape"]) - v["x_zp"]
    k = np.array(v["k"]).reshape(v["k_shape"]) - v["k_zp"]
    windows = np.lib.stride_tricks.sliding_window_view(x, k.shape[2:], axis=(2, 3))
    return np.einsum("nchwij,ocij->nohw", windows[:, :, :: v["strides"][0], :: v["strides"][1]], k)


def run_quantize(v: Vector, rounding: Rounding) -> Any:
    return quantize(np.array(v["x"], np.float32), qparams(v, v["scale"], v["zp"]))


def run_dequantize(v: Vector, rounding: Rounding) -> Any:
    return dequantize(np.array(v["x"]), QParams(v["scale"], v["zp"], "int32"))


RUNS: dict[str, Callable[[Vector, Rounding], Any]] = {
    "requantize": run_requantize,
    "requantize_pc": run_requantize,
    "add": run_binary(add),
    "sub": run_binary(subtract),
    "dense": run_dense,
    "batch_matmul": run_batch_matmul,
    "conv2d_nchw_valid": run_conv2d,
    "quantize": run_quantize,
    "dequantize": run_dequantize,
}


def expected(vector: Vector, mode: str) -> Any:
    answers = vector["expected"]
    values = answers.get("any", answers.get(mode, answers.get("TONEAREST")))
    return np.float32(values) if vector["op"] == "dequantize" else np.array(values)


def test_the_file_has_all_its_vectors(shared_conformance: Path) -> None:
    assert len(json.loads((shared_conformance / "tvm_qnn_vectors.json").read_text())["vectors"]) == 56


@pytest.mark.parametrize("mode", ["UPWARD", "TONEAREST"])
@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["id"])
def test_tvm_modes_give_what_tvm_gives(vector: Vector, mode: str) -> None:
    actual = RUNS[vector["op"]](vector, MODES[mode])
    np.testing.assert_array_equal(np.ravel(actual), expected(vector, mode), strict=vector["op"] == "dequantize")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["id"])
def test_each_mode_misses_as_often_as_the_file_says(vector: Vector, mode: str) -> None:
    actual = RUNS[vector["op"]](vector, MODES[mode])
    assert np.count_nonzero(np.ravel(actual) != expected(vector, mode)) == vector["mismatches_by_mode"][mode]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["id"])
def test_tflite_single_is_tvm_upward_on_every_vector(vector: Vector) -> None:
    run = RUNS[vector["op"]]
    np.testing.assert_array_equal(run(vector, "tflite_single"), run(vector, "tvm_upward"))


def test_batches_do_not_change_a_row() -> None:
    for vector in VECTORS:
        for size in vector.get("batch_sizes", ()):
            one = RUNS["batch_matmul"](vector, "tvm_upward")
            many = vector | {"x": vector["x"] * size, "x_shape": [4 * size, 5]}
            np.testing.assert_array_equal(RUNS["batch_matmul"](many, "tvm_upward"), np.tile(one, (size, 1)))
