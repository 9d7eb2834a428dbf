"""What a quantized model answers, and how far that is from the float model: all that a trial looks at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from qbench.data.dataset import Dataset
from qbench.errors import NotANumberError
from qbench.evaluate.by_sample import by_sample
from qbench.evaluate.cache import ValueCache
from qbench.evaluate.checkpoints import checkpoints
from qbench.evaluate.detections import Finds, batchwise, worst_db
from qbench.evaluate.keys import value_keys
from qbench.evaluate.layers import value_of
from qbench.evaluate.outputs import joined
from qbench.evaluate.partial import partial_run
from qbench.evaluate.picked import compared, judged
from qbench.evaluate.side_by_side import BATCH
from qbench.ir.dtypes import is_integer
from qbench.ir.graph import Graph
from qbench.ir.memo import Memo
from qbench.ir.op import Array
from qbench.progress import Cancel
from qbench.quant.arithmetic import reals
from qbench.quantize.quantized import Quantized
from qbench.runtime.programs import Programs

_CACHE_BYTES = 1 << 27
_SHARE = 8  # of the budget, that one trial keeps to start again from

Outputs = Mapping[str, list[Array]]
"""Real numbers by name of the model's output, and of what outputs are judged by: an array for each batch of samples."""


@dataclass
class Answers:
    """A model's outputs for some data; integers that an earlier trial has made are where a later one starts.

    Parameters
    ----------
    data
        The samples.
    cache
        Of the integers of earlier trials.
    """

    data: Dataset
    cache: ValueCache = field(default_factory=lambda: ValueCache(_CACHE_BYTES))
    memo: Memo = field(default_factory=Memo)
    _last: Programs | None = field(default=None, init=False, repr=False, compare=False)
    """Of the last graph: as long as they live, planning the next one finds again what it shares."""

    def exact(self, prepared: Graph, cancel: Cancel | None = None) -> Outputs:
        """Of the float model."""
        return self.memo.recall("exact", (prepared,), lambda: self._run(prepared, compared(prepared), cancel))

    def of(self, quantized: Quantized, cancel: Cancel | None = None) -> Outputs | None:
        """Of the quantized model, under the float model's names; None where NaN arises on the way."""
        names = {name: value_of(quantized.graph, name) or name for name in compared(quantized.prepared)}
        try:
            made = self._run(quantized.graph, names.values(), cancel)
        except NotANumberError:
            return None
        return {name: made[value] for name, value in names.items()}

    def ratio(self, prepared: Graph, made: Outputs | None, cancel: Cancel | None = None) -> float | None:
        """The lowest SQNR in dB of what outputs are judged by, of those that say what is where as far as something is
        found (:class:`~qbench.evaluate.detections.Finds`); None where it is not a number."""
        if made is None:
            return None
        exact, finds, names = self.exact(prepared, cancel), self.finds(prepared, cancel), judged(prepared)
        deviations = (
            [part for name in names for part in finds.deviations(name, *both)] for both in batchwise(exact, made)
        )
        return worst_db(deviations)

    def finds(self, prepared: Graph, cancel: Cancel | None = None) -> Finds:
        """Which of the outputs say what is where."""
        exact = self.exact(prepared, cancel)
        some = {name: exact[name] for name in judged(prepared)}
        return self.memo.recall("finds", (prepared,), lambda: Finds.of(prepared, some))

    def joined(self, prepared: Graph, made: Outputs) -> dict[str, Array]:
        """The outputs: what a metric is asked about."""
        return {name: joined(made[name]) for name in prepared.outputs}

    def _run(self, graph: Graph, values: Iterable[str], cancel: Cancel | None) -> Outputs:
        """Fused as in earnest: no value in between is kept but a few integers, to start again from."""
        wanted = dict.fromkeys(values)
        inside = [name for name in wanted if name not in graph.outputs]
        programs, keys = Programs(graph, keep=inside), value_keys(graph, self.memo)
        found: dict[str, list[Array]] = {name: [] for name in wanted}
        self.cache.begin()
        for batch in self.data.batches(BATCH):
            places = checkpoints(programs.of(batch.feeds), self.cache.budget_bytes // _SHARE // self.data.pieces)
            kept = {name for name in places if is_integer(graph.types[name].dtype)}  # floats may differ in fused steps
            arrays = partial_run(programs, keys, batch, wanted, self.cache, kept, cancel=cancel).arrays
            for name, parts in found.items():
                parts.append(by_sample(graph, name, reals(arrays[name], graph.qparams.get(name))))
        self._last = programs
        return found

    def __reduce__(self) -> tuple[type[Answers], tuple[Dataset]]:
        return Answers, (self.data,)
