"""Imported quantized models: back to real numbers, tuned, and turned into integers again."""

from qbench.passes.unbake.annotate import AnnotateTwinPass
from qbench.passes.unbake.borders import integer_borders
from qbench.passes.unbake.float_weights import with_float_weights
from qbench.passes.unbake.rebake import RebakePass
from qbench.passes.unbake.settings import imported_config, imported_override
from qbench.passes.unbake.taking_apart import take_apart
from qbench.passes.unbake.template import Template

__all__ = [
    "AnnotateTwinPass",
    "RebakePass",
    "Template",
    "imported_config",
    "imported_override",
    "integer_borders",
    "take_apart",
    "with_float_weights",
]
