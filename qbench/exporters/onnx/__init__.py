"""Graphs to ONNX models: the export table by families, and what they write into."""

from __future__ import annotations

from qbench.exporters.onnx import elements, indexing, layers, parts, pools, recurrent, shapes
from qbench.exporters.onnx.table import EXPORTERS
from qbench.exporters.onnx.writer import Writer

__all__ = ["EXPORTERS", "Writer", "elements", "indexing", "layers", "parts", "pools", "recurrent", "shapes"]
