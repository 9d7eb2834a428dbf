"""Measure what quantization costs, per layer and at the output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from typing import Literal

from qbench.calibration.statistics import Statistics
from qbench.cluster.where import Cluster, gathered
from qbench.data.dataset import Dataset
from qbench.errors import NotANumberError
from qbench.evaluate.cache import ValueCache, of_process
from qbench.evaluate.chances import chances_of
from qbench.evaluate.chunks import asked
from qbench.evaluate.judging import judging_of
from qbench.evaluate.keys import value_keys
from qbench.evaluate.layers import Layer, layers_of, value_of
from qbench.evaluate.measure import Deviation
from qbench.evaluate.metric import Metric
from qbench.evaluate.outputs import Outputs, all_of
from qbench.evaluate.own_errors import Own, own_errors
from qbench.evaluate.picked import compared, judged, picked
from qbench.evaluate.predictions import Score
from qbench.evaluate.side_by_side import BATCH, Measured, Pair, activation_bytes, measure
from qbench.evaluate.unfinished import told_of, up_to
from qbench.evaluate.unlike import unlike_of
from qbench.ir.dtypes import is_float
from qbench.ir.graph import Graph
from qbench.ir.op import Array
from qbench.progress import Cancel, Progress
from qbench.quantize.quantized import Quantized
from qbench.report.entries import LayerReport, OutputReport
from qbench.report.report import Report

_SMALL, _FEW = 1 << 22, 32  # bytes of all activations for one sample, and nodes, of a small network
_ELEMENTS, _MOST, _FEWEST = 1 << 17, 1024, 64  # of each value: over all data, in one sample


def evaluate(
    quantized: Quantized,
    data: Dataset,
    cache: ValueCache | None = None,
    *,
    data_name: str = "evaluation",
    probe: Dataset | None = None,
    metric: Metric | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
    told: Callable[[OutputReport], None] | None = None,
    executor: Executor | None = None,
    seen: Mapping[str, Statistics] | None = None,
) -> Report:
    """Measure a quantized model on data, running only what the cache does not know yet.

    The result is the same, bit for bit, whatever the cache holds. Small networks (32 nodes, 4 MiB of values per sample)
    are compared element by element, accumulators too. Of larger ones nothing is run apart that a program runs as one
    step, and a fixed sample of each value's elements is compared: SQNR is then right within some tenth of a decibel.

    Parameters
    ----------
    quantized
        The model in both forms, float and integer.
    data
        Samples, perhaps with labels.
    cache
        From earlier evaluations, of this or other models.
    data_name
        What the report calls the data.
    probe
        A few samples, which each layer's own error is measured on, and which tell what outputs say; None: the former is
        not.
    metric
        The user's measure of quality, asked about all outputs of both models, with the truths of `data`.
    progress, cancel
        To watch and to stop it.
    told
        Called with what the whole network loses, without the user's metric, as soon as that is known: each layer's own
        error follows. What it raises ends the evaluation.
    executor
        Where chunks are run: threads, processes, or a cluster; None: on this machine's processors.
    seen
        What calibration saw, by tensor: tells where the data is unlike that. None: nobody asks.

    Raises
    ------
    Cancelled
        Somebody asked to stop. What was computed by then stays in the cache.
    DataError
        The data is no longer what it was, the labels do not fit the model's predictions, or the metric gives no finite
        number.

    Notes
    -----
    Where NaN arises on the way, and would be quantized, the report goes up to there and says so: see `Report.stopped`.
    """
    cache = ValueCache(0) if cache is None else cache
    cache.begin()
    outputs, by, elements = _outputs(quantized), _judged(quantized), _elements_per_sample(quantized, data)
    layers = layers_of(quantized, cache, data.sizes)
    by_layer = [(layer, layer.pairs if elements is None else layer.ends) for layer in layers]
    fed = [] if seen is None else _pairs(quantized, (name for name in quantized.prepared.inputs if name in seen))
    pairs = dict.fromkeys([*fed, *(pair for _, some in by_layer for pair in some), *outputs, *by])
    probed = dict.fromkeys(pair for layer in layers for pair in layer.ends)
    own = _Owning(quantized, tuple(probed), elements or _MOST)
    alone = [executor.submit(own, probe)] if probe is not None and isinstance(executor, Cluster) else []
    try:
        choice, ends = _choice(quantized, outputs, data), _real(quantized, by)
        judging = judging_of(quantized.prepared, data if probe is None else probe, cache)
        found = measure(
            quantized, data, pairs, choice, cache, progress, cancel, elements, executor, ends, judging=judging
        )
    except NotANumberError as error:
        return _unfinished(quantized, data, cache, by_layer, error, data_name, cancel, executor)
    output = _output(found, by, data, data_name)
    if told is not None:
        told(output)
    apart = gathered(alone, cancel)[0] if alone else own(probe, cache, cancel)
    return Report(
        by_layer=tuple(_with_measurements(*layer, found, apart) for layer in by_layer),
        output=with_metric(output, quantized, data, cache, metric, cancel, executor),
        steps_ran=_in_order(quantized.graph, found.steps),
        reference_steps_ran=_in_order(quantized.prepared, found.reference_steps),
        unlike=unlike_of(found.deviations, quantized.encodings, seen or {}),
    )


def _unfinished(
    quantized: Quantized,
    data: Dataset,
    cache: ValueCache,
    layers: Sequence[tuple[Layer, Sequence[Pair]]],
    error: NotANumberError,
    data_name: str,
    cancel: Cancel | None,
    executor: Executor | None,
) -> Report:
    """The report up to where NaN arises."""
    elements = _elements_per_sample(quantized, data) or _MOST
    part, found, there = quantized, None, list[tuple[Layer, Sequence[Pair]]]()
    while found is None:
        part = up_to(part, error.value)
        there = [(layer, [pair for pair in pairs if pair[1] in part.graph.types]) for layer, pairs in layers]
        pairs = dict.fromkeys(pair for _, some in there for pair in some)
        try:
            found = Measured({}, Score(), {}, set(), set())
            if pairs:
                found = measure(part, data, pairs, None, cache, None, cancel, elements, executor)
        except NotANumberError as earlier:
            error, found = earlier, None
    return Report(
        by_layer=tuple(_with_measurements(layer, pairs, found, {}) for layer, pairs in there),
        output=OutputReport(sqnr_db=None, agreement=None, samples=data.samples, data=data_name),
        stopped=told_of(part, data, error),
    )


def evaluate_output(
    quantized: Quantized,
    data: Dataset,
    cache: ValueCache,
    cancel: Cancel | None = None,
    executor: Executor | None = None,
    keep: bool = True,
) -> OutputReport:
    """The output's part of :func:`evaluate`, for those who need no more: no layer in between is compared.

    What is made goes to the cache where it is to be kept: where others will start from it.
    """
    cache.begin()
    outputs, by = _outputs(quantized), _judged(quantized)
    choice, ends = _choice(quantized, outputs, data), _real(quantized, by)
    pairs = _pairs(quantized, compared(quantized.prepared))
    judging = judging_of(quantized.prepared, data, cache)
    found = measure(
        *(quantized, data, pairs, choice, cache),
        cancel=cancel,
        executor=executor,
        ends=ends,
        keep=keep,
        judging=judging,
    )
    return _output(found, by, data, "evaluation")


def with_metric(
    output: OutputReport,
    quantized: Quantized,
    data: Dataset,
    cache: ValueCache,
    metric: Metric | None,
    cancel: Cancel | None = None,
    executor: Executor | None = None,
) -> OutputReport:
    """The same with what the user's metric says; what it said of the same outputs before is remembered."""
    if metric is None:
        return output
    said = metric.about(data.truths)

    def answer(side: Literal["float", "quantized"]) -> float:
        graph = quantized.prepared if side == "float" else quantized.graph
        keys = value_keys(graph, cache.memo)
        made = tuple(keys[a if side == "float" else b] for a, b in _outputs(quantized))
        key = ("metric", said.identity, id(data.truths), made, data.digest)  # the truths live as long as the data
        known: float | None = cache.get_result(key)
        if known is None:
            run = Outputs(quantized, side)
            if executor is None:
                cache.begin()
                run = partial(run, cache=cache, cancel=cancel)
            known = asked(_OfOutputs(said), run, data, BATCH, executor, cancel)
            cache.put_result(key, known)
        return known

    return replace(output, metric_name=metric.name, metric_float=answer("float"), metric=answer("quantized"))


