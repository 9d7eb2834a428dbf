"""What each layer loses by itself, and what it inherits from the layers before it.

A layer is computed in integers from exact inputs: the float model's own, rounded to their encodings. How far that is
from what the float layer makes of the same rounded inputs is the layer's own error: rounding and clipping an input is
charged to the layer that makes it, rounding the model's input to those that read it. The rest of the error of the
quantized model's value comes from the errors of all layers before. An edit changes the own errors of a
layer and of those that read it, and nothing else: only they are computed again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from qbench.data.dataset import Dataset
from qbench.evaluate.cache import ValueCache
from qbench.evaluate.measure import Deviation, deviation, stride
from qbench.evaluate.parts import Parts, finite
from qbench.evaluate.side_by_side import Pair
from qbench.forms.scores import floors
from qbench.ir.op import Array
from qbench.ir.qparams import QParams
from qbench.ir.types import numel
from qbench.progress import Cancel
from qbench.quant.arithmetic import reals
from qbench.quantize.quantized import Quantized


@dataclass(frozen=True, slots=True)
class Own:
    """Of one value: the error that its layer makes of exact inputs, and what the layers before add to it."""

    own: Deviation = field(default_factory=Deviation)
    inherited: Deviation = field(default_factory=Deviation)

    def __add__(self, other: Own) -> Own:
        return Own(self.own + other.own, self.inherited + other.inherited)


def own_errors(
    quantized: Quantized,
    probe: Dataset,
    pairs: Iterable[Pair],
    cache: ValueCache,
    elements: int,
    cancel: Cancel | None = None,
) -> dict[Pair, Own]:
    """Measure both errors of each pair on some samples of the probe.

    Parameters
    ----------
    quantized, cache, cancel
        As for :func:`~qbench.evaluate.evaluate.evaluate`.
    probe
        A few samples.
    pairs
        Float tensors and the values that stand for them, where fused groups end.
    elements
        About how many elements of each value are compared in each sample.
    """
    parts = Parts(quantized, probe, pairs, cache, cancel)
    types, qparams, hidden = parts.types, quantized.graph.qparams, floors(quantized.prepared)
    stand_ins, (exact, made) = parts.stand_ins(), parts.keys
    known_as = {
        (a, b): ("own", exact[a], made[b], parts.own_keys[b], parts.few.digest, elements) for a, b in stand_ins.values()
    }
    known: dict[Pair, Own | None] = {pair: cache.get_result(key) for pair, key in known_as.items()}
    found = {pair: own for pair, own in known.items() if own is not None}
    stale = {pair: stride(numel(types[pair[0]].shape), elements) for pair in known if pair not in found}
    if stale:
        reference, values = parts.whole(stale)
        own = parts.own({value: step for (_, value), step in stale.items()})
        ideal = parts.ideals(stale)
        for (tensor, value), key in ((pair, known_as[pair]) for pair in stale):
            real = reference[tensor]
            arrays, floor = (real, ideal.get(value, real), own[value], values[value]), hidden.get(tensor, -math.inf)
            found[tensor, value] = _own(*arrays, qparams.get(value), floor)
            cache.put_result(key, found[tensor, value])
    return {pair: found[other] for pair, other in stand_ins.items()}


def _own(
    reference: Array, ideal: Array, own: Array, value: Array, integers: QParams | None, floor: float = -math.inf
) -> Own:
    signal = deviation(reference, value, None, integers, floor).signal
    alone = reals(own, integers)
    with np.errstate(over="ignore"):  # where a mask is added to a mask
        without = alone + (finite(reference) - finite(ideal))  # had all layers but this one been exact
    inherited = deviation(without, value, None, integers, floor)
    by_itself = deviation(ideal, own, None, integers, floor)
    return Own(replace(by_itself, signal=signal), replace(inherited, signal=signal))
