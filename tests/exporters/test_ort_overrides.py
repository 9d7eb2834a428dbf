"""onnxruntime's quantizer takes our encodings as they are."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

from qbench.errors import ExportError
from qbench.exporters import tensor_quant_overrides, write_onnx, write_tensor_quant_overrides
from qbench.ir.frozen import FrozenMap
from qbench.ir.qparams import QParams
from qbench.quant.encodings import Encoding
from tests.exporters.parity import quantized
from tests.frontends.models import load


class Reader(CalibrationDataReader):
    def __init__(self, x: np.ndarray) -> None:
        self.batches: Iterator[dict[str, np.ndarray]] = iter([{"x": x}])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self.batches, None)


def test_onnxruntime_quantizes_with_our_scales(data_dir: Path, tmp_path: Path) -> None:
    x = np.load(data_dir / "mnist_calibration.npz")["x"][:20]
    model = quantized(load(data_dir / "mnist_mlp.onnx"), x)
    float_path = write_onnx(model.prepared, tmp_path / "float.onnx")
    path = write_tensor_quant_overrides(model.encodings, tmp_path / "overrides.json")
    overrides = json.loads(path.read_text())["TensorQuantOverrides"]
    assert overrides == tensor_quant_overrides(model.encodings)
    for entries in overrides.values():
        for entry in entries:
            entry["quant_type"] = QuantType.from_string(entry["quant_type"])
            entry["scale"] = np.array(entry["scale"], np.float32)
            entry["zero_point"] = np.array(entry["zero_point"])
    logging.disable(logging.WARNING)
    quantize_static(
        float_path,
        tmp_path / "q.onnx",
        Reader(x),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        extra_options={"TensorQuantOverrides": overrides},
    )
    logging.disable(logging.NOTSET)
    made = {i.name: numpy_helper.to_array(i) for i in onnx.load(tmp_path / "q.onnx").graph.initializer}
    for tensor, encoding in model.encodings.items():
        np.testing.assert_array_equal(made[f"{tensor}_scale"], np.float32(encoding.qparams.scale))
        np.testing.assert_array_equal(made[f"{tensor}_zero_point"], encoding.qparams.zero_point)


def encoding(q: QParams) -> Encoding:
    return Encoding(q, "test", None, "max")


def test_entries() -> None:
    encodings = FrozenMap(
        {
            "a": encoding(QParams(0.5, 3, "uint8")),
            "w": encoding(QParams((0.25, 1.0), (0, 1), "int4", 0)),
        }
    )
    assert tensor_quant_overrides(encodings) == {
        "a": [{"quant_type": "QUInt8", "scale": 0.5, "zero_point": 3}],
        "w": [
            {"quant_type": "QInt4", "axis": 0, "scale": 0.25, "zero_point": 0},
            {"quant_type": "QInt4", "axis": 0, "scale": 1.0, "zero_point": 1},
        ],
    }


def test_what_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"'a'.*int32"):
        tensor_quant_overrides(FrozenMap({"a": encoding(QParams(0.5, 3, "int32"))}))
    with pytest.raises(ExportError, match="absent"):
        write_tensor_quant_overrides(FrozenMap(), tmp_path / "absent" / "o.json")
