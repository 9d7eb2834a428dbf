"""How a graph takes its samples: which inputs have a batch axis, and how many samples to feed at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qbench.data.owned import joined
from qbench.data.portions import Feeds, Kind
from qbench.data.samples import rows_of_a_sample
from qbench.ir.graph import Graph
from qbench.ir.types import numel

_MAX_BATCH = 32
_MAX_ELEMENTS = 1 << 22


@dataclass(frozen=True)
class Layout:
    """Along which inputs samples are cut, and into pieces of which size.

    Parameters
    ----------
    batched
        The inputs along whose axis 0 samples can be joined: those with a symbol there, such as ``N``. Others are fed
        whole. Empty where the graph takes a fixed batch, or one sample at a time.
    step
        Samples in the smallest piece that the graph can be fed: 1, or its fixed batch.
    pieces_per_chunk
        Pieces fed at a time. It depends on the graph alone, so that the same data always gives the same bits.
    """

    batched: frozenset[str]
    step: int
    pieces_per_chunk: int

    @classmethod
    def of(cls, graph: Graph, batch: int | None = None, whole: bool = False) -> Layout:
        """The layout of a graph's inputs; `batch` overrides the size of a chunk where the graph leaves it open.

        `whole`: items are samples as they are, see :func:`~qbench.data.samples.are_whole`.
        """
        batched = frozenset(() if whole else rows_of_a_sample(graph))
        if batched:
            return cls(batched, 1, batch or _micro_batch(graph))
        first = next((kind.shape[0] for kind in graph.input_types().values() if kind.shape), 1)
        return cls(batched, max(1, first) if isinstance(first, int) else 1, 1)

    def kind(self, feeds: Feeds) -> Kind:
        """What must be the same in pieces that are joined: sequences and images may be of any size."""
        return tuple(array.shape[1:] if name in self.batched else array.shape for name, array in feeds.items())

    def joined(self, group: Sequence[Feeds]) -> Feeds:
        """Pieces or chunks as one."""
        if len(group) == 1:
            return group[0]
        return {k: joined([f[k] for f in group]) if k in self.batched else a for k, a in group[0].items()}


def _micro_batch(graph: Graph) -> int:
    """The largest power of two, at most 32, whose activations stay within some 2^22 elements."""
    elements = sum(numel(graph.types[name].shape) for name in graph.activations())
    batch = _MAX_BATCH
    while batch > 1 and batch * elements > _MAX_ELEMENTS:
        batch //= 2
    return batch
