"""What a config is worth on all the evaluation data: run batch by batch by any worker, asked where the outputs are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from qbench.data.dataset import Chunk
from qbench.errors import NotANumberError
from qbench.evaluate.by_sample import by_sample
from qbench.evaluate.cache import ValueCache
from qbench.evaluate.detections import Finds, worst_db
from qbench.evaluate.keys import value_keys
from qbench.evaluate.layers import value_of
from qbench.evaluate.measure import Deviation
from qbench.evaluate.metric import Metric
from qbench.evaluate.outputs import all_of
from qbench.evaluate.partial import partial_run
from qbench.evaluate.picked import compared, judged
from qbench.ir.graph import Graph
from qbench.ir.op import Array
from qbench.progress import Cancel
from qbench.quant.arithmetic import reals

_CACHE_BYTES = 1 << 27


@dataclass(frozen=True, slots=True)
class Quality:
    """What a config is worth on all the evaluation data.

    Parameters
    ----------
    metric
        The user's, or the SQNR of the output in dB where there is none.
    chosen_on, held_back
        The same on the samples that choices are made on, and on those that they never see; None where the metric can
        only be asked about all samples.
    sqnr_db
        Of the output, where it says what is where as far as something is found (see
        :class:`~qbench.evaluate.detections.Finds`); None where it is not a number.
    """

    metric: float
    chosen_on: float | None
    held_back: float | None
    sqnr_db: float | None


@dataclass(frozen=True, slots=True)
class Part:
    """Of one batch.

    Parameters
    ----------
    deviations
        Of what the outputs are judged by; None where NaN arises on the way.
    exact, made
        The outputs of both models, where a metric wants them: real numbers by the float model's names.
    """

    deviations: tuple[Deviation, ...] | None
    exact: Mapping[str, Array]
    made: Mapping[str, Array]


@dataclass(frozen=True)
class Tried:
    """Runs a batch through both models, fused as in earnest.

    Parameters
    ----------
    prepared, graph
        The float model, and one quantized from it; None: the float model again.
    outputs
        Whether they are wanted.
    finds
        Which of them say what is where.
    """

    prepared: Graph
    graph: Graph | None
    outputs: bool
    finds: Finds

    def __call__(self, batch: Chunk, cache: ValueCache | None = None, cancel: Cancel | None = None) -> Part:
        """`cache` keeps the float model's outputs."""
        cache, names = _of_process() if cache is None else cache, compared(self.prepared)
        exact = _run(self.prepared, names, batch, cache, cancel, "exact")
        made = exact if self.graph is None else _made(self.graph, names, batch, cache, cancel)
        if made is None:
            return Part(None, {}, {})
        by = () if self.graph is None else judged(self.prepared)
        apart = tuple(found for name in by for found in self.finds.deviations(name, exact, made))
        ends = self.prepared.outputs if self.outputs else ()
        return Part(apart, *({name: some[name] for name in ends} for some in (exact, made)))


@dataclass(frozen=True)
class Measuring:
    """The quality that all parts have: that of the quantized model, or of the float model where that ran alone.

    Parameters
    ----------
    metric
        The user's; None: SQNR.
    samples
        In all parts.
    """

    metric: Metric | None
    samples: int

    def __call__(self, parts: Sequence[Part]) -> Quality:
        """Of the parts in the order of the data."""
        ratio = _ratio(parts)
        if self.metric is None or any(part.deviations is None for part in parts):
            return Quality(float("-inf") if ratio is None else ratio, None, None, ratio)
        outputs = all_of([part.made for part in parts])
        whole = self.metric(outputs)
        if self.metric.truths is None or self.samples < 2:
            return Quality(whole, None, None, ratio)
        chosen_on, held_back = (self.metric(outputs, range(half, self.samples, 2)) for half in (0, 1))
        return Quality(whole, chosen_on, held_back, ratio)


@dataclass(frozen=True)
class Checking:
    """Raises DataError where nothing can be chosen by a metric."""

    metric: Metric

    def __call__(self, parts: Sequence[Part]) -> None:
        """Of the parts in the order of the data."""
        if all(part.deviations is not None for part in parts):
            self.metric.check(all_of([part.exact for part in parts]), all_of([part.made for part in parts]))


def _ratio(parts: Sequence[Part]) -> float | None:
    """The lowest SQNR in dB of what outputs are judged by; None where it is not a number."""
    each = [part.deviations for part in parts if part.deviations is not None]
    if len(each) < len(parts):
        return None
    return worst_db(each) if any(each) else float("inf")


def _made(
    graph: Graph, names: Sequence[str], batch: Chunk, cache: ValueCache, cancel: Cancel | None
) -> dict[str, Array] | None:
    """What the float model's values are in a quantized one; None where NaN arises on the way."""
    values = {name: value_of(graph, name) or name for name in names}
    try:
        made = _run(graph, [*values.values()], batch, cache, cancel, "made")
    except NotANumberError:
        return None
    return {name: made[value] for name, value in values.items()}


def _run(
    graph: Graph, values: Sequence[str], batch: Chunk, cache: ValueCache, cancel: Cancel | None, kind: str
) -> dict[str, Array]:
    """Real numbers by name of the value; only the float model's are kept."""
    wanted, keys = {*values}, value_keys(graph, cache.memo)
    inside = tuple(name for name in dict.fromkeys(values) if name not in graph.outputs)
    programs, kept = cache.programs(kind, graph, inside), wanted if kind == "exact" else ()
    arrays = partial_run(programs, keys, batch, wanted, cache, kept, cancel=cancel).arrays
    return {name: by_sample(graph, name, reals(arrays[name], graph.qparams.get(name))) for name in wanted}


@lru_cache(maxsize=1)
def _of_process() -> ValueCache:
    """Of a worker."""
    return ValueCache(_CACHE_BYTES)