@dataclass(frozen=True)
class _Owning:
    """Measures each layer's own error on a probe, wherever it is sent."""

    quantized: Quantized
    pairs: tuple[Pair, ...]
    elements: int

    def __call__(
        self, probe: Dataset | None, cache: ValueCache | None = None, cancel: Cancel | None = None
    ) -> dict[Pair, Own]:
        if probe is None:
            return {}
        cache = of_process() if cache is None else cache
        return own_errors(self.quantized, probe, self.pairs, cache, self.elements, cancel)

    def __reduce__(self) -> tuple[type[_Owning], tuple[object, ...]]:
        return _Owning, (self.quantized.without_trace(), self.pairs, self.elements)


@dataclass(frozen=True)
class _OfOutputs:
    """What a metric says of the outputs of all batches."""

    metric: Metric

    def __call__(self, parts: Sequence[Mapping[str, Array]]) -> float:
        return self.metric(all_of(parts))


def _outputs(quantized: Quantized) -> list[Pair]:
    return _pairs(quantized, quantized.prepared.outputs)


def _judged(quantized: Quantized) -> list[Pair]:
    """What the outputs are judged by."""
    return _pairs(quantized, judged(quantized.prepared))


def _pairs(quantized: Quantized, names: Iterable[str]) -> list[Pair]:
    return [(name, value_of(quantized.graph, name) or name) for name in names]


