"""Files to take away."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from qbench.engine.quantized import Quantized
from qbench.errors import ExportError, shown
from qbench.exporters import write_onnx, write_tensor_quant_overrides
from qbench.ir.graph import Graph
from qbench.session.session import Session

__all__ = ["export_all", "export_onnx", "export_overrides"]


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


def export_overrides(session: Session, path: str | PathLike[str]) -> Path:
    """Write every scale and zero point as onnxruntime's ``TensorQuantOverrides``, for its own quantizer.

    Raises
    ------
    ExportError
        A path that cannot be written.
    """
    return write_tensor_quant_overrides(session.encodings, path)


def export_all(session: Session, folder: str | PathLike[str]) -> list[Path]:
    """Write ``config.json``, ``report.json``, ``model.qbench`` and ``model.qdq.onnx`` to a folder.

    Raises
    ------
    ExportError
        The folder cannot be written, or the model has something that ONNX has no word for.
    """
    report, folder = session.run(), Path(folder)
    paths = [folder / name for name in ("config.json", "report.json", "model.qbench", "model.qdq.onnx")]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        session.config.save(paths[0])
        report.save(paths[1])
        session.save(paths[2])
        export_onnx(session, paths[3])
    except OSError as error:
        raise ExportError(f"cannot write to {shown(str(folder))}: {error.strerror or error}") from error
    return paths
