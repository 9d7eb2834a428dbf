"""What all widgets of one session share: one evaluation at a time, how far it is, what the last change was from."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar
from weakref import WeakValueDictionary

from qbench.engine.report import Report
from qbench.errors import Cancelled
from qbench.quant.config import QuantConfig
from qbench.session.session import Session
from qbench.session.watchers import Watchers
from qbench.views import State
from qbench.widgets.runner import Runner

__all__ = ["Live", "Stage"]

_REMEMBERED = 32


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

    Edits of the widgets are evaluated on another thread; a new edit cancels an evaluation that goes on. Edits from
    elsewhere are shown too.
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
        self.watchers = Watchers()
        self._lock = threading.RLock()  # never held while something long runs, or while the session is changed
        self._runner = Runner(self._run)
        self._stage = Stage()
        self._config, self._earlier = session.config, session.config
        self._reports: dict[QuantConfig, Report] = {}
        self._editing: int | None = None  # threads that change the session from here
        self._running: int | None = None
        self._gesture: tuple[object, int] | None = None
        self._revision = 0
        self._is_wanted = False  # that all of the data is evaluated
        self._edits = threading.Lock()  # one edit of the widgets at a time
        if session.report is not None:
            self._reports[session.config] = session.report
        session.watch(self._noticed)

    # what there is

    @property
    def stage(self) -> Stage:
        """How far the evaluation is."""
        with self._lock:
            return self._stage

    @property
    def revision(self) -> int:
        """A number that grows when there is something new to draw."""
        with self._lock:
            return self._revision

    @property
    def before(self) -> Report | None:
        """What the config before the last change cost; None where that is not known, or there was none."""
        with self._lock:
            return self._reports.get(self._earlier) if self._earlier != self._config else None

    def state(self) -> State:
        """What to draw."""
        return State.of(self.session)

    def report_of(self, config: QuantConfig) -> Report | None:
        """What is known of another config."""
        with self._lock:
            return self._reports.get(config)

    # what can be done

    def edit(self, action: Callable[[], None], gesture: object = None) -> None:
        """Change the session, and evaluate what came of it.

        Parameters
        ----------
        action
            Changes the session once; what it raises is raised here.
        gesture
            Steps of the same drag are one edit of the history.
        """
        with self._edits:
            self._editing = threading.get_ident()
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
        self.request()

    def request(self) -> None:
        """Evaluate what is stale; returns at once."""
        self._is_wanted = True
        self._tell(Stage(is_busy=True, message="running"))
        self._runner.request()

    def cancel(self) -> None:
        """Stop the evaluation; the next goes on from what was computed."""
        self._runner.cancel()
        self._tell(_STOPPED)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until nothing runs any more; False where that took longer than `timeout` seconds."""
        return self._runner.wait(timeout)

    # how it is done

    def _run(self, cancel: threading.Event) -> None:
        """On the runner's thread; what is drawn is drawn from here, each time from a newer state."""
        self._running = threading.get_ident()
        is_wanted, self._is_wanted = self._is_wanted, False
        try:
            self._draw()
            if is_wanted:
                self.session.run(progress=self._progress, cancel=cancel)
                self._draw(Stage())
        except Cancelled:
            if self._runner.is_wanted:
                self._is_wanted = True  # of the newer state, then
            else:
                self._tell(_STOPPED)
        except Exception as error:
            self._tell(Stage(error=error))
        finally:
            self._running = None

    def _draw(self, stage: Stage | None = None) -> None:
        with self._lock:
            self._revision += 1
        self._tell(stage or self.stage)

    def _progress(self, stage: str, done: int, total: int) -> None:
        self._tell(Stage(True, f"{stage}: {done:,} of {total:,} samples", done / max(1, total)))

    def _tell(self, stage: Stage) -> None:
        with self._lock:
            self._stage = stage
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
                self._reports.pop(config, None)
                self._reports[config] = report
                while len(self._reports) > _REMEMBERED:
                    del self._reports[next(iter(self._reports))]
        if threading.get_ident() in (self._editing, self._running):
            return  # who draws soon
        if is_new or not self._runner.is_busy:
            self._runner.request()
        else:
            self._draw()
