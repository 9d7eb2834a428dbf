"""Data as the user has it (an array, a mapping, many of them) made into checked chunks that a graph can be fed."""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain, groupby, islice
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from qbench.cluster.where import Cluster
from qbench.data.ahead import ahead
from qbench.data.foreign import readable
from qbench.data.known import KNOWN, remember
from qbench.data.layout import Layout
from qbench.data.owned import owned
from qbench.data.portions import Feeds, Kind, Lazy, Pieces, Reader, digest_of
from qbench.data.samples import Data, are_whole, rows_of_a_sample, samples
from qbench.errors import DataError
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Graph
from qbench.runtime.feeds import check_feeds, open_sizes


@dataclass(frozen=True, slots=True)
class Chunk:
    """A micro-batch: what to feed, the digest of its content, and which samples it holds."""

    feeds: Feeds
    digest: str
    start: int
    stop: int


Survey = Sequence[tuple[str, int, Kind]]
"""Of each chunk its digest, the number of the sample behind it, and the shapes of its samples."""

_SURVEYED = 256  # samples that one worker of a cluster reads at a time
_KINDS = 4  # shapes among which a few samples are chosen


class _Stamped(Protocol):
    """Data in files, that says of some samples whether they may have changed."""

    def stamp(self, first: int, last: int) -> str: ...


