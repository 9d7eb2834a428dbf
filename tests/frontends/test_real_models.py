"""Every float model of the shared data gives onnxruntime's outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from qbench.frontends import load
from tests.frontends.models import check, random

MODELS = {
    "cifar/resnet20_cifar10_bn.onnx": (2, 3, 32, 32),
    "mlperf_tiny/ad_autoencoder_fp32.onnx": (2, 640),
    "mlperf_tiny/ic_resnet8_fp32.onnx": (2, 3, 32, 32),
    "mlperf_tiny/kws_dscnn_fp32_bn.onnx": (2, 1, 49, 10),
    "mlperf_tiny/vww_mobilenetv1_025_fp32.onnx": (2, 3, 96, 96),
    "zoo/mtcnn_onet.onnx": (2, 48, 48, 3),
    "zoo/ort_mnist.onnx": (1, 1, 28, 28),
    "zoo/ort_superresolution_core_op18.onnx": (1, 1, 224, 224),
    "zoo/ort_ultraface_rfb320.onnx": (1, 3, 240, 320),
    "zoo/rapidocr_cls.onnx": (1, 3, 48, 192),
}


def images(shared_data: Path, count: int, size: tuple[int, int] = (224, 224)) -> np.ndarray:
    """Real images, N,3,H,W in 0..255."""
    paths = sorted((shared_data / "imagenet" / "dev").glob("*.jpg"))[:count]
    pixels = [np.asarray(Image.open(path).convert("RGB").resize(size), np.float32) for path in paths]
    return np.stack(pixels).transpose(0, 3, 1, 2)


@pytest.mark.parametrize("name", MODELS)
def test_random_input(shared_data: Path, name: str) -> None:
    path = shared_data / "models" / name
    (given,) = load(path).inputs
    check(path, {given: random(*MODELS[name])})


def test_efficientnet_on_images(shared_data: Path) -> None:
    x = (images(shared_data, 2) - 127) / np.float32(128)
    check(shared_data / "models/imagenet/efficientnet_lite0_bn.onnx", {"input": x})


def test_squeezenet_on_images(shared_data: Path) -> None:
    x = images(shared_data, 2)[:, ::-1] - np.float32([104, 117, 123]).reshape(3, 1, 1)
    check(shared_data / "models/imagenet/squeezenet1.1_fp32_opset13.onnx", {"data_0": np.ascontiguousarray(x)})


def test_the_networks_of_the_repository(data_dir: Path) -> None:
    x = np.load(data_dir / "mnist_evaluation.npz")["x"][:5]
    for name in ("mnist_mlp.onnx", "mnist_cnn.onnx"):
        assert f"{check(data_dir / name, {'x': x}).title}.onnx" == name  # as the file, whatever its exporter said


def test_magika_on_bytes(shared_data: Path) -> None:
    path = shared_data / "models/zoo/magika_standard_v3_3.onnx"
    check(path, {"bytes": np.random.default_rng(0).integers(0, 257, (3, 2048)).astype(np.int32)})


def test_style_transfer_imports_its_experimental_ops(shared_data: Path) -> None:
    graph = load(shared_data / "models/zoo/wml_fns_candy.onnx")
    assert graph.types["outputImage"].shape == ("N", 3, 720, 720)


@pytest.mark.parametrize("length", [1, 7])
def test_a_recurrent_network_on_sequences(shared_data: Path, length: int) -> None:
    feeds = {"input": random(length, 576), "h": random(1, 1, 128), "c": random(1, 1, 128)}
    check(shared_data / "models/zoo/silero_vad_16k_sequence.onnx", feeds)


def test_open_sizes_stay_open_or_are_fixed(shared_data: Path) -> None:
    path = shared_data / "models/zoo/rapidocr_cls.onnx"
    assert load(path).types["x"].shape == ("N", 3, "H", "W")
    fixed = load(path, shapes={"x": (1, 3, 48, 192)})
    assert fixed.types["x"].shape == (1, 3, 48, 192)
    check(path, {"x": random(1, 3, 64, 100)})
