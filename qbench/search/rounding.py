"""Whether weights are rounded on data by default: measured on samples that they were not rounded on."""

from collections.abc import Mapping
from concurrent.futures import Executor

from qbench.calibration.statistics import Statistics
from qbench.data.dataset import Dataset
from qbench.errors import Cancelled
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Graph
from qbench.ir.memo import Memo
from qbench.ir.op import bind
from qbench.ir.specialize import specialize
from qbench.ops.products import macs
from qbench.passes.pipeline import Trace
from qbench.passes.round_weights import RoundedTrace, RoundedWeight
from qbench.progress import Cancel, Progress
from qbench.quant.config import QuantConfig
from qbench.quantize.quantized import quantize_graph
from qbench.quantize.sequential import LIGHT, round_sequentially
from qbench.runtime.feeds import check_feeds
from qbench.search.nearness import Exact

_GOOD_DB, _LEAST_GAIN_DB = 26.0, 0.3
"""Outputs as near as this to the float model's are left alone, where 8 bits spoil nothing; and what must be gained to
keep the rounding."""
_PART, _JUDGED, _FEWEST = 4, 8, 12
"""This part of the data is held back, of which so many samples are judged on; of fewer pieces nothing is told."""
_MOST_WORK = 1 << 37
"""Products, so that it takes seconds."""


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
    """The weights rounded on data, by name; none where no output needs it, gains by it, or it would take long.

    Parameters
    ----------
    prepared, statistics, config, memo
        As for :func:`~qbench.quantize.quantized.quantize_graph`.
    data
        Calibration data. A few samples of its last quarter judge, weights are rounded on the rest.
    progress
        Told the weights done, and how many there are.
    cancel, executor
        To stop it, and where samples are run.

    Raises
    ------
    Cancelled
        `cancel` was set.
    """
    graph, nothing = prepared.graph, FrozenMap[str, RoundedWeight]()
    held_back = data.pieces // _PART
    if data.pieces < _FEWEST:
        return nothing
    if cancel is not None and cancel.is_set():
        raise Cancelled("stopped before it was measured how weights are best rounded; a later run starts again")
    first = data.pieces - held_back
    judged = data.pick(data.spread(_JUDGED, range(first, data.pieces)))
    if max(_work(specialize(graph, check_feeds(graph, feeds))) for feeds in judged) > _MOST_WORK:
        return nothing
    exact = Exact.of(graph, judged)
    plain = quantize_graph(prepared, statistics, config, memo)
    before = min(exact.decibels(plain.graph).values(), default=_GOOD_DB)
    spoiled = any(one.reason for one in (*config.tensors.values(), *config.layers.values()))
    if before >= _GOOD_DB and not spoiled:
        return nothing
    weights = {name: encoding for name, encoding in plain.encodings.items() if name in graph.constants}
    narrow, used = config.weights.narrow, range(first)
    found = round_sequentially(graph, weights, data, None, narrow, progress, cancel, executor, used)
    measured = config.with_value("weights.rounding", "measured")
    after = quantize_graph(RoundedTrace(prepared.source, prepared.steps, found), statistics, measured, memo)
    gained = min(exact.decibels(after.graph).values(), default=before) - before
    return found if gained >= _LEAST_GAIN_DB else nothing


def _work(graph: Graph) -> int:
    """About how many products it takes: both networks on some samples, and moments of the inputs of each layer."""
    total, (rows, more) = 0, LIGHT.inputs
    for node in graph.nodes:
        types = [graph.types[name] for name in node.inputs]
        op, products = bind(node), macs(graph, node)
        if products:
            depth = op.depth(*types)
            moments = getattr(op, "groups", 1) * depth**2 * (rows + more * depth)
            total += 2 * LIGHT.samples * products + moments
    return total