def _real(quantized: Quantized, pairs: Iterable[Pair]) -> list[Pair]:
    """Those of real numbers."""
    return [pair for pair in pairs if is_float(quantized.prepared.types[pair[0]].dtype)]


def _choice(quantized: Quantized, outputs: Sequence[Pair], data: Dataset) -> Pair | None:
    """The first output where it is a choice between classes; None for boxes, masks, signals and states.

    It is one where there are labels, for one row of scores a sample that is no list of the best, for integers, and for
    chances of classes.
    """
    tensor = outputs[0][0]
    kind = quantized.prepared.types[tensor]
    is_row = sum(dim != 1 for dim in kind.shape[1:]) <= 1 and tensor not in picked(quantized.prepared)
    chosen = data.labels is not None or is_row or not is_float(kind.dtype)
    return outputs[0] if chosen or chances_of(quantized.prepared, tensor) is not None else None


def _elements_per_sample(quantized: Quantized, data: Dataset) -> int | None:
    """How many elements of each value to compare in each sample; None, and that is all, in a small network."""
    size = activation_bytes(quantized, data.sizes)
    small = size <= _SMALL and len(quantized.prepared.nodes) <= _FEW
    return None if small else max(_FEWEST, min(_MOST, _ELEMENTS // data.samples))


def _with_measurements(layer: Layer, pairs: Iterable[Pair], found: Measured, own: Mapping[Pair, Own]) -> LayerReport:
    sums = reduce(add, (found.deviations[pair] for pair in pairs), Deviation())
    alone = reduce(add, (own[pair] for pair in layer.ends if pair in own), Own())
    return replace(
        layer.report,
        sqnr_db=sums.sqnr_db,
        clipped=sums.clipped_fraction if layer.report.encoded == layer.report.tensor else None,
        own_sqnr_db=alone.own.sqnr_db,
        inherited_sqnr_db=alone.inherited.sqnr_db,
    )


def _output(found: Measured, by: Iterable[Pair], data: Dataset, data_name: str) -> OutputReport:
    ratios = [found.deviations[pair].sqnr_db for pair in by]
    score: Score = found.score
    labelled = data.labels is not None
    return OutputReport(
        sqnr_db=min((r for r in ratios if r is not None), default=None) if None not in ratios else None,
        agreement=score.share(score.equal),
        top1_float=score.share(score.right_float) if labelled else None,
        top1=score.share(score.right) if labelled else None,
        samples=data.samples,
        data=data_name,
        flipped=score.predictions - score.equal if score.predictions else None,
        flips=score.flips,
        losses=tuple(lost.of(tensor) for (tensor, _), lost in found.losses.items()),
    )


def _in_order(graph: Graph, names: set[str]) -> tuple[str, ...]:
    return tuple(node.name for node in graph.nodes if node.name in names)
