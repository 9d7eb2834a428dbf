"""Sessions of files that other tools, or qbench itself, have quantized: untouched, they compute the same bits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

from qbench.cli import main
from qbench.frontends import load
from qbench.ir.graph import Graph
from qbench.runtime.interpreter import run
from qbench.session.export import export_onnx, export_tflite
from qbench.session.session import Session
from tests.tflite_files import Tensor, litert, model, operator

KINDS = {
    "qdq": {"quant_format": QuantFormat.QDQ, "per_channel": True},
    "int8": {"activation_type": QuantType.QInt8, "weight_type": QuantType.QInt8},
    "uint8": {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QUInt8},
    "operators": {"quant_format": QuantFormat.QOperator, "reduce_range": True},  # else saturates without VNNI
    "ours": None,
}
TFLITE = (
    "mlperf_tiny/ad_autoencoder_int8", "mlperf_tiny/ic_resnet8_int8", "mlperf_tiny/kws_dscnn_old_int8",
    "mlperf_tiny/vww_mobilenetv1_025_int8", "tflite/mobilenet_v1_0.25_128_quant", "tflite/mobilenet_v2_1.0_224_quant",
)  # fmt: skip


class Reader(CalibrationDataReader):
    def __init__(self, name: str, x: np.ndarray) -> None:
        self._items: Iterator[dict[str, np.ndarray]] = ({name: row[None]} for row in x)

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._items, None)


def quantized_file(source: Path, x: np.ndarray, kind: str, folder: Path) -> Path:
    path, graph = folder / f"{kind}.onnx", load(source)
    options = KINDS[kind]
    if options is None:
        return export_onnx(Session(graph, x), path)
    quantize_static(str(source), str(path), Reader(graph.inputs[0], x), **options)
    return path


def assert_same(graph: Graph, session: Session, x: np.ndarray) -> None:
    feeds = {graph.inputs[0]: x}
    given, found = run(graph, feeds), run(session.graph, feeds)
    for name, array in given.items():
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.filterwarnings("ignore")  # onnxruntime's quantizer warns of what it does itself
@pytest.mark.parametrize("kind", KINDS)
def test_onnx_files(data_dir: Path, tmp_path: Path, kind: str) -> None:
    x = np.load(data_dir / "mnist_evaluation.npz")["x"][:24]
    path = quantized_file(data_dir / "mnist_cnn.onnx", x, kind, tmp_path)
    graph = load(path)
    session = Session(graph, x)
    assert_same(graph, session, x)
    (real,), (made,) = (run(one, {graph.inputs[0]: x}).values() for one in (session.prepared, session.graph))
    assert np.square(real).sum() > 1000 * np.square(real - made).sum()
    report = session.run(progress=False)
    layer = next(layer for layer in report.by_layer if layer.op == "nn.conv2d")
    session.override(layer.name, keep_float=True)
    assert session.run(progress=False).layer(layer.name).runs_as == "float32"
    session.undo()
    again = export_onnx(session, tmp_path / "again.onnx")
    before, after = (onnxruntime.InferenceSession(str(one)).run(None, {graph.inputs[0]: x})[0] for one in (path, again))
    np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize("name", TFLITE)
def test_tflite_files(shared_data: Path, name: str) -> None:
    """Every integer on the way is the file's, but for what comes after a softmax."""
    graph = load(shared_data / "models" / f"{name}.tflite")
    kind = graph.types[graph.inputs[0]]
    shape = [2 if isinstance(size, str) else size for size in kind.shape]
    info = np.iinfo(kind.dtype)
    x = np.random.default_rng(0).integers(info.min, info.max + 1, shape).astype(kind.dtype)
    session = Session(graph, x)
    ours, theirs = session.quantized().qnn, graph
    assert set(ours.nodes) == set(theirs.nodes)
    assert ours.constants == theirs.constants
    assert ours.qparams == theirs.qparams
    assert ours.input_types() == theirs.input_types()


FIXED = {"SOFTMAX": (1 / 256, -128), "LOG_SOFTMAX": (1 / 16, 127), "L2_NORMALIZATION": (1 / 128, 0)}


@pytest.mark.parametrize("op", FIXED)
def test_operators_that_make_one_scale_alone(tmp_path: Path, op: str) -> None:
    """Another scale comes from a requantize behind them, in LiteRT too; in float they are what they stand for."""
    scale, zero = FIXED[op]
    ends = (
        Tensor("x", (4, 16), "int8", scale=0.05, zero_point=3),
        Tensor("y", (4, 16), "int8", scale=scale, zero_point=zero),
    )
    (tmp_path / "model.tflite").write_bytes(
        model([*ends], [operator(op, ["x"], ["y"], **({"beta": 1.0} if op == "SOFTMAX" else {}))])
    )
    graph, x = load(tmp_path / "model.tflite"), np.random.default_rng(0).integers(-128, 128, (4, 16)).astype(np.int8)
    session = Session(graph, x)
    assert_same(graph, session, x)
    layer = graph.nodes[-1].name
    real = run(session.prepared, {"x": (x - 3.0).astype(np.float32) * np.float32(0.05)})["y"]
    made = run(graph, {"x": x})["y"]
    assert np.abs(scale * (made.astype(np.float64) - zero) - real).max() < 2.5 * scale
    session.override("y", scale=1.25 * scale, zero_point=zero)
    again = run(session.graph, {"x": x})["y"]
    np.testing.assert_array_equal(again, np.rint((made.astype(np.int64) - zero) / 1.25) + zero)
    theirs = litert(export_tflite(session, tmp_path / "again.tflite").read_bytes(), {"x": x})["y"]
    np.testing.assert_array_equal(theirs, again)
    session.override(layer, keep_float=True)
    assert [node.op for node in session.graph.nodes if node.reason] == [session.prepared.node(layer).op]


def test_the_command_line_takes_a_quantized_file_and_writes_one(shared_data: Path, tmp_path: Path) -> None:
    source = shared_data / "models/mlperf_tiny/ad_autoencoder_int8.tflite"
    x = np.random.default_rng(0).integers(-128, 128, (4, 640)).astype(np.int8)
    np.save(tmp_path / "x.npy", x)
    arguments = ["quantize", str(source), "--calibration", str(tmp_path / "x.npy"), "--out", str(tmp_path / "out")]
    assert main([*arguments, "--tflite"]) == 0
    written = (tmp_path / "out" / "model.tflite").read_bytes()
    before, after = litert(source.read_bytes(), {"input_1": x}), litert(written, {"input_1": x})
    np.testing.assert_array_equal(after["Identity"], before["Identity"])
