"""How a graph takes its samples: which inputs have a batch axis, and how many samples to feed at a time."""

from __future__ import annotations

from dataclasses import dataclass

from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Graph
from qbench.ir.types import dim_factors, numel

__all__ = ["Layout"]

_MAX_BATCH = 32
_MAX_ELEMENTS = 1 << 26


@dataclass(frozen=True)
class Layout:
    """Along which inputs samples are cut, and into pieces of which size.

    Parameters
    ----------
    batched
        Rows of axis 0 that one piece of the data takes, for each input that has samples along axis 0: 1 where the graph
        says ``N``, the fixed batch where no input has a symbolic size. Other inputs are fed whole.
    step
        Samples in one such piece.
    open
        Whether the graph leaves the number of samples open.
    samples_per_chunk
        Pieces fed at a time. It depends on the graph alone, so that the same data always gives the same bits.
    """

    batched: FrozenMap[str, int]
    step: int
    open: bool
    samples_per_chunk: int

    @classmethod
    def of(cls, graph: Graph, batch: int | None = None) -> Layout:
        """The layout of a graph's inputs; `batch` overrides the size of a chunk where the graph leaves it open."""
        shapes = {name: type.shape for name, type in graph.input_types().items() if type.shape}
        open_ = {name: rows for name, shape in shapes.items() for rows, symbol in [dim_factors(shape[0])] if symbol}
        if open_:
            return cls(FrozenMap(open_), 1, True, batch or _micro_batch(graph))
        fixed = {name: max(1, dim_factors(shape[0])[0]) for name, shape in shapes.items()}
        return cls(FrozenMap(fixed), next(iter(fixed.values()), 1), False, 1)


def _micro_batch(graph: Graph) -> int:
    """The largest power of two, at most 32, whose activations stay within some 2^26 elements."""
    elements = sum(numel(graph.types[name].shape) for name in graph.activations())
    batch = _MAX_BATCH
    while batch > 1 and batch * elements > _MAX_ELEMENTS:
        batch //= 2
    return batch
