"""What a session finds out by itself: repairs, and configs within a budget."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from qbench.cluster.where import executor_of
from qbench.data.dataset import Dataset
from qbench.errors import SessionError, check_kind
from qbench.evaluate.metric import Metric, MetricFunction, resolve_metric
from qbench.progress import Cancel, Progress, StageProgress, showing
from qbench.search.advice import Advice, advice_table, advise
from qbench.search.choices import Choice, choose
from qbench.search.front import Front, Limits
from qbench.search.ledger import Ledger
from qbench.search.repairs import Repair
from qbench.search.search import search
from qbench.search.subject import Subject
from qbench.session.edits import Edits
from qbench.session.history import Edit
from qbench.session.runs import Runs

if TYPE_CHECKING:
    import pandas as pd

_JUDGED = 64  # samples of the calibration data, where there are no others
_LEAST_SECONDS = 1e-3  # what is left for a search where calibration took the time: the start is measured all the same


class Searches(Edits, Runs):
    """What to do about the config that counts now, measured."""

    _front: Front | None = None
    _ledger: Ledger | None = None

    @property
    def front(self) -> Front | None:
        """All that the newest :meth:`search` has found so far; None before there was one."""
        return self._front

    def repairs(
        self,
        metric: str | MetricFunction | None = None,
        progress: bool | StageProgress = True,
        cancel: Cancel | None = None,
        executor: Executor | None = None,
    ) -> pd.DataFrame:
        """What to do about the config that counts now: repairs with what each gives and costs, the best first.

        Parameters
        ----------
        metric
            A callable (outputs by name, y) -> number, the higher the better, or ``"module:function"``; None: SQNR.
        progress, cancel
            As for :meth:`run`.
        executor
            Where trials run; None: where the session runs.

        Returns
        -------
        DataFrame
            See :func:`qbench.search.advice.advice_table`; :meth:`apply` takes what is in its column ``repair``.

        Raises
        ------
        DataError, Cancelled
            As :meth:`advice`.
        """
        return advice_table(self.advice(metric, progress, cancel, executor))

    def advice(
        self,
        metric: str | MetricFunction | None = None,
        progress: bool | StageProgress = True,
        cancel: Cancel | None = None,
        executor: Executor | None = None,
    ) -> tuple[Advice, ...]:
        """What :meth:`repairs` tells, as values.

        Raises
        ------
        DataError
            A metric that is constant, raises, or gives no finite number.
        Cancelled
            `cancel` was set; what was measured by then is not measured again.
        """
        with showing(progress) as tell:
            subject = self._subject(metric, executor, cancel, partial(tell, "calibration"))
            config = self._quantizer.settled(self.config, cancel=cancel)
            return advise(subject, config, self.attribution(cancel), partial(tell, "repairs"))

    def search(
        self,
        metric: str | MetricFunction | None = None,
        *,
        at_least: float | None = None,
        max_ms: float | None = None,
        max_bytes: int | None = None,
        seconds: float | None = None,
        executor: Executor | None = None,
        cancel: Cancel | None = None,
        tell: Callable[[Front], object] | None = None,
        trials: str | Path | None = None,
    ) -> Front:
        """Look for a config within a budget, see :func:`qbench.search.search.search`.

        The config that counts stays what it is: ``session.edit("search", front.best.config)`` takes the best. Trials
        are saved in the session's folder, and a later search goes on from there.

        Parameters
        ----------
        metric
            As for :meth:`repairs`.
        at_least
            Of the metric: then the fastest config that has it is wanted, else the best one. Where no limit is given:
            the fastest one within a hundredth of the float model's metric.
        max_ms, max_bytes
            Of one run, and of the constants.
        seconds
            How long to search; None: until nothing is to be gained.
        executor, cancel
            Where trials run, and what ends the search; what was found by then is given.
        tell
            Called with all that was found whenever there is more.
        trials
            A file to save trials to, for a session that has no folder.

        Raises
        ------
        DataError
            A metric that is constant, raises, or gives no finite number; a limit that is no number.
        """
        limits, begin = Limits(at_least, max_ms, max_bytes, seconds), time.monotonic()
        subject, quantizer = self._subject(metric, executor, cancel, trials=trials), self._quantizer
        config, settle = self.config, partial(quantizer.settled, self.config, None)
        if quantizer.is_settled(config):
            config, settle = settle(cancel), None
        if seconds is not None:
            limits = replace(limits, seconds=max(_LEAST_SECONDS, seconds - (time.monotonic() - begin)))

        def told(front: Front) -> None:
            self._front = front
            self._record.watchers.tell()
            if tell is not None:
                tell(front)

        self._front = search(subject, config, limits, told, settle)
        return self._front

    def choose(
        self,
        metric: str | MetricFunction | None = None,
        progress: bool | StageProgress = True,
        cancel: Cancel | None = None,
        executor: Executor | None = None,
    ) -> Choice:
        """Make the few choices about the whole model by measurement, as one edit: what ``preset="auto"`` does.

        Calibrator, bias correction, equalization and rounding are tried one after the other on few samples, see
        :func:`qbench.search.choices.choose`; where nothing helps, the config stays what it is.

        Parameters
        ----------
        metric, progress, cancel, executor
            As for :meth:`repairs`; a metric decides in place of SQNR.

        Raises
        ------
        DataError, Cancelled
            As :meth:`advice`.
        """
        with showing(progress) as tell:
            subject = self._subject(metric, executor, cancel, partial(tell, "calibration"))
            settled = self._quantizer.settled(self.config, cancel=cancel)
            choice = choose(subject, settled, ask_metric=True)
        self._record.change(lambda history: history.push(Edit(str(choice), choice.config)))
        return choice

    def apply(self, repair: Repair) -> None:
        """Do what a repair says, as one edit."""
        check_kind(repair, Repair, SessionError, "a repair is applied, not {}: take one of repairs()['repair']")
        self._change(str(repair), repair.apply)

    def _subject(
        self,
        metric: str | MetricFunction | None,
        executor: Executor | None,
        cancel: Cancel | None,
        progress: Progress | None = None,
        trials: str | Path | None = None,
    ) -> Subject:
        quantizer, data = self._quantizer, self._evaluation or self._quantizer.calibration
        return Subject(
            self.prepared,
            self._model.fed,
            lambda config, cancel: quantizer.settled(config, cancel=cancel),
            lambda config, cancel: quantizer.statistics(progress, cancel, config),
            lambda config, cancel: quantizer.rounded(config, cancel=cancel),
            lambda config, cancel: quantizer.quantize(config, cancel=cancel),
            quantizer.calibration,
            self._evaluation or self._held_back(),
            self._metric_of(metric, data),
            self._trials(trials if self.path is None else self.path / "trials.json"),
            executor_of(None, executor) or self._quantizer.executor,
            cancel,
        )

    def _held_back(self) -> Dataset | None:
        """Some of the calibration data that no weight is rounded on."""
        data, fed = self._quantizer.calibration, self._model.fed
        found = data.pick(data.spread(_JUDGED, self._quantizer.held_back)) if self._quantizer.held_back else []
        return Dataset(fed, found, what="calibration") if found else None

    def _trials(self, path: str | Path | None) -> Ledger:
        """Of a file; without one, what this session has measured so far."""
        if path is not None:
            return Ledger(Path(path))
        self._ledger = self._ledger or Ledger()
        return self._ledger

    def _metric_of(self, metric: str | MetricFunction | None, data: Dataset) -> Metric | None:
        """The metric that is asked for, else the session's own, with what it compares with."""
        truths = data.labels if data.truths is None else data.truths
        if metric is not None:
            return resolve_metric(metric, truths)
        return None if self._metric is None else self._metric.about(truths)
