"""The float and the integer graph, run on the same chunks, compared value by value."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from contextvars import copy_context
from dataclasses import dataclass
from typing import TypeVar

from qbench.data.dataset import Chunk, Dataset
from qbench.errors import Cancelled
from qbench.evaluate.cache import ValueCache
from qbench.evaluate.checkpoints import checkpoints
from qbench.evaluate.keys import value_keys
from qbench.evaluate.measure import Deviation, deviation, stride
from qbench.evaluate.partial import Partial, partial_run
from qbench.evaluate.predictions import Score, score
from qbench.ir.dtypes import is_float, numpy_dtype
from qbench.ir.graph import Graph
from qbench.ir.types import numel
from qbench.progress import Cancel, Progress
from qbench.quantize.quantized import Quantized
from qbench.runtime.program import Program
from qbench.runtime.programs import Programs
from qbench.runtime.team import default_threads

__all__ = ["BATCH", "Measured", "Pair", "activation_bytes", "float_values", "measure", "programs_of"]

Pair = tuple[str, str]
"""A tensor of the float graph, and the value of the integer graph that stands for it."""

BATCH = 128
"""Samples at a time, where samples of values are compared."""

_SHARE = 8  # of the budget, that one evaluation keeps to start again from

T = TypeVar("T")


@dataclass(frozen=True)
class Measured:
    """Sums over all data, and the names of the nodes that had to run for them."""

    deviations: dict[Pair, Deviation]
    score: Score
    steps: set[str]
    reference_steps: set[str]


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
) -> Measured:
    """Compare the pairs, and the predictions of `output`; what the cache knows is neither run nor compared again.

    Parameters
    ----------
    quantized, data, cache, progress, cancel
        As for :func:`~qbench.evaluate.evaluate.evaluate`.
    pairs, output
        What to compare; predictions only where there is an output.
    elements
        About how many elements of each value are compared in each sample, evenly spread; None: all of them.
    """
    graphs = quantized.prepared, quantized.graph
    keys = value_keys(graphs[0], cache.memo), value_keys(graphs[1], cache.memo)
    ranges = {tensor: encoding.qparams for tensor, encoding in quantized.encodings.items()}
    every = {(a, b): 0 if elements is None else stride(numel(graphs[0].types[a].shape), elements) for a, b in pairs}
    known_as = {
        (a, b): ("pair", keys[0][a], keys[1][b], ranges.get(a), data.digest, step) for (a, b), step in every.items()
    }
    scored_pair = (keys[0][output[0]], keys[1][output[1]]) if output else ()
    score_known_as = ("score", *scored_pair, data.digest, data.labels_digest)

    sums: dict[Pair, Deviation | None] = {pair: cache.get_result(key) for pair, key in known_as.items()}
    total: Score | None = cache.get_result(score_known_as) if output else Score()
    todo = [pair for pair, known in sums.items() if known is None]
    found = {pair: Deviation() if known is None else known for pair, known in sums.items()}
    right, ran = total or Score(), (set[str](), set[str]())
    if not todo and total is not None:
        return Measured(found, right, *ran)
    predicted = [output] if output and total is None else []
    whole = [*predicted, *(pair for pair in todo if not every[pair])]
    programs = programs_of(quantized, known_as, cache)
    chunks = data.chunks() if elements is None else list(data.batches(BATCH))
    kept = (
        _kept(quantized, data, cache.budget_bytes)
        if isinstance(chunks, Iterator)
        else _ends(quantized, programs[1].of(chunks[0].feeds), cache.budget_bytes // data.pieces)
    )
    sides = [_Side(*side) for side in zip(programs, keys, kept, strict=True)]

    def compare(chunk: Chunk, threads: int) -> tuple[list[Deviation], Score, list[frozenset[str]]]:
        runs: list[Partial] = []
        for i, side in enumerate(sides):
            wanted, some = {pair[i] for pair in whole}, {pair[i]: every[pair] for pair in todo if every[pair]}
            runs.append(partial_run(side.programs, side.keys, chunk, wanted, cache, side.kept, threads, cancel, some))
        values = [{**run.arrays, **run.samples} for run in runs]
        qparams = quantized.graph.qparams
        made = [deviation(values[0][a], values[1][b], ranges.get(a), qparams.get(b)) for a, b in todo]
        labels = None if data.labels is None else data.labels[chunk.start : chunk.stop]
        scored = [score(runs[0].arrays[a], runs[1].arrays[b], labels, chunk.start) for a, b in predicted]
        return made, sum(scored, Score()), [run.nodes for run in runs]

    workers = min(default_threads(), -(-data.pieces // data.layout.pieces_per_chunk)) if elements is None else 1
    with closing(_in_order(compare, chunks, data.samples, workers, progress, cancel)) as results:
        for made, scored, nodes in results:
            found |= {pair: found[pair] + more for pair, more in zip(todo, made, strict=True)}
            right += scored
            for names, more in zip(ran, nodes, strict=True):
                names.update(more)
    for pair in todo:
        cache.put_result(known_as[pair], found[pair])
    if output:
        cache.put_result(score_known_as, right)
    return Measured(found, right, ran[1], ran[0])


def programs_of(quantized: Quantized, pairs: Iterable[Pair], cache: ValueCache) -> tuple[Programs, Programs]:
    """The programs of both graphs that make the pairs, the last ones again where the graph is the same.

    Float steps are never fused, whatever is wanted: their results then have the same bits in every evaluation.
    """
    floats, constants = tuple(quantized.prepared.activations()), quantized.graph.constants
    wanted = dict.fromkeys([*float_values(quantized.graph), *(value for _, value in pairs if value not in constants)])
    return cache.programs("float", quantized.prepared, floats), cache.programs(
        "integer", quantized.graph, tuple(wanted)
    )


def float_values(graph: Graph) -> list[str]:
    """Names of the float activations."""
    return [name for name in graph.activations() if is_float(graph.types[name].dtype)]


def _in_order(
    work: Callable[[Chunk, int], T],
    chunks: Iterable[Chunk],
    samples: int,
    workers: int,
    progress: Progress | None,
    cancel: Cancel | None,
) -> Generator[T]:
    """What `work` makes of each chunk on so many threads; so many are done at a time."""
    if workers == 1:
        done = 0
        for chunk in chunks:
            _check(done, samples, progress, cancel)
            yield work(chunk, default_threads())
            done = chunk.stop
        _check(done, samples, progress, cancel)
        return
    running: deque[tuple[int, Future[T]]] = deque()
    done = 0
    with ThreadPoolExecutor(workers, thread_name_prefix="qbench evaluation") as pool:
        try:
            coming = iter(chunks)
            while True:
                while len(running) <= workers and (chunk := next(coming, None)) is not None:
                    future = pool.submit(copy_context().run, work, chunk, max(1, default_threads() // workers))
                    running.append((chunk.stop, future))
                _check(done, samples, progress, cancel)
                if not running:
                    return
                done, future = running.popleft()
                yield future.result()
        finally:
            for _, future in running:
                future.cancel()


def _check(done: int, samples: int, progress: Progress | None, cancel: Cancel | None) -> None:
    if progress is not None:
        progress(done, samples)
    if cancel is not None and cancel.is_set():
        raise Cancelled(f"stopped after {done} of {samples} samples")


def _kept(quantized: Quantized, data: Dataset, budget: int) -> tuple[set[str], set[str]]:
    """The values of both graphs that are worth their place in the cache: all, or what the fused groups make."""
    both = (set(quantized.prepared.activations()), set(quantized.graph.activations()))
    if sum(map(activation_bytes, (quantized.prepared, quantized.graph))) * data.pieces <= budget:
        return both
    ends = set(quantized.encodings) | set(quantized.prepared.outputs)
    narrow = {name for name in both[1] if quantized.graph.types[name].dtype in ("int8", "uint8", "int16")}
    return both[0] & ends, both[1] & (ends | narrow)


def _ends(quantized: Quantized, program: Program, budget: int) -> tuple[Collection[str], Collection[str]]:
    """What of both graphs is worth its place beside samples: the outputs, and where integer runs start again."""
    again = checkpoints(program, budget // _SHARE)
    return quantized.prepared.outputs, again.union(quantized.graph.outputs)


def activation_bytes(graph: Graph) -> int:
    """Bytes of all activations for one piece of data."""
    types = [graph.types[name] for name in graph.activations()]
    return sum(numel(type.shape) * numpy_dtype(type.dtype).itemsize for type in types)
