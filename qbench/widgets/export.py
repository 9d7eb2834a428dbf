"""All that a user takes away, written to one folder."""

from __future__ import annotations

from pathlib import Path

from qbench.errors import ExportError, shown
from qbench.session.session import Session

__all__ = ["export_all"]


def export_all(session: Session, folder: Path) -> list[Path]:
    """Write ``config.json``, ``report.json``, ``model.qbench`` and ``model.qdq.onnx`` as the command line does.

    Raises
    ------
    ExportError
        The folder cannot be written, or the model has something that ONNX has no word for.
    """
    from qbench.session.export import export_onnx  # brings onnx, which takes longer to import than all of qbench

    report = session.run()
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
