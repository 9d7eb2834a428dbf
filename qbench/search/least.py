"""What 8 bits must keep of a tensor for the model to be good: measured, since only the output can tell."""

import math
from collections.abc import Mapping

from qbench.calibration.statistics import Statistics
from qbench.data.dataset import Dataset
from qbench.errors import Cancelled
from qbench.garbage import set_aside
from qbench.ir.graph import Graph
from qbench.ir.memo import Memo
from qbench.passes.pipeline import Trace
from qbench.progress import Cancel, stopped
from qbench.quant.config import QuantConfig
from qbench.quantize.quantized import quantize_graph
from qbench.search.cost import effort, products
from qbench.search.nearness import Exact

LADDER = (0.0, 20.0, 24.0, 27.0, 29.0, 31.0, 33.0, 35.0)
"""The candidates, in dB. Below 0 a tensor is noise; above the last one 8 bits harm nothing."""

_GOOD_DB, _GOOD_CLASSES_DB, _FAIR_DB = 30.0, 20.0, 23.0
"""An output as near as this to the float model's needs nothing; vectors, of which the largest counts, even less."""
_MANY_MACS = 1 << 32
"""Of a sample: of larger models every other candidate is tried, on more samples."""
_RUNS, _MOST_MACS = 32, 1 << 38
"""Of samples, of all candidates together: so many, or fewer where they take longer."""
_WORTH = ((12.0, math.inf), (_FAIR_DB, 0.15), (_GOOD_DB, 0.04))
"""Below an output ratio in dB: the share of the time that one decibel more may cost."""
_LEAST_GAIN_DB = 0.5


@set_aside()
def measure_least_db(
    prepared: Trace,
    statistics: Mapping[str, Statistics],
    config: QuantConfig,
    data: Dataset,
    memo: Memo,
    cancel: Cancel | None = None,
) -> float:
    """The candidate of `LADDER` that a model needs.

    Errors act jointly, so each candidate lifts all tensors below it at once. A higher one is taken where the output
    gains enough for what it costs; the cost is counted (products, and bytes that are written), not timed, so that the
    answer is the same each time.

    Parameters
    ----------
    prepared, statistics, config, memo
        As for :func:`~qbench.quantize.quantized.quantize_graph`.
    data
        A few samples of it are run.
    cancel
        To stop it.

    Raises
    ------
    Cancelled
        `cancel` was set.
    """
    graph, sizes = prepared.graph, data.sizes
    work = max(1, products(graph, sizes))
    candidates = LADDER[::2] if work > _MANY_MACS else LADDER
    samples = max(1, min(_RUNS, _MOST_MACS // work) // len(candidates))
    exact = Exact.of(graph, data.pick(data.spread(samples)))
    good = _GOOD_CLASSES_DB if all(graph.types[name].rank <= 2 for name in exact.outputs) else _GOOD_DB
    tried: Graph | None = None
    best, found = LADDER[0], (-math.inf, 1.0)
    for least in candidates:
        if stopped(cancel):
            raise Cancelled("stopped while it was measured which tensors 8 bits can hold; a later run starts again")
        quantized = quantize_graph(prepared, statistics, config.with_value("activations.least_db", least), memo)
        if found[0] > -math.inf and quantized.annotated == tried:
            continue
        tried = quantized.annotated
        got = min(exact.decibels(quantized.graph).values(), default=math.inf), effort(quantized.graph, sizes)
        if _is_worth(found, got):
            best, found = least, got
        if found[0] >= good:
            break
    return best


def _is_worth(old: tuple[float, float], new: tuple[float, float]) -> bool:
    """Whether what is gained (ratio in dB) is worth what it costs."""
    (before, cost), (after, more) = old, new
    if before == -math.inf:
        return after > before
    allowed = next((share for below, share in _WORTH if before < below), 0.0)
    gain = after - before
    return gain >= _LEAST_GAIN_DB and (more - cost) / cost <= allowed * gain
