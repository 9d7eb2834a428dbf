"""Whether weights are rounded on data by default: measured on samples that they were not rounded on."""

from collections.abc import Mapping
from concurrent.futures import Executor

from qbench.calibration.statistics import Statistics
from qbench.data.dataset import Dataset
from qbench.data.portions import Feeds
from qbench.errors import Cancelled
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Graph
from qbench.ir.memo import Memo
from qbench.ir.op import bind
from qbench.ir.specialize import sized
from qbench.ops.products import macs
from qbench.passes.pipeline import Trace
from qbench.passes.round_weights import RoundedTrace, RoundedWeight
from qbench.progress import Cancel, Progress, stopped
from qbench.quant.config import QuantConfig
from qbench.quant.encodings import Encoding
from qbench.quantize.quantized import encode, quantize_graph
from qbench.quantize.sequential import Effort, effort_of, round_sequentially
from qbench.search.nearness import Exact
from qbench.search.sides import needed_of_choices

LEAST_GAIN_DB = 0.3
"""What must be gained to keep the rounding."""
_GOOD_DB = 26.0
"""Outputs as near as this to the float model's are left alone."""
_PART, _JUDGED, _FEWEST = 4, 8, 12
"""This part of the data is held back, of which so many samples are judged on, or more where outputs are choices; of
fewer pieces nothing is told."""


def round_on_rest(
    prepared: Trace,
    statistics: Mapping[str, Statistics],
    config: QuantConfig,
    data: Dataset,
    memo: Memo,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
    executor: Executor | None = None,
) -> FrozenMap[str, RoundedWeight]:
    """Weights rounded on all of the data but the last quarter; none where samples are few or it would take long.

    Parameters
    ----------
    prepared, statistics, config, memo
        As for :func:`~qbench.quantize.quantized.quantize_graph`.
    data
        Calibration data.
    progress
        Told the weights done, and how many there are.
    cancel, executor
        To stop it, and where samples are run.

    Raises
    ------
    Cancelled
        `cancel` was set.
    """
    weights = _weights(prepared, statistics, config, memo)
    if not _judging(prepared.graph, data, effort_of(prepared.graph, weights)):
        return FrozenMap()
    return _rounded(prepared, weights, config, data, progress, cancel, executor)


def measure_rounding(
    prepared: Trace,
    statistics: Mapping[str, Statistics],
    config: QuantConfig,
    data: Dataset,
    memo: Memo,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
    executor: Executor | None = None,
) -> FrozenMap[str, RoundedWeight]:
    """The weights rounded on data, by name; none where no output needs it or gains by it on samples of the last
    quarter. Parameters and errors are those of :func:`round_on_rest`."""
    graph, nothing = prepared.graph, FrozenMap[str, RoundedWeight]()
    if stopped(cancel):
        raise Cancelled("stopped before it was measured how weights are best rounded; a later run starts again")
    weights = _weights(prepared, statistics, config, memo)
    if not (judged := _judging(graph, data, effort_of(graph, weights))):
        return nothing
    exact = Exact.of(graph, judged)
    nearest = quantize_graph(prepared, statistics, config, memo).graph
    if min(exact.decibels(nearest).values(), default=_GOOD_DB) >= _GOOD_DB:
        return nothing
    found = _rounded(prepared, weights, config, data, progress, cancel, executor)
    measured = config.with_value("weights.rounding", "measured")
    rounded = quantize_graph(RoundedTrace(prepared.source, prepared.steps, found), statistics, measured, memo).graph
    return found if helps(exact, nearest, rounded) else nothing


def helps(exact: Exact, nearest: Graph, rounded: Graph) -> bool:
    """Whether the worst output is nearer with rounded weights than with the nearest integers, in a usual sample."""
    before, after = (min(exact.usual(graph).values(), default=0.0) for graph in (nearest, rounded))
    return after - before >= LEAST_GAIN_DB


def _weights(
    prepared: Trace, statistics: Mapping[str, Statistics], config: QuantConfig, memo: Memo
) -> Mapping[str, Encoding]:
    _, _, encodings = encode(prepared, statistics, config, memo)
    return {name: encoding for name, encoding in encodings.items() if name in prepared.graph.constants}


def _rounded(
    prepared: Trace,
    weights: Mapping[str, Encoding],
    config: QuantConfig,
    data: Dataset,
    progress: Progress | None,
    cancel: Cancel | None,
    executor: Executor | None,
) -> FrozenMap[str, RoundedWeight]:
    narrow, seen = config.weights.narrow, range(unseen(data).start)
    return round_sequentially(prepared.graph, weights, data, None, narrow, progress, cancel, executor, seen)


def unseen(data: Dataset) -> range:
    """Numbers of the pieces of calibration data that no weight is rounded on, where they are to tell how good that is.

    The last quarter; none of fewer than 12."""
    return range(data.pieces - (data.pieces // _PART if data.pieces >= _FEWEST else 0), data.pieces)


def _judging(graph: Graph, data: Dataset, effort: Effort) -> list[Feeds]:
    """Some of what is held back; none where samples are few, or it would take long."""
    if not unseen(data) or _products(sized(graph, data.sizes), effort) > effort.most:
        return []
    return data.pick(data.spread(max(_JUDGED, needed_of_choices(graph, data.sizes)), unseen(data)))


def _products(graph: Graph, effort: Effort) -> int:
    """About how many it takes: both networks on some samples, and moments of the inputs of each layer."""
    total, (rows, more) = 0, effort.inputs
    for node in graph.nodes:
        types = [graph.types[name] for name in node.inputs]
        op, products = bind(node), macs(graph, node)
        if products:
            depth = op.depth(*types)
            moments = getattr(op, "groups", 1) * depth**2 * (rows + more * depth)
            total += 2 * effort.samples * products + moments
    return total
