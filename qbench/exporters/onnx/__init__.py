"""Graphs to ONNX models: the export table by families, all found on import, and what they write into."""

from importlib import import_module
from pkgutil import walk_packages

from qbench.exporters.onnx.writer import EXPORTERS, Writer

__all__ = ["EXPORTERS", "Writer"]

for _module in walk_packages(__path__, f"{__name__}."):
    import_module(_module.name)
