"""What a config is worth on some samples: a value that travels to any worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field

from qbench.calibration.statistics import Statistics
from qbench.cluster.where import gathered
from qbench.ir.memo import Memo
from qbench.passes.pipeline import Trace
from qbench.progress import Cancel
from qbench.quant.config import QuantConfig
from qbench.quantize.quantized import quantize_graph
from qbench.search.answers import Answers
from qbench.search.cost import effort


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
        return noise(self.sqnr_db)


def noise(sqnr_db: float | None) -> float:
    """Power of an error, for one of the signal; within 100 dB of it either way, as NaN is."""
    return 10 ** (-min(max(-100.0 if sqnr_db is None else sqnr_db, -100.0), 200.0) / 10)


@dataclass
class Judge:
    """Quantizes by a config and measures the output; what an earlier config has computed is not computed again.

    Parameters
    ----------
    prepared, statistics
        As for :func:`~qbench.quantize.quantized.quantize_graph`.
    answers
        Of the samples.
    memo
        Of earlier graphs; a copy in another process starts with its own.
    """

    prepared: Trace
    statistics: Mapping[str, Statistics]
    answers: Answers
    memo: Memo = field(default_factory=Memo)

    def __call__(self, config: QuantConfig, cancel: Cancel | None = None) -> Worth:
        """What the config is worth."""
        quantized = quantize_graph(self.prepared, self.statistics, config, self.memo)
        ratio = self.answers.ratio(quantized.prepared, self.answers.of(quantized, cancel), cancel)
        return Worth(float("-inf") if ratio is None else ratio, effort(quantized.graph, self.answers.data.sizes))

    def __reduce__(self) -> tuple[type[Judge], tuple[object, ...]]:
        return Judge, (self.prepared, self.statistics, self.answers)


def judged(
    trials: Sequence[tuple[Judge, QuantConfig]],
    executor: Executor | None = None,
    cancel: Cancel | None = None,
) -> list[Worth]:
    """What each config is worth, in their order: on an executor's workers, or here one after the other."""
    if executor is None:
        return [judge(config, cancel) for judge, config in trials]
    return gathered([executor.submit(judge, config) for judge, config in trials], cancel)
