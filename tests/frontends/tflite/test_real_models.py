"""Models of other people: names, types and scales as the file has them, and LiteRT's numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tflite

from qbench.cli import main
from qbench.frontends import load
from tests.frontends.tflite.checking import check
from tests.tflite_files import TYPES

FLOAT = ("ad_autoencoder_fp32", "ic_resnet8_fp32", "vww_mobilenetv1_025_fp32")
QUANTIZED = (
    *("mlperf_tiny/ad_autoencoder_int8", "mlperf_tiny/ic_resnet8_int8", "mlperf_tiny/kws_dscnn_old_int8"),
    *("mlperf_tiny/vww_mobilenetv1_025_int8", "tflite/mobilenet_v1_0.25_128_quant"),
    *("tflite/mobilenet_v1_0.5_160_quant", "tflite/mobilenet_v2_1.0_224_quant"),
)


def model_path(shared_data: Path, name: str) -> Path:
    return shared_data / "models" / f"{name}.tflite"


@pytest.mark.parametrize("name", FLOAT)
def test_float_models_give_what_litert_gives(shared_data: Path, name: str) -> None:
    path = model_path(shared_data, f"mlperf_tiny/{name}")
    graph = load(path)
    shape = tuple(1 if isinstance(size, str) else size for size in graph.types[graph.inputs[0]].shape)
    x = np.random.default_rng(0).random(shape, np.float32) * (255 if name.startswith("ic") else 1)
    check(path, {graph.inputs[0]: x})


@pytest.mark.parametrize("name", QUANTIZED)
def test_quantized_models_keep_names_types_and_scales(shared_data: Path, name: str) -> None:
    path = model_path(shared_data, name)
    graph = load(path)
    file = tflite.Model.GetRootAs(path.read_bytes(), 0)
    subgraph = file.Subgraphs(0)
    seen = 0
    types = {number: dtype for dtype, number in TYPES.items()}
    for index in range(subgraph.TensorsLength()):
        tensor = subgraph.Tensors(index)
        label = tensor.Name().decode()
        if label not in graph.types:
            assert types[tensor.Type()] == "int32"  # the shape of a reshape has become its attribute
            continue
        seen += 1
        assert graph.types[label].dtype == types[tensor.Type()]
        q, quantization = graph.qparams[label], tensor.Quantization()
        if types[tensor.Type()] == "int32":  # a bias: its scale follows from the others, exactly
            assert np.allclose(q.scales, quantization.ScaleAsNumpy(), rtol=1e-6)
            continue
        assert q.scales == tuple(quantization.ScaleAsNumpy().tolist())
        assert set(q.zero_points) == set(quantization.ZeroPointAsNumpy().tolist())
    assert seen >= subgraph.TensorsLength() - 2
    assert {node.name for node in graph.nodes} >= {
        subgraph.Tensors(subgraph.Operators(i).Outputs(0)).Name().decode() for i in range(subgraph.OperatorsLength())
    }


def test_inspect_shows_a_quantized_model(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(model_path(shared_data, "mlperf_tiny/ic_resnet8_int8"))]) == 0
    shown = capsys.readouterr().out
    assert "qnn.conv2d" in shown
    assert "input_1_int8" in shown
