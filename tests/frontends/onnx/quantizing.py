"""Float models quantized by onnxruntime's own tool, in the forms that it knows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, version_converter
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

from qbench.ir.op import Array

MODELS = (
    "cifar/resnet20_cifar10_bn.onnx",
    "imagenet/efficientnet_lite0_bn.onnx",
    "imagenet/squeezenet1.1_fp32_opset13.onnx",
    "mlperf_tiny/ad_autoencoder_fp32.onnx",
    "mlperf_tiny/ic_resnet8_fp32.onnx",
    "mlperf_tiny/kws_dscnn_fp32_bn.onnx",
    "mlperf_tiny/vww_mobilenetv1_025_fp32.onnx",
    "zoo/magika_standard_v3_3.onnx",
    "zoo/mtcnn_onet.onnx",
    "zoo/ort_mnist.onnx",
    "zoo/ort_superresolution_core_op18.onnx",
    "zoo/ort_ultraface_rfb320.onnx",
    "zoo/rapidocr_cls.onnx",
)
"""Under the folder of models; without silero, which has an LSTM, and wml_fns_candy, which the tool cannot convert."""


@dataclass(frozen=True)
class Form:
    """How a model is quantized."""

    qdq: bool
    per_channel: bool
    signed: bool
    """int8 activations, else uint8."""

    def __str__(self) -> str:
        scales = "channel" if self.per_channel else "tensor"
        return f"{'QDQ' if self.qdq else 'QOperator'}, per {scales}, {'int8' if self.signed else 'uint8'}"


FORMS = tuple(
    Form(qdq, channel, signed) for qdq in (True, False) for channel in (True, False) for signed in (False, True)
)


class _Reader(CalibrationDataReader):
    def __init__(self, samples: list[dict[str, Array]]) -> None:
        self.samples: Iterator[dict[str, Array]] = iter(samples)

    def get_next(self) -> dict[str, Array] | None:
        return next(self.samples, None)


def feeds(model: ModelProto, seed: int) -> dict[str, Array]:
    """One sample of noise for each input; open sizes are 1 for the first axis and 64 for the others."""
    rng = np.random.default_rng(seed)
    known = {tensor.name for tensor in model.graph.initializer}
    found: dict[str, Array] = {}
    for value in model.graph.input:
        kind = value.type.tensor_type
        if value.name in known:
            continue
        sizes = [d.dim_value if d.dim_value > 0 else (64 if i else 1) for i, d in enumerate(kind.shape.dim)]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        noise = rng.normal(size=sizes) if dtype.kind == "f" else rng.integers(0, 256, sizes)
        found[value.name] = noise.astype(dtype)
    return found


def quantized(path: Path, form: Form, folder: Path) -> Path:
    """The file that onnxruntime's tool makes of a float model, calibrated on three samples of noise."""
    prepared, result = folder / "prepared.onnx", folder / f"{path.stem}.quantized.onnx"
    model = onnx.load(path)
    opset = next(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    if opset < 13:  # before, there are no scales per channel
        model = version_converter.convert_version(model, 13)
    _without_input_initializers(model)
    onnx.save(model, prepared)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quant_pre_process(str(prepared), str(prepared), skip_symbolic_shape=True)
        samples = _Reader([feeds(onnx.load(prepared), seed) for seed in range(3)])
        quantize_static(
            str(prepared),
            str(result),
            samples,
            quant_format=QuantFormat.QDQ if form.qdq else QuantFormat.QOperator,
            per_channel=form.per_channel,
            activation_type=QuantType.QInt8 if form.signed else QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )
    return result


def _without_input_initializers(model: ModelProto) -> None:
    """Old models list their weights among their inputs too, which the tool does not understand."""
    known = {tensor.name for tensor in model.graph.initializer}
    kept = [value for value in model.graph.input if value.name not in known]
    del model.graph.input[:]
    model.graph.input.extend(kept)
