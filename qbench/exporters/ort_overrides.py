"""Encodings as onnxruntime's TensorQuantOverrides, the option of its quantizer that fixes scales tensor by tensor."""

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from qbench.errors import ExportError, shown
from qbench.files import exported, write_text
from qbench.ir.qparams import QParams
from qbench.quant.encodings import Encodings

_DTYPES = ("int4", "uint4", "int8", "uint8", "int16", "uint16")
_TYPES = {
    "int4": "QInt4",
    "uint4": "QUInt4",
    "int8": "QInt8",
    "uint8": "QUInt8",
    "int16": "QInt16",
    "uint16": "QUInt16",
}

Override = Mapping[str, str | int | float]


def tensor_quant_overrides(encodings: Encodings) -> dict[str, list[Override]]:
    """The value of ``extra_options["TensorQuantOverrides"]``, by tensor name.

    Plain data, as JSON has it; onnxruntime wants ``QuantType.from_string`` of each ``quant_type``, and arrays of the
    numbers. A tensor quantized per axis has one entry for each index of the axis.

    Raises
    ------
    ExportError
        An encoding of a dtype that onnxruntime's quantizer does not know.
    """
    return {tensor: _overrides(tensor, encoding.qparams) for tensor, encoding in encodings.items()}


def _overrides(tensor: str, q: QParams) -> list[Override]:
    if q.dtype not in _TYPES:
        raise ExportError(f"tensor {shown(tensor)}: onnxruntime's quantizer knows no {q.dtype}")
    axis = {} if q.axis is None else {"axis": q.axis}
    return [
        {"quant_type": _TYPES[q.dtype], **axis, "scale": scale, "zero_point": zero_point}
        for scale, zero_point in zip(q.scales, q.zero_points, strict=True)
    ]


def write_tensor_quant_overrides(encodings: Encodings, path: str | PathLike[str]) -> Path:
    """Write :func:`tensor_quant_overrides` as JSON, whole or not at all.

    Raises
    ------
    ExportError
        The path cannot be written.
    """
    path = Path(path)
    with exported(path):
        write_text(path, json.dumps({"TensorQuantOverrides": tensor_quant_overrides(encodings)}, indent=2) + "\n")
    return path
