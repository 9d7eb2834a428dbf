"""Imports every family of converters, which fills the table."""

from __future__ import annotations

from qbench.frontends.onnx import (
    activation,
    conv,
    elementwise,
    legacy,
    linear,
    movement,
    norm,
    pool,
    reduce,
    resize,
    select,
)

__all__ = [
    "activation",
    "conv",
    "elementwise",
    "legacy",
    "linear",
    "movement",
    "norm",
    "pool",
    "reduce",
    "resize",
    "select",
]
