"""Graphs of a few quantized ops, and what both executors make of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from qbench.ir.graph import Node
from qbench.ir.qparams import QParams
from qbench.passes.legalize import LegalizePass
from qbench.runtime import interpreter
from qbench.runtime.programs import plan
from tests.graphs import graph_of
from tests.networks import node

__all__ = ["Array", "node", "per_axis", "q", "run"]

Array = NDArray[np.generic]


def q(scale: float, zero_point: int = 0, dtype: str = "int8") -> QParams:
    return QParams(scale, zero_point, dtype)  # type: ignore[arg-type]


def per_axis(
    scales: Iterable[float], axis: int, dtype: str = "int8", zero_points: Iterable[int] | None = None
) -> QParams:
    scales = tuple(scales)
    return QParams(scales, tuple(zero_points or (0,) * len(scales)), dtype, axis)  # type: ignore[arg-type]


def run(
    nodes: Iterable[Node],
    feeds: Mapping[str, Array],
    qparams: Mapping[str, QParams],
    constants: Mapping[str, Array] | None = None,
    output: str = "y",
) -> Array:
    """The output of a graph: the same from the qnn ops, the integer ops that stand for them, and the program."""
    graph = graph_of(feeds, nodes, output, qparams, **(constants or {}))
    meant = interpreter.run(graph, feeds)[output]
    legal = LegalizePass()(graph)
    assert not any(one.op.startswith("qnn.") and one.op not in BORDERS for one in legal.nodes)
    for made in (interpreter.run(legal, feeds)[output], plan(graph).run(dict(feeds))[output]):
        assert made.dtype == meant.dtype
        np.testing.assert_array_equal(made, meant)
    return meant


BORDERS = ("qnn.quantize", "qnn.dequantize")
