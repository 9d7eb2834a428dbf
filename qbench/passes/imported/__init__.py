"""Imported quantized models: back to real numbers, tuned, and turned into integers again."""

from qbench.passes.imported.annotate import AnnotateTwinPass
from qbench.passes.imported.borders import integer_borders
from qbench.passes.imported.config import imported_config, imported_override
from qbench.passes.imported.find_twin import find_twin
from qbench.passes.imported.float_weights import with_float_weights
from qbench.passes.imported.realize import RealizeTwinPass
from qbench.passes.imported.template import Template

__all__ = [
    "AnnotateTwinPass",
    "RealizeTwinPass",
    "Template",
    "imported_config",
    "imported_override",
    "integer_borders",
    "find_twin",
    "with_float_weights",
]
