"""Files to take away."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from qbench.engine.quantized import Quantized
from qbench.exporters import write_onnx
from qbench.ir.graph import Graph
from qbench.session.session import Session

__all__ = ["export_onnx"]


def export_onnx(model: Session | Quantized | Graph, path: str | PathLike[str]) -> Path:
    """Write a QDQ ONNX file (opset 21, IR 10), which onnxruntime and OpenVINO run in integers.

    Parameters
    ----------
    model
        A session (as its config is now), a quantized model, or any float or annotated graph.
    path
        Where to; replaced whole or not at all.

    Raises
    ------
    ExportError
        An op without an ONNX form, or a path that cannot be written.
    """
    if isinstance(model, Session):
        model = model.quantized()
    if isinstance(model, Quantized):
        return write_onnx(model.annotated, path, float16=model.config.float_dtype == "float16")
    return write_onnx(model, path)
