"""Data as the user has it (an array, a mapping, many of them) made into checked chunks that a graph can be fed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from qbench.engine.layout import Layout
from qbench.errors import DataError, shown
from qbench.ir.graph import Graph
from qbench.runtime.feeds import check_feeds

__all__ = ["Chunk", "Dataset", "Feeds"]

Feeds = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A micro-batch: what to feed, the digest of its content, and which samples it holds."""

    feeds: Feeds
    digest: str
    start: int
    stop: int


class _Indexed:
    """Something with ``len`` and ``[i]``, read anew on each iteration."""

    def __init__(self, items: Sequence[Any]) -> None:
        self._items = items

    def __iter__(self) -> Iterator[Any]:
        return (self._items[i] for i in range(len(self._items)))


class Dataset:
    """Samples for one graph, checked once, cut into micro-batches of a fixed size.

    BLAS results depend on the size of a batch, so the same samples are always cut the same way, however they are given.

    Parameters
    ----------
    graph
        Its inputs say what is wanted.
    data
        One array (where the graph has one input), a mapping of input name to array, or a list, tuple or other
        re-iterable of those, which may be larger than memory. The first axis of each array counts samples. Arrays are
        copied unless they are read-only, so that nobody changes them later.
    labels
        The right class of each sample, or None.
    what
        How messages call this data.

    Raises
    ------
    DataError
        Empty data, NaN or infinity, wrong shape or dtype, inputs that are missing or unknown, an iterator that can be
        read only once, labels that do not fit.
    """

    def __init__(
        self, graph: Graph, data: object, labels: object = None, *, what: str = "calibration", batch: int | None = None
    ) -> None:
        self.layout = Layout.of(graph) if batch is None else Layout.of(graph, batch)
        self._graph = graph
        self._what = what
        self._in_memory = isinstance(data, (np.ndarray, Mapping, list, tuple))
        self._items: Iterable[Any] = _items(data, what)
        if self._in_memory:
            self._items = tuple(self._feeds(item, i) for i, item in enumerate(self._items))
        self._digests: tuple[str, ...] = ()
        chunks = [(chunk.digest, chunk.stop) for chunk in self.chunks()]
        if not chunks:
            raise DataError(f"the {what} data is empty: give at least one sample")
        self._digests = tuple(digest for digest, _ in chunks)
        self.samples = chunks[-1][1]
        self.labels = _labels(labels, self.samples, what)

    @property
    def pieces(self) -> int:
        """How many of the smallest pieces that the graph can be fed there are."""
        return self.samples // self.layout.step

    @property
    def labels_digest(self) -> str:
        """Identity of the labels."""
        return "" if self.labels is None else hashlib.sha256(self.labels.tobytes()).hexdigest()

    @property
    def digest(self) -> str:
        """Identity of the samples (labels apart) and of how they are cut."""
        return hashlib.sha256(" ".join(self._digests).encode()).hexdigest()

    def chunks(self) -> Iterator[Chunk]:
        """Read the data once, front to back; DataError where it is no longer what it was."""
        samples, start, index = self._samples(), 0, 0
        while group := list(islice(samples, self.layout.samples_per_chunk)):
            feeds = self._joined(group)
            if self._in_memory and self._digests:
                digest = self._digests[index]
            else:
                digest = _digest(feeds)
                if self._digests and self._digests[index : index + 1] != (digest,):
                    raise DataError(f"the {self._what} data changed between two readings (near sample {start})")
            stop = start + len(group) * self.layout.step
            yield Chunk(feeds, digest, start, stop)
            start, index = stop, index + 1

    def __iter__(self) -> Iterator[Feeds]:
        return self.items()

    def items(self) -> Iterator[Feeds]:
        """The checked arrays as they were given, one mapping at a time: to be saved."""
        return (item if self._in_memory else self._feeds(item, i) for i, item in enumerate(self._items))

    def _samples(self) -> Iterator[Feeds]:
        """The smallest pieces that the graph can be fed: one sample, or its fixed batch."""
        return (piece for feeds in self.items() for piece in _pieces(feeds, self.layout.batched))

    def _joined(self, group: list[Feeds]) -> Feeds:
        if len(group) == 1:
            return group[0]
        batched = self.layout.batched
        return {k: np.concatenate([f[k] for f in group]) if k in batched else a for k, a in group[0].items()}

    def _feeds(self, item: object, index: int) -> Feeds:
        """One item of the data as a mapping of checked, read-only arrays."""
        graph = self._graph
        if isinstance(item, np.ndarray) and len(graph.inputs) == 1:
            item = {graph.inputs[0]: cast("NDArray[Any]", item)}
        where = f"item {index} of the {self._what} data" if index else f"the {self._what} data"
        if not isinstance(item, Mapping):
            inputs = ", ".join(map(shown, graph.inputs))
            raise DataError(f"{where} is {type(cast('object', item)).__name__}; give arrays by input name ({inputs})")
        feeds = cast("Feeds", item)
        try:
            sound = all(isinstance(feeds.get(name), np.ndarray) and feeds[name].ndim for name in self.layout.batched)
            for piece in _pieces(feeds, self.layout.batched) if sound and not self.layout.open else [feeds]:
                check_feeds(graph, piece)
        except DataError as error:
            error.add_note(f"in {where}")
            raise
        return {name: _owned(feeds[name]) for name in graph.inputs}


def _pieces(feeds: Feeds, rows: Mapping[str, int]) -> Iterator[Feeds]:
    counts = {name: -(-len(feeds[name]) // size) for name, size in rows.items()}
    if len(set(counts.values())) > 1:
        raise DataError(f"the inputs have different numbers of samples: {counts}")
    for i in range(max(counts.values(), default=1)):
        yield {k: a[i * rows[k] : (i + 1) * rows[k]] if k in rows else a for k, a in feeds.items()}


def _items(data: object, what: str) -> Iterable[Any]:
    if isinstance(data, (np.ndarray, Mapping)):
        return (cast("object", data),)
    if isinstance(data, (str, bytes)):
        raise DataError(f"the {what} data is text; give arrays (read files with qbench.engine.data)")
    if isinstance(data, Iterator):
        raise DataError(
            f"the {what} data is an iterator, which can be read only once; give a list or another re-iterable"
        )
    if isinstance(data, Iterable):
        return cast("Iterable[Any]", data)
    if hasattr(data, "__len__") and hasattr(data, "__getitem__"):
        return _Indexed(cast("Sequence[Any]", data))
    raise DataError(f"the {what} data must be arrays, mappings or a re-iterable of them, not {type(data).__name__}")


def _owned(array: NDArray[Any]) -> NDArray[Any]:
    if array.flags.writeable or not array.flags.c_contiguous:
        array = np.array(array, order="C", copy=True)
        array.flags.writeable = False
    return array


def _labels(labels: object, samples: int, what: str) -> NDArray[np.int64] | None:
    if labels is None:
        return None
    array = np.asarray(labels)
    if array.dtype.kind not in "iu" or array.ndim < 1:
        raise DataError(f"the {what} labels must be integers (class numbers), not {array.dtype} {array.shape}")
    if len(array) != samples:
        raise DataError(f"there are {samples} {what} samples but {len(array)} labels")
    return array.astype(np.int64)


def _digest(feeds: Feeds) -> str:
    digest = hashlib.sha256()
    for name, array in sorted(feeds.items()):
        digest.update(f"{name!r} {array.dtype} {array.shape} ".encode("utf-8", "surrogatepass"))
        digest.update(array.tobytes())
    return digest.hexdigest()
