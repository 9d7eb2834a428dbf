"""Random networks, calibrated in any way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st
from numpy.typing import NDArray

from qbench.ir.graph import Graph
from qbench.ir.qparams import QParams
from qbench.passes.annotate import AnnotatePass
from qbench.passes.realize import RealizePass
from qbench.quant.choose import power_of_two
from qbench.quant.rounding import POWER_OF_TWO, ROUNDINGS, Rounding
from tests.passes.quantizable import bind_qparams, every_value, min_max_qparams
from tests.passes.random_graphs import networks

Values = dict[str, NDArray[np.generic]]


@dataclass(frozen=True)
class Calibrated:
    """A float graph, what it is fed and what it makes of that, and qparams for all of its points."""

    graph: Graph
    feeds: Values
    values: Values
    annotated: Graph
    q: dict[str, QParams]
    rounding: Rounding

    @property
    def fake(self) -> Graph:
        return bind_qparams(self.annotated, self.q)

    @property
    def realized(self) -> Graph:
        return RealizePass(self.rounding)(self.fake)


_NETWORKS = networks()


@st.composite
def calibrated(
    draw: st.DrawFn,
    dtypes: Sequence[str] = ("uint8", "int8", "int16"),
    weights: Sequence[str] = ("int8", "uint8", "int16", "int4", "uint4"),
    graphs: st.SearchStrategy[Graph] = _NETWORKS,
) -> Calibrated:
    graph, rounding = draw(graphs), draw(st.sampled_from(ROUNDINGS))
    feeds = feeds_of(graph, draw(st.integers(1, 3)))
    values, annotated = every_value(graph, feeds), AnnotatePass()(graph)
    assume(all(np.isfinite(array).all() and np.abs(array).max(initial=0) < 1e6 for array in values.values()))
    symmetric, per_channel = draw(st.tuples(st.booleans(), st.booleans())), draw(st.booleans())
    kinds = draw(st.sampled_from(dtypes)), per_channel, draw(st.sampled_from(weights)), symmetric
    q = min_max_qparams(annotated, values, *kinds)
    if rounding in POWER_OF_TWO:
        q = {tensor: power_of_two(found) for tensor, found in q.items()}
    return Calibrated(graph, feeds, values, annotated, q, rounding)


def feeds_of(graph: Graph, samples: int) -> Values:
    random = np.random.default_rng(samples)
    return {
        name: random.normal(size=(samples, *kind.shape[1:])).astype(np.float32)
        for name, kind in graph.input_types().items()
    }
