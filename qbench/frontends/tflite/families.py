"""Imports every family of converters, which fills the table."""

from __future__ import annotations

from qbench.frontends.tflite import (
    arithmetic,
    border,
    indexing,
    logic,
    movement,
    pools,
    products,
    reduce,
    resize,
    select,
    unary,
)

__all__ = [
    "arithmetic",
    "border",
    "indexing",
    "logic",
    "movement",
    "pools",
    "products",
    "reduce",
    "resize",
    "select",
    "unary",
]
