"""Graphs to ONNX models: the export table by families, and what they write into."""

from __future__ import annotations

from qbench.exporters.onnx import elements, layers, parts, pools, shapes
from qbench.exporters.onnx.table import EXPORTERS
from qbench.exporters.onnx.writer import Writer

__all__ = ["EXPORTERS", "Writer", "elements", "layers", "parts", "pools", "shapes"]
