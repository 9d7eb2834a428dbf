"""What is searched: a model, its data, how quality is measured, and all that is known of it already."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TypeVar, cast

from qbench.calibration.statistics import Statistics
from qbench.data.dataset import Dataset
from qbench.evaluate.cache import ValueCache
from qbench.evaluate.chunks import asked
from qbench.evaluate.keys import value_keys
from qbench.evaluate.metric import Metric, picked
from qbench.evaluate.picked import compared
from qbench.evaluate.probe import Probe
from qbench.evaluate.side_by_side import BATCH
from qbench.ir.graph import Graph
from qbench.passes.equalize import equalized_pairs
from qbench.passes.pipeline import Trace
from qbench.progress import Cancel
from qbench.quant.config import QuantConfig
from qbench.quantize.imported import template_of
from qbench.quantize.quantized import Quantized
from qbench.search.answers import Answers
from qbench.search.cost import Cost, Stopwatch, products
from qbench.search.judge import Judge, Worth, judged
from qbench.search.ledger import Ledger
from qbench.search.quality import Checking, Measuring, Part, Quality, Tried

_PROBED = 64
_MOST_MACS = 1 << 34
"""Of a trial: of models that take long, fewer samples are tried."""
_EXACT_BYTES = 1 << 29
_JUDGES = 16
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Subject:
    """A model to improve; safe to ask from several threads.

    Parameters
    ----------
    prepared, fed
        The float graph, and the graph that takes data.
    settle
        A config with a number where it says that something is to be measured.
    statistics, trace, quantize
        What calibration saw in the prepared model of a config, that model (its weights rounded, where the config asks
        for that), and quantized by it.
    calibration, evaluation
        The data that trials are made on, and that results are checked on (None: the same).
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
    settle: Callable[[QuantConfig, Cancel | None], QuantConfig]
    statistics: Callable[[QuantConfig, Cancel | None], Mapping[str, Statistics]]
    trace: Callable[[QuantConfig, Cancel | None], Trace]
    quantize: Callable[[QuantConfig, Cancel | None], Quantized]
    calibration: Dataset
    evaluation: Dataset | None
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
        return " ".join(keys[name] for name in compared(self.prepared))

    def quantized(self, config: QuantConfig) -> Quantized:
        """The model quantized by a config."""
        return self.quantize(config, self.cancel)

    def can_round(self, config: QuantConfig) -> bool:
        """Whether weights can be rounded anew and channels scaled: not where they came as integers."""
        return template_of(self.trace(config, self.cancel)) is None

    def can_equalize(self, config: QuantConfig) -> bool:
        """Whether there are layers that can share out their ranges."""
        return self.can_round(config) and bool(equalized_pairs(self.prepared))

    def rung(self, samples: int, held_back: bool = False) -> Callable[[Sequence[QuantConfig]], Sequence[Worth]]:
        """Measures configs on so many samples of the calibration data; what the ledger knows is not measured again.

        Fewer of a model that takes long. `held_back`: on as many others between them, which no choice is made on.
        """
        answers = self._few(samples, held_back)
        place = f"worth of finds {self.identity} {answers.data.digest}"

        def worths(configs: Sequence[QuantConfig]) -> list[Worth]:
            settled = [self.settle(config, self.cancel) for config in configs]
            keys = [Ledger.key(config, place) for config in settled]
            todo = {key: config for key, config in zip(keys, settled, strict=True) if self.ledger.get(key) is None}
            trials = [(self._judge(answers, config), config) for config in todo.values()]
            found = judged(trials, self.executor, self.cancel) if trials else []
            for key, worth in zip(todo, found, strict=True):
                self.ledger.put({key: {"sqnr_db": worth.sqnr_db, "effort": worth.effort}})
            return [Worth(**known) for key in keys if (known := self.ledger.get(key, *Worth.__slots__)) is not None]

        return worths

    def quality(self, config: QuantConfig) -> Quality:
        """What a config is worth on the data that it is checked on; minus infinity where NaN arises."""
        config, metric = self.settle(config, self.cancel), "" if self.metric is None else self.metric.identity
        key = Ledger.key(config, "quality of finds", self.identity, self.data.digest, self.data.labels_digest, metric)
        known = self.ledger.get(key, *Quality.__slots__)
        if known is None:
            found = self._asked(Measuring(self.metric, self.data.samples), config)
            known = {name: getattr(found, name) for name in Quality.__slots__}
            self.ledger.put({key: known})
        return Quality(**known)

    def probed(self, config: QuantConfig) -> float:
        """The metric on some of the samples that choices are made on: what trials are compared by.

        Where the metric cannot be asked about parts of the data: what it says of all of it. Where there is none: the
        output's SQNR on calibration data.
        """
        return self.probe(config)[0]

    def probe(self, config: QuantConfig) -> tuple[float, float | None]:
        """The same, and the output's SQNR there."""
        if self.metric is None:
            ratio = self.rung(_PROBED)([config])[0].sqnr_db
            return ratio, ratio
        if self._probe is None:
            quality = self.quality(config)
            return quality.metric, quality.sqnr_db
        (answers, metric), config = self._probe, self.settle(config, self.cancel)
        place = "probed with SQNR of finds", self.identity, answers.data.digest, self.data.labels_digest
        key = Ledger.key(config, *place, metric.identity)
        known = self.ledger.get(key, "metric", "sqnr_db")
        if known is None:
            made = answers.of(self.quantized(config), self.cancel)
            asked = float("-inf") if made is None else metric(answers.joined(self.prepared, made))
            known = {"metric": asked, "sqnr_db": answers.ratio(self.prepared, made, self.cancel)}
            self.ledger.put({key: known})
        return cast("tuple[float, float | None]", (known["metric"], known["sqnr_db"]))

    @cached_property
    def probed_float(self) -> float:
        """The same of the float model."""
        if self.metric is None or self._probe is None:
            return self.float_quality.metric
        answers, metric = self._probe
        return metric(answers.joined(self.prepared, answers.exact(self.prepared, self.cancel)))

    @cached_property
    def _probe(self) -> tuple[Answers, Metric] | None:
        """Some of the samples that choices are made on, and the metric that is about them."""
        metric, data = self.metric, self.data
        if metric is None or metric.truths is None or data.layout.step > 1 or data.samples < 2:
            return None
        rows = data.spread(_PROBED, range(0, data.samples, 2))
        few = Dataset(self.fed, data.pick(rows), what="probe")
        return Answers(few, ValueCache(0)), metric.about(picked(metric.truths, rows))

    @cached_property
    def float_quality(self) -> Quality:
        """What the float model is worth; its SQNR is infinite."""
        return self._asked(Measuring(self.metric, self.data.samples), None)

    def check_metric(self, config: QuantConfig) -> None:
        """Raise DataError where nothing can be chosen by the metric."""
        if self.metric is not None and self.quality(config).metric == self.float_quality.metric:
            self._asked(Checking(self.metric), config)

    def _asked(self, function: Callable[[Sequence[Part]], T], config: QuantConfig | None) -> T:
        """What a function says of the float model's outputs on all data, and of those of a config."""
        graph = None if config is None else self.quantized(config).graph
        finds = self._few(_PROBED, False).finds(self.prepared, self.cancel)
        run = Tried(self.prepared, graph, self.metric is not None, finds)
        if self.executor is None:
            run = partial(run, cache=self._exact, cancel=self.cancel)
        return asked(function, run, self.data, BATCH, self.executor, self.cancel)

    def cost(self, config: QuantConfig) -> Cost:
        """Time of one sample on one thread, and bytes, measured by the program."""
        return self._stopwatch.cost(self.quantized(config).graph, self.cancel)

    @cached_property
    def _stopwatch(self) -> Stopwatch:
        return Stopwatch(self.data.pick([0])[0])

    @cached_property
    def _exact(self) -> ValueCache:
        """Of the float model's outputs."""
        return ValueCache(_EXACT_BYTES)

    @cached_property
    def _macs(self) -> int:
        return products(self.prepared, self.calibration.sizes)

    @property
    def is_slow(self) -> bool:
        """Whether trials have few samples, and a search gets to few of them."""
        return self._macs * 8 > _MOST_MACS

    def answers(self, samples: int, pieces: Sequence[int] | None) -> Answers:
        """Of so many samples among these pieces of the calibration data; fewer of a model that takes long."""
        chosen = self.calibration.spread(self._fewer(samples), pieces)
        return Answers(Dataset(self.fed, self.calibration.pick(chosen), what="probe"))

    def _fewer(self, samples: int) -> int:
        return max(1, min(samples, _MOST_MACS // max(1, self._macs)))

    def _few(self, samples: int, held_back: bool) -> Answers:
        """Of the samples that trials are made on, or of those between them (the same, where there is only one)."""
        few = self._fewer(samples)
        key = few, held_back
        if key not in self._trials:
            pieces = [*Probe(self.fed, self.calibration, 2 * few).data.pieces_in_order()]
            part = pieces[held_back::2] or pieces
            self._trials[key] = Answers(Dataset(self.fed, part, what="probe"))
        return self._trials[key]

    def _judge(self, answers: Answers, config: QuantConfig) -> Judge:
        """One for each graph that configs are about, with what it remembers."""
        prepared = self.trace(config, self.cancel)
        key = answers.data.digest, id(prepared)  # which lives as long as its judge
        if key not in self._judges:
            while len(self._judges) >= _JUDGES:
                del self._judges[next(iter(self._judges))]
            self._judges[key] = Judge(prepared, self.statistics(config, self.cancel), answers)
        return self._judges[key]

    @cached_property
    def _trials(self) -> dict[tuple[int, bool], Answers]:
        return {}

    @cached_property
    def _judges(self) -> dict[tuple[str, int], Judge]:
        return {}
