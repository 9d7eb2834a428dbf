"""Imports every family of converters, which fills the table."""

from __future__ import annotations

from qbench.frontends.onnx import (
    activation,
    attention,
    contrib,
    conv,
    dynamic,
    elementwise,
    indexing,
    legacy,
    linear,
    movement,
    norm,
    pool,
    qoperator,
    quantized,
    recurrent,
    reduce,
    resize,
    select,
    sequences,
    spectrum,
)

__all__ = [
    "activation",
    "attention",
    "contrib",
    "conv",
    "dynamic",
    "elementwise",
    "indexing",
    "legacy",
    "linear",
    "movement",
    "norm",
    "pool",
    "qoperator",
    "quantized",
    "recurrent",
    "reduce",
    "resize",
    "select",
    "sequences",
    "spectrum",
]
