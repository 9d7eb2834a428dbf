"""The float and the integer graph, run on the same chunks, compared value by value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from qbench.engine.cache import ValueCache
from qbench.engine.dataset import Dataset
from qbench.engine.keys import value_keys
from qbench.engine.measure import Deviation, deviation
from qbench.engine.partial import PartialRun
from qbench.engine.predictions import Score, score
from qbench.engine.quantized import Quantized
from qbench.errors import Cancelled
from qbench.ir.dtypes import numpy_dtype
from qbench.ir.graph import Graph
from qbench.ir.types import numel
from qbench.progress import Cancel, Progress
from qbench.quant.arithmetic import dequantize

__all__ = ["Measured", "Pair", "measure"]

Pair = tuple[str, str]
"""A tensor of the float graph, and the value of the integer graph that stands for it."""


@dataclass(frozen=True)
class Measured:
    """Sums over all data, and the names of the nodes that had to run for them."""

    deviations: dict[Pair, Deviation]
    score: Score
    steps: set[str]
    reference_steps: set[str]


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
    wanted = [*todo, output] if total is None else todo
    found = {pair: Deviation() if known is None else known for pair, known in sums.items()}
    right = Score() if total is None else total
    ran: tuple[set[str], set[str]] = (set(), set())
    kept = _kept(quantized, data, cache.budget_bytes)
    for chunk in data.chunks() if wanted else ():
        sides = [PartialRun(graphs[i], keys[i], chunk, [pair[i] for pair in wanted], cache, kept[i]) for i in range(2)]
        for number, pair in enumerate(todo):
            if progress is not None:
                progress(chunk.start + (chunk.stop - chunk.start) * number // len(todo), data.samples)
            if cancel is not None and cancel.is_set():
                raise Cancelled(f"stopped after {chunk.start} of {data.samples} samples")
            reference, value = sides[0].take(pair[0]), sides[1].take(pair[1])
            qparams = quantized.graph.qparams.get(pair[1])
            real = value if qparams is None else dequantize(value, qparams)
            found[pair] += deviation(reference, real, ranges.get(pair[0]))
        if total is None:
            labels = None if data.labels is None else data.labels[chunk.start : chunk.stop]
            right += score(sides[0].take(output[0]), sides[1].take(output[1]), labels)
        for steps, side in zip(ran, sides, strict=True):
            steps.update(side.steps)
        if progress is not None:
            progress(chunk.stop, data.samples)
    for pair in todo:
        cache.put_result(known_as[pair], found[pair])
    cache.put_result(score_known_as, right)
    return Measured(found, right, ran[1], ran[0])


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
