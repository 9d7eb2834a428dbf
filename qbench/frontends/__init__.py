"""Reading models: the only rooms that know file formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

from qbench.frontends.onnx import load_onnx
from qbench.ir import archive
from qbench.ir.graph import Graph
from qbench.ir.types import Dim

__all__ = ["load"]


def load(path: str | PathLike[str], *, shapes: Mapping[str, Sequence[Dim]] | None = None) -> Graph:
    """Read a model file.

    Parameters
    ----------
    path
        An ONNX model (external data must lie in the same folder), or the folder of a qbench archive.
    shapes
        Shapes of inputs by name, in place of those that the file states: for files that leave sizes open.

    Raises
    ------
    ModelError
        The file cannot be read or says something that qbench does not understand.
    UnsupportedOpsError
        The model uses ops without a meaning in qbench; the message lists all such nodes.
    """
    if archive.is_archive(path):
        return archive.load(path)
    return load_onnx(Path(path), shapes or {})
