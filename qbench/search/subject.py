"""What is searched: a model, its data, how quality is measured, and all that is known of it already."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from qbench.calibration.statistics import Statistics
from qbench.data.dataset import Dataset
from qbench.evaluate.cache import ValueCache
from qbench.evaluate.evaluate import evaluate_output
from qbench.evaluate.keys import value_keys
from qbench.evaluate.metric import Metric
from qbench.evaluate.outputs import outputs_of
from qbench.evaluate.probe import Probe
from qbench.ir.graph import Graph
from qbench.passes.pipeline import Trace
from qbench.progress import Cancel
from qbench.quant.config import QuantConfig
from qbench.quantize.quantized import Quantized
from qbench.runtime.team import default_threads
from qbench.search.cost import Cost, measured_cost
from qbench.search.judge import Judge, Worth, judged
from qbench.search.ledger import Ledger

__all__ = ["Quality", "Subject"]


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
        Of the output; None where it is not a number.
    """

    metric: float
    chosen_on: float | None
    held_back: float | None
    sqnr_db: float | None


@dataclass(frozen=True, eq=False)
class Subject:
    """A model to improve; safe to ask from several threads.

    Parameters
    ----------
    prepared, fed, statistics
        The float graph, the graph that takes data, and what calibration saw.
    trace, quantize
        The prepared model for a config (its weights rounded, where the config asks for that), and quantized by it.
    calibration, evaluation
        The data that trials are made on, and that results are checked on (None: the same).
    cache
        Of earlier evaluations.
    metric
        The user's; None: SQNR.
    ledger
        Of earlier trials.
    executor
        Where trials run; None: here.
    cancel
        Stops what runs.
    """

    prepared: Graph
    fed: Graph
    statistics: Mapping[str, Statistics]
    trace: Callable[[QuantConfig], Trace]
    quantize: Callable[[QuantConfig], Quantized]
    calibration: Dataset
    evaluation: Dataset | None
    cache: ValueCache
    metric: Metric | None = None
    ledger: Ledger = field(default_factory=Ledger)
    executor: Executor | None = None
    cancel: Cancel | None = None

    @property
    def data(self) -> Dataset:
        """What results are checked on."""
        return self.evaluation or self.calibration

    @cached_property
    def identity(self) -> str:
        """Of the model's values."""
        keys = value_keys(self.prepared)
        return " ".join(keys[name] for name in self.prepared.outputs)

    def rung(self, samples: int) -> Callable[[Sequence[QuantConfig]], Sequence[Worth]]:
        """Measures configs on so many samples of the calibration data; what the ledger knows is not measured again."""
        judge = self._judge(samples)
        place = f"worth {self.identity} {judge.data.digest}"

        def worths(configs: Sequence[QuantConfig]) -> list[Worth]:
            keys = [Ledger.key(config, place) for config in configs]
            todo = {key: config for key, config in zip(keys, configs, strict=True) if self.ledger.get(key) is None}
            trials = [(self.trace(config), config) for config in todo.values()]
            found = judged(judge, trials, self.executor, self.cancel) if trials else []
            for key, worth in zip(todo, found, strict=True):
                self.ledger.put({key: {"sqnr_db": worth.sqnr_db, "effort": worth.effort}})
            return [Worth(**known) for key in keys if (known := self.ledger.get(key)) is not None]

        return worths

    def quality(self, config: QuantConfig) -> Quality:
        """What a config is worth on the data that it is checked on."""
        metric = "" if self.metric is None else self.metric.identity
        key = Ledger.key(config, "quality", self.identity, self.data.digest, self.data.labels_digest, metric)
        known = self.ledger.get(key)
        if known is None:
            quantized = self.quantize(config)
            ratio = evaluate_output(quantized, self.data, self.cache, self.cancel).sqnr_db
            found = self._measured(outputs_of(quantized, "quantized", self.data, self.cache, self.cancel), ratio)
            known = {name: getattr(found, name) for name in Quality.__slots__}
            self.ledger.put({key: known})
        return Quality(**known)

    def float_quality(self, config: QuantConfig) -> Quality:
        """What the float model is worth; its SQNR is infinite."""
        outputs = outputs_of(self.quantize(config), "float", self.data, self.cache, self.cancel)
        return self._measured(outputs, float("inf"))

    def check_metric(self, config: QuantConfig) -> None:
        """Raise DataError where nothing can be chosen by the metric."""
        if self.metric is not None:
            quantized = self.quantize(config)
            exact = outputs_of(quantized, "float", self.data, self.cache, self.cancel)
            self.metric.check(exact, outputs_of(quantized, "quantized", self.data, self.cache, self.cancel))

    def cost(self, config: QuantConfig) -> Cost:
        """Time of one sample on one thread, and bytes, measured by the program."""
        return measured_cost(self.quantize(config).graph, self.data.pick([0])[0], default_threads(), self.cancel)

    def _measured(self, outputs: Mapping[str, np.ndarray], ratio: float | None) -> Quality:
        if self.metric is None:
            number = float("-inf") if ratio is None else ratio
            return Quality(number, None, None, ratio)
        whole = self.metric(outputs)
        if self.metric.truths is None or self.data.samples < 2:
            return Quality(whole, None, None, ratio)
        rows = range(self.data.samples)
        parts = [self.metric(outputs, [row for row in rows if row % 2 == part]) for part in (0, 1)]
        return Quality(whole, parts[0], parts[1], ratio)

    def _judge(self, samples: int) -> Judge:
        probe = Probe(self.fed, self.calibration, samples)
        return Judge(self.statistics, probe.data)
