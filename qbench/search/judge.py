"""What a config is worth on some samples: a value that travels to any worker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field

from qbench.calibration.statistics import Statistics
from qbench.data.dataset import Dataset
from qbench.evaluate.cache import ValueCache
from qbench.evaluate.evaluate import evaluate_output
from qbench.ir.memo import Memo
from qbench.passes.pipeline import Trace
from qbench.progress import Cancel
from qbench.quant.config import QuantConfig
from qbench.quantize.quantized import quantize_graph
from qbench.search.cost import effort

__all__ = ["Judge", "Worth", "judged"]

_CACHE_BYTES = 1 << 28


@dataclass(frozen=True, slots=True)
class Worth:
    """Of one config.

    Parameters
    ----------
    sqnr_db
        The lowest of an output, minus infinity where it is not a number.
    effort
        About how long a run takes; see :func:`qbench.search.cost.effort`.
    """

    sqnr_db: float
    effort: float

    @property
    def noise(self) -> float:
        """Power of the error, for one of the signal."""
        return 10 ** (-min(self.sqnr_db, 200.0) / 10)


@dataclass
class Judge:
    """Quantizes by a config and measures the output; what an earlier config has computed is not computed again.

    Parameters
    ----------
    statistics
        As for :func:`~qbench.quantize.quantized.quantize_graph`.
    data
        The samples, in memory.
    cache, memo
        Of earlier evaluations and graphs; a copy in another process starts with its own.
    """

    statistics: Mapping[str, Statistics]
    data: Dataset
    cache: ValueCache = field(default_factory=lambda: ValueCache(_CACHE_BYTES))
    memo: Memo = field(default_factory=Memo)

    def __call__(self, prepared: Trace, config: QuantConfig, cancel: Cancel | None = None) -> Worth:
        """What the config is worth to a prepared model."""
        quantized = quantize_graph(prepared, self.statistics, config, self.memo)
        ratio = evaluate_output(quantized, self.data, self.cache, cancel).sqnr_db
        return Worth(float("-inf") if ratio is None else ratio, effort(quantized.graph))

    def __reduce__(self) -> tuple[type[Judge], tuple[object, ...]]:
        return Judge, (self.statistics, self.data)


def judged(
    judge: Judge,
    trials: Iterable[tuple[Trace, QuantConfig]],
    executor: Executor | None = None,
    cancel: Cancel | None = None,
) -> list[Worth]:
    """What each config is worth, in their order: on an executor's workers, or here one after the other."""
    if executor is None:
        return [judge(prepared, config, cancel) for prepared, config in trials]
    return list(executor.map(judge, *zip(*trials, strict=True)))
