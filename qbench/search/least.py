"""What 8 bits must keep of a tensor for the model to be good: measured, since only the output can tell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from qbench.calibration.statistics import Statistics
from qbench.data.dataset import Dataset, Feeds
from qbench.errors import Cancelled, DataError
from qbench.ir.dtypes import is_float, numpy_dtype
from qbench.ir.graph import Graph
from qbench.ir.memo import Memo
from qbench.ir.op import bind
from qbench.ir.types import numel
from qbench.passes.pipeline import Trace
from qbench.progress import Cancel
from qbench.quant.config import QuantConfig
from qbench.quantize.quantized import Quantized, quantize_graph
from qbench.runtime.programs import Programs

__all__ = ["LADDER", "measure_least_db"]

LADDER = (0.0, 20.0, 24.0, 27.0, 29.0, 31.0, 33.0, 35.0)
"""The candidates, in dB. Below 0 a tensor is noise; above the last one 8 bits harm nothing."""

_GOOD_DB, _GOOD_CLASSES_DB, _FAIR_DB = 30.0, 20.0, 23.0
"""An output as near as this to the float model's needs nothing; vectors, of which the largest counts, even less."""
_SAMPLES = 4
_MANY_MACS = 1 << 32
"""Of a sample: of larger models one sample and every other candidate are tried."""
_WORTH = ((12.0, math.inf), (_FAIR_DB, 0.15), (_GOOD_DB, 0.04))
"""Below an output ratio in dB: the share of the time that one decibel more may cost."""
_LEAST_GAIN_DB = 0.5
_FLOAT_MACS, _MACS_PER_BYTE = 4, 32


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
    graph = prepared.graph
    large = sum(_macs(graph, node.name) for node in graph.nodes) > _MANY_MACS
    pieces = np.linspace(0, data.pieces - 1, min(1 if large else _SAMPLES, data.pieces)).round().astype(int)
    feeds = data.pick(pieces.tolist())
    names = [name for name in graph.outputs if is_float(graph.types[name].dtype)]
    wanted = _outputs(Programs(graph), names, feeds)
    good = _GOOD_CLASSES_DB if all(graph.types[name].rank <= 2 for name in names) else _GOOD_DB
    best, found, tried = LADDER[0], (-math.inf, 1.0), list[str]()
    for least in LADDER[::2] if large else LADDER:
        if cancel is not None and cancel.is_set():
            raise Cancelled("stopped while it was measured which tensors 8 bits can hold; a later run starts again")
        quantized = quantize_graph(prepared, statistics, config.with_value("activations.least_db", least), memo)
        floats = [node.name for node in quantized.annotated.nodes if node.reason]
        if found[0] > -math.inf and floats == tried:
            continue
        tried = floats
        got = _ratio(quantized, names, feeds, wanted), _cost(quantized.graph)
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


def _outputs(programs: Programs, names: Sequence[str], feeds: Sequence[Feeds]) -> list[NDArray[np.float64]]:
    """Each output's values in all samples."""
    runs = [programs.of(feed).run(feed) for feed in feeds]
    return [np.concatenate([run[name].astype(np.float64).ravel() for run in runs]) for name in names]


def _ratio(
    quantized: Quantized, names: Sequence[str], feeds: Sequence[Feeds], wanted: Sequence[NDArray[np.float64]]
) -> float:
    """The lowest SQNR of an output in dB; minus infinity where NaN arises on the way."""
    try:
        given = _outputs(Programs(quantized.graph), names, feeds)
    except DataError:
        return -math.inf
    return min(map(_decibels, wanted, given), default=math.inf)


def _decibels(wanted: NDArray[np.float64], given: NDArray[np.float64]) -> float:
    finite = np.isfinite(wanted)
    signal, noise = float(np.square(wanted[finite]).sum()), float(np.square((wanted - given)[finite]).sum())
    if not math.isfinite(noise):
        return -math.inf
    return math.inf if noise == 0 else 10 * math.log10(signal / noise) if signal else -math.inf


def _cost(graph: Graph) -> float:
    """About how long a sample takes, in the time of writing a byte."""
    total = 0.0
    for node in graph.nodes:
        real = any(is_float(graph.types[name].dtype) for name in node.inputs)
        total += _macs(graph, node.name) * (_FLOAT_MACS if real else 1) / _MACS_PER_BYTE
        total += sum(
            numel(graph.types[name].shape) * numpy_dtype(graph.types[name].dtype).itemsize for name in node.outputs
        )
    return total


def _macs(graph: Graph, name: str) -> int:
    node = graph.node(name)
    return bind(node).macs(*(graph.types[value] for value in node.inputs))
