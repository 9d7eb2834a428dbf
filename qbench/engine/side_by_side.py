"""The float and the integer graph, run on the same chunks, compared value by value."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from contextvars import copy_context
from dataclasses import dataclass
from typing import TypeVar

from qbench.engine.cache import ValueCache
from qbench.engine.dataset import Chunk, Dataset
from qbench.engine.keys import value_keys
from qbench.engine.measure import Deviation, deviation
from qbench.engine.partial import partial_run
from qbench.engine.predictions import Score, score
from qbench.engine.quantized import Quantized
from qbench.errors import Cancelled
from qbench.ir.dtypes import is_float, numpy_dtype
from qbench.ir.graph import Graph
from qbench.ir.types import numel
from qbench.progress import Cancel, Progress
from qbench.runtime.programs import Programs
from qbench.runtime.team import default_threads

__all__ = ["Measured", "Pair", "measure"]

Pair = tuple[str, str]
"""A tensor of the float graph, and the value of the integer graph that stands for it."""

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
    """One of the two graphs."""

    programs: Programs
    keys: Mapping[str, str]
    kept: set[str]


def measure(
    quantized: Quantized,
    data: Dataset,
    pairs: Iterable[Pair],
    output: Pair,
    cache: ValueCache,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Measured:
    """Compare the pairs, and the predictions of `output`; what the cache knows is neither run nor compared again."""
    graphs = (quantized.prepared, quantized.graph)
    keys = (value_keys(graphs[0]), value_keys(graphs[1]))
    ranges = {tensor: encoding.qparams for tensor, encoding in quantized.encodings.items()}
    known_as = {(a, b): ("pair", keys[0][a], keys[1][b], ranges.get(a), data.digest) for a, b in pairs}
    score_known_as = ("score", keys[0][output[0]], keys[1][output[1]], data.digest, data.labels_digest)

    sums: dict[Pair, Deviation | None] = {pair: cache.get_result(key) for pair, key in known_as.items()}
    total: Score | None = cache.get_result(score_known_as)
    todo = [pair for pair, known in sums.items() if known is None]
    wanted = todo if total is not None else [*todo, output]
    found = {pair: Deviation() if known is None else known for pair, known in sums.items()}
    right, ran = total or Score(), (set[str](), set[str]())
    if not wanted:
        return Measured(found, right, *ran)
    programs = _programs(quantized, known_as, cache)
    sides = [_Side(*side) for side in zip(programs, keys, _kept(quantized, data, cache.budget_bytes), strict=True)]

    def compare(chunk: Chunk, threads: int) -> tuple[list[Deviation], Score, list[frozenset[str]]]:
        runs = [
            partial_run(
                side.programs, side.keys, chunk, {pair[i] for pair in wanted}, cache, side.kept, threads, cancel
            )
            for i, side in enumerate(sides)
        ]
        reference, values = (run.arrays for run in runs)
        qparams = quantized.graph.qparams
        made = [deviation(reference[a], values[b], ranges.get(a), qparams.get(b)) for a, b in todo]
        labels = None if data.labels is None else data.labels[chunk.start : chunk.stop]
        scored = score(reference[output[0]], values[output[1]], labels, chunk.start) if total is None else Score()
        return made, scored, [run.nodes for run in runs]

    with closing(_in_order(compare, data, progress, cancel)) as chunks:
        for made, scored, nodes in chunks:
            found |= {pair: found[pair] + more for pair, more in zip(todo, made, strict=True)}
            right += scored
            for names, more in zip(ran, nodes, strict=True):
                names.update(more)
    for pair in todo:
        cache.put_result(known_as[pair], found[pair])
    cache.put_result(score_known_as, right)
    return Measured(found, right, ran[1], ran[0])


def _programs(quantized: Quantized, pairs: Iterable[Pair], cache: ValueCache) -> tuple[Programs, Programs]:
    """The programs of both graphs, the last ones again where the graph is the same.

    Float steps are never fused, whatever is wanted: their results then have the same bits in every evaluation.
    """
    floats = tuple(quantized.prepared.activations())
    types = quantized.graph.types
    mixed = tuple(name for name in quantized.graph.activations() if is_float(types[name].dtype))
    wanted = dict.fromkeys([*mixed, *(value for _, value in pairs if value not in quantized.graph.constants)])
    return cache.programs("float", quantized.prepared, floats), cache.programs(
        "integer", quantized.graph, tuple(wanted)
    )


def _in_order(
    work: Callable[[Chunk, int], T], data: Dataset, progress: Progress | None, cancel: Cancel | None
) -> Generator[T]:
    """What `work` makes of each chunk on so many threads; several are done at a time."""
    workers = min(default_threads(), -(-data.pieces // data.layout.pieces_per_chunk))
    running: deque[tuple[int, Future[T]]] = deque()
    done = 0
    with ThreadPoolExecutor(workers, thread_name_prefix="qbench evaluation") as pool:
        try:
            chunks = data.chunks()
            while True:
                while len(running) <= workers and (chunk := next(chunks, None)) is not None:
                    future = pool.submit(copy_context().run, work, chunk, max(1, default_threads() // workers))
                    running.append((chunk.stop, future))
                if progress is not None:
                    progress(done, data.samples)
                if cancel is not None and cancel.is_set():
                    raise Cancelled(f"stopped after {done} of {data.samples} samples")
                if not running:
                    return
                done, future = running.popleft()
                yield future.result()
        finally:
            for _, future in running:
                future.cancel()


def _kept(quantized: Quantized, data: Dataset, budget: int) -> tuple[set[str], set[str]]:
    """The values of both graphs that are worth their place in the cache: all, or what the fused groups make."""
    both = (set(quantized.prepared.activations()), set(quantized.graph.activations()))
    if sum(map(_bytes, (quantized.prepared, quantized.graph))) * data.pieces <= budget:
        return both
    ends = set(quantized.encodings) | set(quantized.prepared.outputs)
    narrow = {name for name in both[1] if quantized.graph.types[name].dtype in ("int8", "uint8", "int16")}
    return both[0] & ends, both[1] & (ends | narrow)


def _bytes(graph: Graph) -> int:
    """Bytes of all activations for one piece of data."""
    types = [graph.types[name] for name in graph.activations()]
    return sum(numel(type.shape) * numpy_dtype(type.dtype).itemsize for type in types)