class Dataset:
    """Samples for one graph, checked once, cut into micro-batches of a fixed size, or less where the shape changes.

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
    truths
        What a metric of the user's compares with: anything with an entry for each sample.
    uncut
        Whether each item is one sample whatever its axis 0 counts; None: see
        :func:`~qbench.data.samples.are_whole`.
    executor
        A cluster, whose workers read what lies in files for the first time, too; None: that is read here.
    survey
        What the first reading found, where somebody knows; then nothing is read yet.

    Raises
    ------
    DataError
        Empty data, NaN or infinity, wrong shape or dtype, inputs that are missing or unknown, an iterator that can be
        read only once, labels that do not fit.
    """

    def __init__(
        self,
        graph: Graph,
        data: object,
        labels: object = None,
        *,
        what: str = "calibration",
        batch: int | None = None,
        truths: Sequence[Any] | NDArray[Any] | None = None,
        uncut: bool | None = None,
        executor: Executor | None = None,
        survey: Survey | None = None,
    ) -> None:
        self.uncut = are_whole(graph, data) if uncut is None else uncut
        self.layout = Layout.of(graph, batch, self.uncut)
        # travels with parts; the types of all values tell what may be empty
        self._graph = Graph(graph.name, graph.inputs, (), (), FrozenMap(), graph.types)
        self._what = what
        self._in_memory = isinstance(data, (np.ndarray, Mapping, list, tuple))
        self.source = cast("Data", owned(data) if self._in_memory else readable(data, what, graph.inputs))
        """What the samples are read from."""
        self._digests: tuple[str, ...] = ()
        self.start = 0
        """Number of the first sample, in the data that this is a portion of."""
        self.stamps = tuple[str, ...]()
        """What the file system said of the files of each chunk, where it is known; see `qbench.data.known`."""
        chunks = survey or self._surveyed(executor)
        self._digests = tuple(digest for digest, _, _ in chunks)
        self._stops = tuple(stop for _, stop, _ in chunks)
        self._kinds = tuple(kind for _, _, kind in chunks)
        self.samples = self._stops[-1]
        self.labels = _labels(labels, self.samples, what)
        self.truths = truths
        if truths is not None and len(truths) != self.samples:
            raise DataError(f"there are {self.samples} {what} samples but {len(truths)} truths for the metric")

    @property
    def is_one_array(self) -> bool:
        """Whether all samples lie in memory, and :meth:`whole` joins them."""
        return self._in_memory and bool(self.layout.batched) and len({*self._kinds}) == 1

    @property
    def sizes(self) -> dict[str, int]:
        """What the graph's open sizes are in one piece of the commonest shapes."""
        counted = Counter[Kind]()
        for kind, first, stop in zip(self._kinds, (self.start, *self._stops[:-1]), self._stops, strict=True):
            counted[kind] += stop - first
        kind = max(counted, key=counted.__getitem__)
        rows, types = rows_of_a_sample(self._graph), self._graph.input_types()
        shapes = {
            name: (rows[name], *shape) if name in self.layout.batched else shape
            for name, shape in zip(types, kind, strict=True)
        }
        return open_sizes((types[name], shape) for name, shape in shapes.items())

    @property
    def survey(self) -> Survey:
        """What the first reading has found."""
        return [*zip(self._digests, self._stops, self._kinds, strict=True)]

    def _surveyed(self, executor: Executor | None) -> Survey:
        """What reading finds; of files that are as they were, what it found before."""
        count, source, each = self._parts, self.source, self.layout.pieces_per_chunk
        if count is None or not self.layout.batched:
            return _survey(self)
        firsts = range(0, count, each)
        said = self._graph.inputs, [*self._graph.types.items()], self.uncut, each
        if hasattr(source, "stamp"):
            stamps = [cast("_Stamped", source).stamp(first, min(first + each, count)) for first in firsts]
            self.stamps = tuple(stamp and hashlib.sha256(f"{stamp} {said}".encode()).hexdigest() for stamp in stamps)
        known = [KNOWN.get(stamp) for stamp in self.stamps or [""] * len(firsts)]
        most = max(1, _SURVEYED // each) if isinstance(executor, Cluster) else len(firsts)
        gaps = [(at, min(at + most, last)) for first, last in _gaps(known) for at in range(first, last, most)]
        parts = [self._cut(first * each, min(last * each, count)) for first, last in gaps]
        if isinstance(executor, Cluster):
            read = [future.result() for future in [executor.submit(_survey, part) for part in parts]]
        else:
            read = [*map(_survey, parts)]
        chunks = [*chain.from_iterable(read)]
        new = {stop: (digest, kind) for digest, stop, kind in chunks}
        stops = [min(first + each, count) for first in firsts]
        kinds = {kind for _, kind in [*filter(None, known), *new.values()]}
        if len(kinds) > 1 or len(new) != known.count(None):  # then parts are not cut as the whole is
            return chunks if gaps == [(0, len(firsts))] else _survey(self)
        found = [known[number] or new[stop] for number, stop in enumerate(stops)]
        for stamp, chunk in zip(self.stamps, found, strict=False):
            remember(stamp, *chunk)
        return [(digest, stop, kind) for (digest, kind), stop in zip(found, stops, strict=True)]

    @property
    def _parts(self) -> int | None:
        """How many samples there are that can be had part by part; None where they cannot."""
        sized = hasattr(self.source, "part") and hasattr(self.source, "__len__") and self.layout.step == 1
        return len(cast("Sequence[Any]", self.source)) if sized else None

    def _cut(self, first: int, last: int) -> Dataset:
        made = copy(self)
        made.source, made.start = cast("Any", self.source).part(first, last), first
        return made

    @property
    def pieces(self) -> int:
        """How many of the smallest pieces that the graph can be fed there are."""
        return self.samples // self.layout.step

    @property
    def digest(self) -> str:
        """Identity of the samples (labels apart) and of how they are cut."""
        return hashlib.sha256(" ".join(self._digests).encode()).hexdigest()

    @property
    def labels_digest(self) -> str:
        """Identity of the labels."""
        return "" if self.labels is None else hashlib.sha256(self.labels.tobytes()).hexdigest()

    def chunks(self) -> Iterator[Chunk]:
        """Read the data once, front to back; DataError where it is no longer what it was."""
        start, index = self.start, 0
        for group in self._groups():
            feeds = self.layout.joined(group)
            if self._in_memory and self._digests:
                digest = self._digests[index]
            else:
                digest = digest_of(feeds)
                if self._digests and self._digests[index : index + 1] != (digest,):
                    raise self._changed(start)
            stop = start + len(group) * self.layout.step
            yield Chunk(feeds, digest, start, stop)
            start, index = stop, index + 1

    def checked(self) -> Iterator[Feeds]:
        """Read the smallest pieces one by one; DataError behind a chunk that is no longer what it was."""
        start, index, group = self.start, 0, list[Feeds]()
        for piece in self.pieces_in_order():
            yield piece
            group.append(piece)
            stop = start + len(group) * self.layout.step
            if stop >= self._stops[min(index, len(self._stops) - 1)]:
                if not self._in_memory and self._digests[index : index + 1] != (digest_of(self.layout.joined(group)),):
                    raise self._changed(start)
                start, index, group = stop, index + 1, []
        if index < len(self._digests):
            raise self._changed(start)

    def _changed(self, near: int) -> DataError:
        return DataError(f"the {self._what} data changed between two readings (near sample {near})")

    def batches(self, least: int) -> Iterator[Chunk]:
        """Chunks of one shape joined until each has so many samples; they are read when they are first asked for."""
        joined = -(-least // self.layout.pieces_per_chunk) if self.layout.batched else 1
        reader, first = Reader(self), 0
        while first < len(self._digests):
            last = first + 1
            while last < min(first + joined, len(self._digests)) and self._kinds[last] == self._kinds[first]:
                last += 1
            portion = self._portion(reader, first, last)
            feeds = Lazy(self._graph.inputs, portion.whole)
            yield Chunk(feeds, portion.digest, portion.start, portion.start + portion.samples)
            first = last

    def portions(self, least: int) -> Iterator[Dataset]:
        """The data in parts of about so many samples each, of any shapes; they are read when they are iterated over.

        They go to other processes: data that lies in files (what has a method ``part``) is read there.
        """
        joined, reader = -(-least // (self.layout.pieces_per_chunk * self.layout.step)), Reader(self)
        for first in range(0, len(self._digests), joined):
            yield self._portion(reader, first, min(first + joined, len(self._digests)))

    def whole(self) -> Feeds:
        """All samples, of one shape, as one."""
        return self.layout.joined([chunk.feeds for chunk in self.chunks()])

    def _portion(self, reader: Reader, first: int, last: int) -> Dataset:
        made = copy(self)
        made.start = self._stops[first - 1] if first else self.start
        pieces = [(number - self.start) // self.layout.step for number in (made.start, self._stops[last - 1])]
        part = None if self._parts is None else getattr(self.source, "part", None)
        made.source = part(*pieces) if part is not None else Pieces(reader, *pieces)
        made._digests, made._stops = self._digests[first:last], self._stops[first:last]
        made._kinds, made.samples = self._kinds[first:last], made._stops[-1] - made.start
        made.labels = made.truths = None
        return made

    def part(self, chunk: Chunk, rows: Sequence[int]) -> Chunk:
        """Some samples of a chunk, of a graph that takes any number of them."""

        def read() -> Feeds:
            return {name: a[rows] if name in self.layout.batched else a for name, a in chunk.feeds.items()}

        digest = hashlib.sha256(f"{chunk.digest} {[*rows]}".encode()).hexdigest()
        return Chunk(Lazy(self._graph.inputs, read), digest, 0, len(rows))

    def __iter__(self) -> Iterator[Feeds]:
        """The arrays by input name, as they were given, item by item."""
        only = isinstance(self.source, (np.ndarray, Mapping))
        for item in cast("Iterable[Any]", (self.source,) if only else self.source):
            array = isinstance(item, np.ndarray)
            by_name = cast("Feeds", {self._graph.inputs[0]: item} if array else item)
            yield {name: by_name[name] for name in self._graph.inputs}

    def pick(self, pieces: Sequence[int]) -> list[Feeds]:
        """The pieces of these numbers, ascending; where each can be had by itself, no others are read."""
        if isinstance(self.source, Sequence) and len(cast("Sequence[object]", self.source)) == self.pieces:
            found = [tuple(samples(self._graph, [cast("Sequence[Any]", self.source)[i]], self.uncut)) for i in pieces]
            if all(len(item) == 1 for item in found):
                return [item[0] for item in found]
        wanted, last = {*pieces}, max(pieces, default=-1)
        return [piece for i, piece in enumerate(islice(self.pieces_in_order(), last + 1)) if i in wanted]

    def spread(self, most: int, among: Sequence[int] | None = None) -> list[int]:
        """Numbers of so many pieces at most, evenly spread over all of them or over some.

        Of a few shapes, the commonest, where those have enough pieces: for each shape a model is planned once more,
        which may take longer than to run it.
        """
        among = range(self.pieces) if among is None else among
        if len({*self._kinds}) > _KINDS:
            counted = Counter(map(self.kind, among)).most_common()
            totals = [*accumulate(count for _, count in counted)]
            few = {kind for kind, _ in counted[: max(_KINDS, bisect_left(totals, most) + 1)]}
            among = [piece for piece in among if self.kind(piece) in few]
        return [among[at] for at in np.linspace(0, len(among) - 1, min(most, len(among))).round().astype(int).tolist()]

    def groups(self, groups: Sequence[Sequence[int]], elsewhere: bool = False) -> list[Feeds]:
        """The pieces of these numbers, joined group by group; elsewhere: files are read by whoever gets them."""
        if elsewhere and self._parts is not None:
            return [Lazy(self._graph.inputs, partial(_joined, [*map(self._single, group)])) for group in groups]
        wanted = sorted({piece for group in groups for piece in group})
        found = dict(zip(wanted, self.pick(wanted), strict=True))
        return [self.layout.joined([found[piece] for piece in group]) for group in groups]

    def kind(self, piece: int) -> Kind:
        """What :meth:`Layout.kind` says of the piece of that number."""
        return self._kinds[bisect_right(self._stops, self.start + piece * self.layout.step)]

    def _single(self, piece: int) -> Dataset:
        made = self._cut(piece, piece + 1)
        made._digests, made._stops, made._kinds, made.labels, made.truths = (), (), (), None, None
        return made

    def sample(self, index: int) -> dict[str, NDArray[Any]]:
        """One sample, by input name; axis 0 is 1 where it counts samples. DataError where there is no such sample."""
        if index not in range(self.samples):
            raise DataError(f"there is no sample {index}: the {self._what} data has {self.samples}, from 0 on")
        number, row = divmod(index, self.layout.step)
        (piece,) = self.pick([number])
        return {name: a[row : row + 1] if self.layout.step > 1 and a.ndim else a for name, a in piece.items()}

    def _groups(self) -> Iterator[list[Feeds]]:
        """Pieces of one shape, as many as are fed at a time, in the order of the data."""
        for _, pieces in groupby(self.pieces_in_order(), self.layout.kind):
            while group := list(islice(pieces, self.layout.pieces_per_chunk)):
                yield group

    def pieces_in_order(self) -> Iterator[Feeds]:
        """The smallest pieces that the graph can be fed; DataError where they do not fit it."""
        where = ""
        try:
            pieces = samples(self._graph, self.source, self.uncut)
            for number, piece in enumerate(pieces if self._in_memory else ahead(pieces, _nbytes)):
                where = f"sample {self.start + number * self.layout.step}: "
                if not self._digests:
                    check_feeds(self._graph, piece)
                where = ""
                yield piece
        except DataError as error:
            raise DataError(f"{self._what} data: {where}{error}") from error


def _joined(pieces: Sequence[Dataset]) -> Feeds:
    return pieces[0].layout.joined([next(piece.pieces_in_order()) for piece in pieces])


def _survey(data: Dataset) -> Survey:
    """What reading for the first time finds; run by any worker."""
    return [(chunk.digest, chunk.stop, data.layout.kind(chunk.feeds)) for chunk in data.chunks()]


def _gaps(known: Sequence[object]) -> Iterator[tuple[int, int]]:
    """Where nothing is known: the first of each stretch, and the one behind its last."""
    for missing, some in groupby(range(len(known)), lambda at: known[at] is None):
        numbers = [*some]
        if missing:
            yield numbers[0], numbers[-1] + 1


def _nbytes(feeds: Feeds) -> int:
    return sum(array.nbytes for array in feeds.values())


def _labels(labels: object, samples: int, what: str) -> NDArray[np.int64] | None:
    if labels is None:
        return None
    try:
        array = np.asarray(labels)
        found = f"{array.dtype} {array.shape}"
    except ValueError:  # such as the boxes of images, of which each has another number
        array, found = np.empty(0), "arrays of several shapes"
    if array.dtype.kind not in "iu" or array.ndim < 1:
        raise DataError(
            f"the {what} labels must be integers (class numbers), not {found}; "
            "a session with metric= takes truths of any kind; two batches are a list, not a tuple"
        )
    if len(array) != samples:
        raise DataError(f"there are {samples} {what} samples but {len(array)} labels")
    return array.astype(np.int64)
