"""All that a model gives for all data, by output name: what a user's metric is asked about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from qbench.data.dataset import Chunk, Dataset
from qbench.evaluate.by_sample import by_sample
from qbench.evaluate.cache import ValueCache, of_process
from qbench.evaluate.chunks import asked
from qbench.evaluate.keys import value_keys
from qbench.evaluate.layers import value_of
from qbench.evaluate.partial import partial_run
from qbench.evaluate.side_by_side import BATCH, programs_of
from qbench.ir.op import Array
from qbench.progress import Cancel
from qbench.quant.arithmetic import reals
from qbench.quantize.quantized import Quantized


@dataclass(frozen=True)
class Outputs:
    """Runs one of the two graphs: of a batch, real numbers by name of the model's output.

    Integers are given only where the float model gives them.
    """

    quantized: Quantized
    side: Literal["float", "quantized"]

    def __call__(self, chunk: Chunk, cache: ValueCache | None = None, cancel: Cancel | None = None) -> dict[str, Array]:
        """What the cache does not know is run."""
        cache = of_process() if cache is None else cache
        graph, names = self.quantized.prepared, self.quantized.prepared.outputs
        pairs = [(name, value_of(self.quantized.graph, name) or name) for name in names]
        if self.side == "quantized":
            graph = self.quantized.graph
        stand_in = {a: b if self.side == "quantized" else a for a, b in pairs}
        programs = programs_of(self.quantized, pairs, cache)[self.side == "quantized"]
        keys, wanted = value_keys(graph, cache.memo), {*stand_in.values()}
        arrays = partial_run(programs, keys, chunk, wanted, cache, wanted, cancel=cancel).arrays
        qparams = {name: graph.qparams.get(value) for name, value in stand_in.items()}
        found = {name: by_sample(graph, value, arrays[value]) for name, value in stand_in.items()}
        return {name: reals(array, qparams[name]) for name, array in found.items()}

    def __reduce__(self) -> tuple[type[Outputs], tuple[object, ...]]:
        return Outputs, (self.quantized.without_trace(), self.side)


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
    return asked(all_of, partial(Outputs(quantized, side), cache=cache, cancel=cancel), data, BATCH, None, cancel)


def all_of(parts: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """The outputs of all batches."""
    return {name: joined([part[name] for part in parts]) for name in parts[0]}


def joined(parts: list[Array]) -> Array:
    """Batches as one array; where samples differ in shape, an array of one array for each sample."""
    if len({part.shape[1:] for part in parts}) == 1:
        return parts[0] if len(parts) == 1 else np.concatenate(parts)
    samples = [sample for part in parts for sample in part]
    each = np.empty(len(samples), object)
    for number, sample in enumerate(samples):
        each[number] = sample
    return each
