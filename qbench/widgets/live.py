"""What all widgets of one session share: one evaluation at a time, how far it is, what the last change was from."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import ClassVar, Literal
from weakref import WeakValueDictionary

import numpy as np

from qbench.errors import Cancelled
from qbench.progress import showing
from qbench.quant.config import QuantConfig
from qbench.report.entries import OutputReport
from qbench.report.report import Report
from qbench.search.advice import Advice
from qbench.search.front import Front, Limits
from qbench.session.session import Session
from qbench.session.watchers import Watchers
from qbench.views import Glance, State, outcome
from qbench.widgets.peek import Peek
from qbench.widgets.runner import Runner
from qbench.widgets.samples import Samples

_REMEMBERED = 32
_RATED = 0.5  # seconds that a stage takes before its rate says something
_REST = 0.3  # seconds that a handle rests before more than the network's numbers is computed and drawn
Errand = Literal["latency", "repairs", "search", "sensitivity"]


@dataclass(frozen=True)
class Stage:
    """How far the evaluation is.

    Parameters
    ----------
    is_busy
        Whether one goes on.
    message
        What it does, or what became of it.
    progress
        From 0 to 1; None where that is not known.
    error
        Why it failed.
    """

    is_busy: bool = False
    message: str = ""
    progress: float | None = None
    error: Exception | None = None


_STOPPED = Stage(message="stopped; Re-run goes on from what was computed")


class Live:
    """A session that is looked at. Widgets get it from `of`; it lives as long as one of them does.

    An edit of a widget is first probed, which gives the network's numbers at once and then each layer's, and then
    evaluated in full. All happens on another thread, and a newer edit cancels it; only the next step of the same drag
    lets the probe come to the network's numbers first, so that they follow the handle; all else waits until the handle
    rests. Edits from elsewhere are probed, and what others evaluate is shown.
    """

    _all: ClassVar[WeakValueDictionary[int, Live]] = WeakValueDictionary()
    _making = threading.Lock()

    @classmethod
    def of(cls, session: Session) -> Live:
        """The one that all widgets of the session share; runs what was never run."""
        if session.is_stale:
            session.run()
        with cls._making:
            live = cls._all.get(id(session))  # which holds the session: no other has its id meanwhile
            if live is None:
                live = cls._all[id(session)] = Live(session)
            return live

    def __init__(self, session: Session) -> None:
        self.session = session
        self.samples, self.peek = Samples(session), Peek(session)
        self.watchers = Watchers()
        self._lock = threading.RLock()  # never held while something long runs, or while the session is changed
        self._runner = Runner(self._run)
        self._stage = Stage()
        self.revision = 0
        """Grows when there is something new to draw; this and the next two are written here alone, under the lock."""
        self.glance: Glance | None = None
        """What the newest finished probe says of the network; None once nothing goes on."""
        self._config, self._earlier = session.config, session.config
        self._full, self._probed = _Reports(), _Reports()
        self._shown = session.report or session.run()
        self._full.keep(session.config, self._shown)
        self._edits = threading.Lock()  # one edit of the widgets at a time
        self._gesture: tuple[object, int] | None = None  # and the generation that its last step made
        self._editing: int | None = None  # threads that change the session from here
        self._moves = False  # whether the handle of the last edit does
        self._running: int | None = None
        self._wanted: frozenset[str] = frozenset()
        self._doing: frozenset[str] = frozenset()  # of what was wanted
        self.advice: tuple[QuantConfig, tuple[Advice, ...]] | None = None
        """The repairs that were found last, and for which config; None before anybody asked."""
        self._timed = "", 0, 0.0  # the stage that goes on, what of it was done at first, and when
        self._alone: tuple[QuantConfig, dict[str, float]] | None = None
        self._limits = Limits()
        self._stop = threading.Event()
        session.watch(self._noticed)

    # what there is

    @property
    def stage(self) -> Stage:
        """How far the evaluation is."""
        with self._lock:
            return self._stage

    def state(self) -> State:
        """What to draw: with the report of all data where there is one, else that of the probe, else an older one."""
        config = self.session.config
        with self._lock:
            report = self._full.get(config) or self._probed.get(config)
            self._shown = report or self._shown
            shown = self._shown
        session = self.session
        alone = {} if self._alone is None or self._alone[0] != config else self._alone[1]
        return State(session.quantized(config), session.statistics, shown, report is None, session.imported, alone)

    @property
    def shows_probe(self) -> bool:
        """Whether what is drawn was measured on a few samples only."""
        with self._lock:
            return self._shown.output.data == "probe"

    @property
    def before(self) -> Report | None:
        """What the config before the last change cost, on the same data; None where that is not known."""
        with self._lock:
            reports = self._probed if self._shown.output.data == "probe" else self._full
            return reports.get(self._earlier) if self._earlier != self._config else None

    @property
    def baselines(self) -> dict[str, Report]:
        """What is known of the config at the start and of snapshots, on the data that is drawn."""
        named = {"start": self.session.history.base}
        named |= {f"snapshot {name}": kept.config for name, kept in self.session.snapshots.items()}
        with self._lock:
            reports = self._probed if self._shown.output.data == "probe" else self._full
            found = {name: reports.get(config) for name, config in named.items()}
        return {name: report for name, report in found.items() if report is not None}

    def report_of(self, config: QuantConfig) -> Report | None:
        """What is known of another config, on all data."""
        with self._lock:
            return self._full.get(config)

    def is_doing(self, errand: Errand) -> bool:
        """Whether it goes on, or will when the evaluation is done."""
        with self._lock:
            return self._stage.is_busy and errand in self._wanted | self._doing

    # what can be done

    def edit(self, action: Callable[[], None], gesture: object = None, *, moves: bool = False) -> None:
        """Change the session, and evaluate what came of it.

        Parameters
        ----------
        action
            Changes the session once; what it raises is raised here.
        gesture
            Steps of the same drag are one edit of the history.
        moves
            Whether the drag goes on: the probe of the step before is let finish, or it never would.
        """
        with self._edits:
            self._editing, self._moves = threading.get_ident(), moves
            try:
                before = self.session.generation
                if gesture is None or self._gesture != (gesture, before):
                    self._gesture = None
                action()
                if self.session.generation != before:
                    if self._gesture is not None:
                        self.session.join_edits()
                    self._gesture = None if gesture is None else (gesture, self.session.generation)
            finally:
                self._editing = None
        if not moves:
            self._stop.set()  # the probe of an older config, if one goes on
        self.request()

    def request(self, *also: Errand, limits: Limits | None = None) -> None:
        """Evaluate what is stale, and then do these too; `limits` are a search's. Returns at once."""
        with self._lock:
            self._limits = limits or self._limits
            self._wanted |= {"evaluation", *also}
        self._tell(Stage(is_busy=True, message="probing"))
        self._runner.request()

    def prepare(self) -> None:
        """Measure what the first edit is compared with, and what its probe starts from, before there is one."""
        if not self._runner.is_busy and self._probed.get(self.session.config) is None:
            self._tell(Stage(is_busy=True, message="probing"))
            self._runner.request()

    def cancel(self) -> None:
        """Stop the evaluation; the next goes on from what was computed."""
        self._stop.set()
        self._runner.cancel()
        self._tell(_STOPPED)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until nothing runs any more; False where that took longer than `timeout` seconds."""
        return self._runner.wait(timeout)

    # how it is done

    def _run(self, cancel: threading.Event) -> None:
        """On the runner's thread; what is drawn is drawn from here, each time from a newer state."""
        with showing(self._progress):  # what it calls tells there too: kernels that are compiled
            self._work(cancel)

    def _work(self, cancel: threading.Event) -> None:
        self._running = threading.get_ident()
        with self._lock:
            wanted = self._doing = self._wanted
            self._wanted = frozenset()
        try:
            self._stop.clear()
            if self._full.get(self.session.config) is None:
                self._probe(cancel)
            self._draw()
            if self.peek.update(cancel):
                self._draw()
            if "evaluation" in wanted:
                self.session.run(progress=self._progress, cancel=cancel)
                self._draw()
            if "latency" in wanted:
                self._tell(Stage(True, "measuring the latency"))
                self.session.latency(cancel)
                self.session.run(cancel=cancel)  # which says it
            if self._probed.get(self.session.config) is None:
                self._probe(cancel)  # what the next edit is compared with
            if "sensitivity" in wanted:
                self._try_alone(cancel)
            if "repairs" in wanted:
                self._find(cancel)
            if "search" in wanted:
                self._search(cancel)
            self._draw(Stage())
        except Cancelled:
            with self._lock:
                self._wanted |= wanted if self._runner.is_wanted else frozenset()  # of the newer state, then
            if not self._runner.is_wanted:
                self._draw(_STOPPED)
        except Exception as error:
            self._draw(Stage(error=error))
        finally:
            self._running = None

    def _try_alone(self, cancel: threading.Event) -> None:
        """What the output gains where each layer alone runs in float, on the samples of the probe."""
        config = self.session.config
        all_quantized = (self._probed.get(config) or self.session.probe()).output.sqnr_db
        found = self.session.sensitivity(progress=self._progress, cancel=cancel, on="probe")
        gains = {
            str(name): float(alone - all_quantized)
            for name, alone in zip(found["name"], found["sqnr_db"], strict=True)
            if all_quantized is not None and np.isfinite(alone - all_quantized)
        }
        with self._lock:
            self._alone = config, gains
        self._draw()

    def _find(self, cancel: threading.Event) -> None:
        def told(_stage: str, done: int, total: int) -> None:
            self._tell(Stage(True, f"finding repairs: {done:,} of {total:,} tried", done / max(1, total)))

        self._tell(Stage(True, "finding repairs"))
        config = self.session.config
        advice = self.session.advice(progress=told, cancel=cancel)
        with self._lock:
            self.advice = config, advice

    def _search(self, cancel: threading.Event) -> None:
        def told(front: Front) -> None:
            found = f"{len(front.rows)} configs measured, best so far {front.best.metric:.4g} at {front.best.ms:.3g} ms"
            self._draw(Stage(True, f"searching: {found}"))

        self._tell(Stage(True, "searching"))
        self.session.search(**vars(self._limits), cancel=cancel, tell=told)

    def _probe(self, cancel: threading.Event) -> None:
        config = self.session.config

        def told(output: OutputReport) -> None:
            with self._lock:
                earlier, before = self._earlier, self._probed.get(self._earlier)
                changed = {
                    name: tensor.threshold
                    for name, tensor in config.tensors.items()
                    if isinstance(tensor.threshold, float) and earlier.tensors.get(name) != tensor
                }
                was = None if before is None else outcome(before.output)
                self.glance = Glance(changed, outcome(output), was, output.samples)
            self.watchers.tell()
            if cancel.wait(_REST if self._moves else 0):
                raise Cancelled("stopped for a newer edit")

        report = self.session.probe(cancel=self._stop, told=told)
        with self._lock:
            self._probed.keep(config, report)

    def _draw(self, stage: Stage | None = None) -> None:
        with self._lock:
            self.revision += 1
        self._tell(stage or self.stage)

    def _progress(self, stage: str, done: int, total: int) -> None:
        if self._timed[0] != stage or done <= self._timed[1]:
            self._timed = stage, done, monotonic()
        seconds = monotonic() - self._timed[2]
        told = f"{stage}: {done:,} of {total:,}" + (" layers" if stage == "sensitivity" else "")
        if stage in ("calibration", "evaluation"):
            told += " samples" + (f", {(done - self._timed[1]) / seconds:,.0f} a second" if seconds > _RATED else "")
        self._tell(Stage(True, told, done / max(1, total)))

    def _tell(self, stage: Stage) -> None:
        with self._lock:
            self._stage = stage
            self.glance = self.glance if stage.is_busy else None
        self.watchers.tell()

    def _noticed(self) -> None:
        """The session was changed, by a widget or from elsewhere, or has a new report."""
        session = self.session
        with self._lock:
            config, report, is_stale = session.config, session.report, session.is_stale
            is_new = config != self._config
            if is_new:
                joins = self._gesture is not None and self._editing == threading.get_ident()
                self._earlier, self._config = self._earlier if joins else self._config, config
            if report is not None and not is_stale:
                self._full.keep(config, report)
        if threading.get_ident() in (self._editing, self._running):
            return  # who draws soon
        if is_new or not self._runner.is_busy:
            self._runner.request()
        else:
            self._draw()


class _Reports:
    """The newest reports by config."""

    def __init__(self) -> None:
        self._reports: dict[QuantConfig, Report] = {}

    def get(self, config: QuantConfig) -> Report | None:
        return self._reports.get(config)

    def keep(self, config: QuantConfig, report: Report) -> None:
        self._reports.pop(config, None)
        self._reports[config] = report
        while len(self._reports) > _REMEMBERED:
            del self._reports[next(iter(self._reports))]
