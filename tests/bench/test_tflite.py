"""TFLite files in the benchmark: LiteRT beside qbench, and the float twin."""

from __future__ import annotations

import json

import numpy as np
import pytest

from qbench.bench.subject import find, make_subject
from qbench.cli import main
from qbench.data.arrays import read_arrays
from qbench.frontends import load
from qbench.ir import archive
from qbench.quant.arithmetic import dequantize
from qbench.runtime import interpreter
from tests.tflite_files import Tensor, constant, litert, model, operator

pytest.importorskip("ai_edge_litert", reason="ai-edge-litert has no wheel here")

QUICK = ("--rounds", "2", "--seconds", "0.01", "--threads", "1", "--batch", "1")
RNG = np.random.default_rng(0)


def file(folder, quantized):
    weight = RNG.integers(-127, 128, (5, 3, 3, 4))
    scales = {"scale": 0.05, "zero_point": 3} if quantized else {}
    dtype = "int8" if quantized else "float32"
    bias = constant("b", np.zeros(5, np.int32), scale=0.0005) if quantized else constant("b", np.zeros(5, np.float32))
    tensors = [
        Tensor("image", (1, 8, 8, 4), dtype, **scales),
        constant("w", weight.astype(dtype), **({"scale": 0.01} if quantized else {})),
        bias,
        Tensor("y", (1, 8, 8, 5), dtype, **scales),
    ]
    conv = operator("CONV_2D", ["image", "w", "b"], padding="SAME", stride_w=1, stride_h=1)
    path = folder / f"{dtype}.tflite"
    path.write_bytes(model(tensors, [conv], ["image"]))
    return path


def test_a_quantized_file_runs_in_both_and_its_float_twin_here(tmp_path):
    path = file(tmp_path, quantized=True)
    assert main(["bench", str(path), *QUICK, "--json", str(tmp_path / "f.json")]) == 0
    found = json.loads((tmp_path / "f.json").read_text())
    rows = [(row["engine"], row["dtype"]) for row in found["rows"]]
    assert rows == [("qbench", "int8"), ("qbench", "float32"), ("litert", "int8")] and not found["errors"]
    assert found["ratios"][0]["peer"] == "litert" and found["rows"][0]["gmac_per_s"] > 0
    assert found["settings"][2]["set"] == {"num_threads": 1, "kernels": "XNNPACK"}


def test_a_float_file_is_quantized_here_and_runs_in_both(tmp_path):
    path = file(tmp_path, quantized=False)
    assert main(["bench", str(path), *QUICK, "--peers", "litert,onnxruntime", "--json", str(tmp_path / "f.json")]) == 0
    found = json.loads((tmp_path / "f.json").read_text())
    rows = {(row["engine"], row["dtype"]): row for row in found["settings"]}
    assert list(rows) == [("qbench", "int8"), ("qbench", "float32"), ("litert", "float32")] and not found["errors"]
    assert rows["litert", "float32"]["sqnr_db"] > 100


def test_the_twin_is_fed_with_what_the_integers_stand_for(tmp_path):
    path = file(tmp_path, quantized=True)
    (source,) = find([str(path)], tmp_path, {})
    subject = make_subject(source, tmp_path / "made")
    codes, reals = (read_arrays(subject.inputs(1, dtype)["inputs"])["image"] for dtype in ("int8", "float32"))
    graph = load(path)
    assert codes.dtype == np.int8 and codes.std() > 30
    assert np.array_equal(reals, dequantize(codes, graph.qparams["image"]))
    integers = interpreter.run(archive.load(subject.archive("int8")), {"image": codes})["y"]
    assert np.array_equal(integers, litert(path.read_bytes(), {"image": codes})["y"])
    exact = interpreter.run(archive.load(subject.archive("float32")), {"image": reals})["y"]
    real = dequantize(integers, graph.qparams["y"])
    low, high = graph.qparams["y"].ranges[0]
    assert np.abs(real - exact.clip(low, high)).max() <= 0.5001 * graph.qparams["y"].scales[0]
    assert subject.macs == 8 * 8 * 5 * 3 * 3 * 4
