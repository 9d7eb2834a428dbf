"""The float and the integer graph, run on the same chunks, compared value by value."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from qbench.data.dataset import Chunk, Dataset
from qbench.evaluate.by_sample import by_sample
from qbench.evaluate.cache import ValueCache, of_process
from qbench.evaluate.checkpoints import checkpoints
from qbench.evaluate.chunks import alone, check, on_threads, submitted
from qbench.evaluate.judging import Judging
from qbench.evaluate.keys import value_keys
from qbench.evaluate.losses import Losses, losses
from qbench.evaluate.measure import Deviation, deviation, stride
from qbench.evaluate.partial import Partial, partial_run
from qbench.evaluate.predictions import Score, score
from qbench.forms.scores import floors
from qbench.ir.dtypes import is_float
from qbench.ir.graph import Graph
from qbench.ir.op import Array, is_op
from qbench.ir.specialize import sized
from qbench.ir.types import numel
from qbench.ops.qnn.border import Dequantize
from qbench.progress import Cancel, Progress
from qbench.quant.arithmetic import reals
from qbench.quantize.quantized import Quantized
from qbench.runtime.program import Program
from qbench.runtime.programs import Programs
from qbench.runtime.team import default_threads

Pair = tuple[str, str]
"""A tensor of the float graph, and the value of the integer graph that stands for it."""

BATCH = 128
"""Samples at a time, where samples of values are compared."""

S = TypeVar("S", Deviation, Losses, Score)

_SHARE = 8  # of the budget, that one evaluation keeps to start again from


@dataclass(frozen=True)
class Measured:
    """Sums over all data, and the names of the nodes that had to run for them."""

    deviations: dict[Pair, Deviation]
    score: Score
    losses: dict[Pair, Losses]
    steps: set[str]
    reference_steps: set[str]


class _Compared(NamedTuple):
    """Of one chunk: how far each pair is apart, how predictions agree, what outputs lose, what ran on each side."""

    deviations: list[Deviation]
    scores: list[Score]
    losses: list[Losses]
    nodes: list[frozenset[str]]


@dataclass(frozen=True)
class _Side:
    """One of the two graphs: its programs, the keys of its values, and those that are worth a place in the cache."""

    programs: Programs
    keys: Mapping[str, str]
    kept: Collection[str]


def measure(
    quantized: Quantized,
    data: Dataset,
    pairs: Iterable[Pair],
    output: Pair | None,
    cache: ValueCache,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
    elements: int | None = None,
    executor: Executor | None = None,
    ends: Iterable[Pair] = (),
    keep: bool = True,
    judging: Judging | None = None,
) -> Measured:
    """Compare the pairs, and the predictions of `output`; what the cache knows is neither run nor compared again.

    Parameters
    ----------
    quantized, data, cache, progress, cancel, executor
        As for :func:`~qbench.evaluate.evaluate.evaluate`.
    pairs, output
        What to compare; predictions only where there is an output.
    elements
        About how many elements of each value are compared in each sample, evenly spread; None: all of them.
    ends
        Of the pairs those that are compared sample by sample too, in all their elements.
    keep
        Whether values go to the cache, for those who will start from them.
    judging
        What the `ends` say; None: nobody asks.
    """
    floats, integers = quantized.prepared, quantized.graph
    left, right = value_keys(floats, cache.memo), value_keys(integers, cache.memo)
    ranges = {tensor: encoding.qparams for tensor, encoding in quantized.encodings.items()}
    kinds = sized(floats, data.sizes).types
    every = {(a, b): 0 if elements is None else stride(numel(kinds[a].shape), elements) for a, b in pairs}
    deviations = _Sums(
        cache,
        {(a, b): ("pair", left[a], right[b], ranges.get(a), data.digest, step) for (a, b), step in every.items()},
        Deviation(),
    )
    telling = _telling(dict(ends), judging)
    lost = _Sums(
        cache,
        {
            (a, b): ("losses", left[a], right[b], data.digest, *(right[other] for _, other in telling[a, b]))
            for a, b in telling
        },
        Losses(),
    )
    predicted = () if output is None else (output,)
    scores = _Sums(
        cache, {(a, b): ("score", left[a], right[b], data.digest, data.labels_digest) for a, b in predicted}, Score()
    )
    ran = set[str](), set[str]()
    if deviations.todo or lost.todo or scores.todo:
        compare = _Comparison(
            quantized,
            deviations.todo,
            every,
            scores.todo,
            {pair: telling[pair] for pair in lost.todo},
            judging,
            data.labels,
            data.pieces,
            data.sizes,
            elements is None,
            keep,
        )
        look = partial(check, data.samples, progress, cancel)
        with closing(_compared(compare, data, cache, cancel, executor, look)) as results:
            for made in results:
                deviations.add(made.deviations)
                lost.add(made.losses)
                scores.add(made.scores)
                for names, more in zip(ran, made.nodes, strict=True):
                    names.update(more)
        for sums in (deviations, lost, scores):
            sums.remember()
    score = Score() if output is None else scores.by_pair[output]
    return Measured(deviations.by_pair, score, lost.by_pair, ran[1], ran[0])


def _telling(ends: Mapping[str, str], judging: Judging | None) -> dict[Pair, tuple[Pair, ...]]:
    """By pair of an output, those that tell what it says."""
    needed = {name: () if judging is None else judging.needs(name) for name in ends}
    return {(name, ends[name]): tuple((other, ends[other]) for other in others) for name, others in needed.items()}


class _Sums(Generic[S]):
    """Sums over all data by pair: those that the cache knows, and those still to be made.

    Parameters
    ----------
    keys
        What the cache knows each as.
    zero
        The sum of nothing.
    """

    def __init__(self, cache: ValueCache, keys: Mapping[Pair, tuple[object, ...]], zero: S) -> None:
        self._cache, self._keys = cache, keys
        known: dict[Pair, S | None] = {pair: cache.get_result(key) for pair, key in keys.items()}
        self.todo = [pair for pair, one in known.items() if one is None]
        self.by_pair = {pair: zero if one is None else one for pair, one in known.items()}

    def add(self, more: Sequence[S]) -> None:
        """What one chunk adds to each that is to be made."""
        for pair, one in zip(self.todo, more, strict=True):
            self.by_pair[pair] = self.by_pair[pair] + one

    def remember(self) -> None:
        """Put what was made into the cache."""
        for pair in self.todo:
            self._cache.put_result(self._keys[pair], self.by_pair[pair])


def _compared(
    compare: _Comparison,
    data: Dataset,
    cache: ValueCache,
    cancel: Cancel | None,
    executor: Executor | None,
    look: Callable[[int], object],
) -> Generator[_Compared]:
    """What comes of each chunk, in order: from an executor's workers, or from threads of this process."""
    if executor is not None:
        return submitted(executor, compare, data.batches(1 if compare.whole else BATCH), look)
    if compare.whole:
        chunks = data.chunks()
        workers = min(default_threads(), -(-data.pieces // data.layout.pieces_per_chunk))
    else:
        chunks, workers = data.batches(BATCH), 1

    def here(chunk: Chunk) -> _Compared:
        return compare(chunk, cache, max(1, default_threads() // workers), cancel)

    return alone(here, chunks, look) if workers == 1 else on_threads(here, chunks, workers, look)


@dataclass
class _Comparison:
    """Runs a chunk through both graphs; goes to other processes, where no values are known from before.

    Parameters
    ----------
    quantized, labels, pieces
        The graphs, and of the data what a chunk has not.
    todo, every, predicted, losing
        Pairs to compare, every how many elements of each in a sample (0: all), those that are predictions, and those
        that are compared sample by sample, each with the pairs that tell what it says.
    judging
        What outputs say.
    whole
        Whether chunks are compared element by element.
    keep
        Whether values go to the cache.
    """

    quantized: Quantized
    todo: Sequence[Pair]
    every: Mapping[Pair, int]
    predicted: Sequence[Pair]
    losing: Mapping[Pair, tuple[Pair, ...]]
    judging: Judging | None
    labels: NDArray[np.int64] | None
    pieces: int
    sizes: Mapping[str, int]
    whole: bool
    keep: bool

    def __call__(
        self, chunk: Chunk, cache: ValueCache | None = None, threads: int = 1, cancel: Cancel | None = None
    ) -> _Compared:
        if cache is None:
            cache = of_process()
        runs: list[Partial] = []
        telling = [pair for pairs in self.losing.values() for pair in pairs]
        whole = [*self.predicted, *self.losing, *telling, *(pair for pair in self.todo if not self.every[pair])]
        for i, side in enumerate(self._sides(chunk, cache)):
            wanted, some = {pair[i] for pair in whole}, {p[i]: self.every[p] for p in self.todo if self.every[p]}
            runs.append(partial_run(side.programs, side.keys, chunk, wanted, cache, side.kept, threads, cancel, some))
        values = [{**run.arrays, **run.samples} for run in runs]
        qparams, encodings = self.quantized.graph.qparams, self.quantized.encodings
        ranges = {tensor: encoding.qparams for tensor, encoding in encodings.items()}
        made = [
            deviation(values[0][a], values[1][b], ranges.get(a), qparams.get(b), self._floors.get(a, -math.inf))
            for a, b in self.todo
        ]
        labels = None if self.labels is None else self.labels[chunk.start : chunk.stop]
        scored = [score(*self._both(a, b, *runs), labels, chunk.start) for a, b in self.predicted]
        return _Compared(made, scored, self._lost(chunk, *runs), [run.nodes for run in runs])

    def _lost(self, chunk: Chunk, exact: Partial, made: Partial) -> list[Losses]:
        """What each output loses of a chunk."""
        qparams, both = self.quantized.graph.qparams, {*self.losing}.union(*self.losing.values())
        pairs = {(a, b): self._both(a, b, exact, made) for a, b in both}
        wanted = {a: one for (a, _), (one, _) in pairs.items()}
        given = {a: reals(other, qparams.get(b)) for (a, b), (_, other) in pairs.items()}
        lost = [losses(wanted[a], given[a], chunk.start, chunk.stop) for a, _ in self.losing]
        if self.judging is None:
            return lost
        said = (self.judging.said(a, wanted, given) for a, _ in self.losing)
        return [one + Losses(said=each) for one, each in zip(lost, said, strict=True)]

    def _both(self, a: str, b: str, exact: Partial, made: Partial) -> tuple[Array, Array]:
        """A value of the float model and what stands for it, sample by sample."""
        one = by_sample(self.quantized.prepared, a, exact.arrays[a])
        return one, by_sample(self.quantized.graph, b, made.arrays[b])

    def __reduce__(self) -> tuple[type[_Comparison], tuple[object, ...]]:
        given = (
            self.quantized.without_trace(),
            self.todo,
            self.every,
            self.predicted,
            self.losing,
            self.judging,
            self.labels,
            self.pieces,
            self.sizes,
            self.whole,
            self.keep,
        )
        return _Comparison, given

    def _sides(self, chunk: Chunk, cache: ValueCache) -> list[_Side]:
        with self._planning:
            if self._planned is None:
                cache.begin()
                keys = [value_keys(graph, cache.memo) for graph in (self.quantized.prepared, self.quantized.graph)]
                programs = programs_of(self.quantized, self.every, cache)
                kept: tuple[Collection[str], Collection[str]] = ((), ())
                if self.keep and self.whole:
                    kept = _kept(self.quantized, self.pieces, self.sizes, cache.budget_bytes)
                elif self.keep:
                    kept = _ends(self.quantized, programs[1].of(chunk.feeds), cache.budget_bytes // self.pieces)
                self._planned = [_Side(*side) for side in zip(programs, keys, kept, strict=True)]
            return self._planned

    def __post_init__(self) -> None:
        self._planning, self._planned = threading.Lock(), None
        self._floors = floors(self.quantized.prepared)


def programs_of(quantized: Quantized, pairs: Iterable[Pair], cache: ValueCache) -> tuple[Programs, Programs]:
    """The programs of both graphs that make the pairs, the last ones again where the graph is the same.

    Float steps are never fused, whatever is wanted: their results then have the same bits in every evaluation. Nor are
    integers made real in the step that makes them, as either may be what is compared.
    """
    floats, graph = tuple(quantized.prepared.activations()), quantized.graph
    integers = [node.inputs[0] for node in graph.nodes if is_op(node, Dequantize) and node.inputs[0] in graph.producers]
    values = (value for _, value in pairs if value not in graph.constants)
    wanted = tuple(dict.fromkeys([*float_values(graph), *integers, *values]))
    return cache.programs("float", quantized.prepared, floats), cache.programs("integer", graph, wanted)


def float_values(graph: Graph) -> list[str]:
    """Names of the float activations."""
    return [name for name in graph.activations() if is_float(graph.types[name].dtype)]


def _kept(quantized: Quantized, pieces: int, sizes: Mapping[str, int], budget: int) -> tuple[set[str], set[str]]:
    """The values of both graphs that are worth their place in the cache: all, or what the fused groups make."""
    both = (set(quantized.prepared.activations()), set(quantized.graph.activations()))
    if activation_bytes(quantized, sizes) * pieces <= budget:
        return both
    ends = set(quantized.encodings) | set(quantized.prepared.outputs)
    narrow = {name for name in both[1] if quantized.graph.types[name].dtype in ("int8", "uint8", "int16", "uint16")}
    return both[0] & ends, both[1] & (ends | narrow)


def _ends(quantized: Quantized, program: Program, budget: int) -> tuple[Collection[str], Collection[str]]:
    """What of both graphs is worth its place beside samples: the outputs, and where integer runs start again."""
    again = checkpoints(program, budget // _SHARE)
    return quantized.prepared.outputs, again.union(quantized.graph.outputs)


def activation_bytes(quantized: Quantized, sizes: Mapping[str, int]) -> int:
    """Bytes of all activations of both graphs for one piece of data of these sizes."""
    graphs = [sized(graph, sizes) for graph in (quantized.prepared, quantized.graph)]
    return sum(graph.types[name].nbytes for graph in graphs for name in graph.activations())
