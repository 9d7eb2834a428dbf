"""ONNX models to graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from qbench.frontends.onnx.importer import import_model
from qbench.frontends.onnx.reading import read_model
from qbench.ir.graph import Graph
from qbench.ir.types import Dim

__all__ = ["load_onnx"]


def load_onnx(path: Path, shapes: Mapping[str, Sequence[Dim]]) -> Graph:
    """Read an ONNX file (opsets 7 to 21) into a graph; see :func:`qbench.frontends.load`."""
    return import_model(read_model(path), shapes)
