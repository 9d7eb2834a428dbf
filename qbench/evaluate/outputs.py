"""All that a model gives for all data, by output name: what a user's metric is asked about."""

from __future__ import annotations

from typing import Literal

import numpy as np

from qbench.data.dataset import Dataset
from qbench.evaluate.cache import ValueCache
from qbench.evaluate.keys import value_keys
from qbench.evaluate.layers import value_of
from qbench.evaluate.partial import partial_run
from qbench.evaluate.side_by_side import BATCH, programs_of
from qbench.ir.op import Array
from qbench.progress import Cancel
from qbench.quant.arithmetic import dequantize
from qbench.quantize.quantized import Quantized

__all__ = ["joined", "outputs_of"]


def outputs_of(
    quantized: Quantized,
    side: Literal["float", "quantized"],
    data: Dataset,
    cache: ValueCache,
    cancel: Cancel | None = None,
) -> dict[str, Array]:
    """Run one of the two graphs over all data, as far as the cache does not know what it gives.

    Parameters
    ----------
    quantized, data, cache, cancel
        As for :func:`~qbench.evaluate.evaluate.evaluate`.
    side
        Which graph.

    Returns
    -------
    dict
        By name of the model's output: real numbers (integers only where the float model gives them), one sample after
        the other along axis 0. Where samples give results of different shapes: an array of one array for each sample.
    """
    cache.begin()
    names = quantized.prepared.outputs
    graph = quantized.prepared if side == "float" else quantized.graph
    stand_in = {name: name if side == "float" else value_of(graph, name) or name for name in names}
    pairs = [(name, value_of(quantized.graph, name) or name) for name in names]
    programs = programs_of(quantized, pairs, cache)[side == "quantized"]
    keys, wanted = value_keys(graph, cache.memo), {*stand_in.values()}
    found: dict[str, list[Array]] = {name: [] for name in names}
    for chunk in data.batches(BATCH):
        arrays = partial_run(programs, keys, chunk, wanted, cache, wanted, cancel=cancel).arrays
        for name, value in stand_in.items():
            qparams = graph.qparams.get(value)
            found[name].append(arrays[value] if qparams is None else dequantize(arrays[value], qparams))
    return {name: joined(parts) for name, parts in found.items()}


def joined(parts: list[Array]) -> Array:
    """Batches as one array; where samples differ in shape, an array of one array for each sample."""
    if len({part.shape[1:] for part in parts}) == 1:
        return parts[0] if len(parts) == 1 else np.concatenate(parts)
    samples = [sample for part in parts for sample in part]
    each = np.empty(len(samples), object)
    for number, sample in enumerate(samples):
        each[number] = sample
    return each
