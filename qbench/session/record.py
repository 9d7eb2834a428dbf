"""What a session remembers, saved as it changes: the configs that it had, its last report, what has a name."""

import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Literal

from qbench.errors import SessionError, check_kind, nearest, shown
from qbench.report.report import Report
from qbench.session.folder import SessionFolder
from qbench.session.history import History
from qbench.session.snapshots import Snapshot, dump_snapshots, load_snapshots
from qbench.session.watchers import Watchers

_Part = Literal["report.json", "snapshots.json"]


class Record:
    """A session's memory, which any thread may ask and change: nobody ever sees half a change.

    Parameters
    ----------
    history
        Where to start.
    folder
        Where each change is saved before it is done, and where the rest of the memory comes from; None: nowhere.
    data
        Identity of what reports are measured on: a saved report of other data does not count.

    Raises
    ------
    SessionError
        What is in the folder cannot be read; of a change: it cannot be saved (but it is made in memory).
    """

    def __init__(self, history: History, folder: SessionFolder | None, data: str) -> None:
        self._lock = threading.RLock()  # all below, and the folder; never held while something long runs
        self.watchers = Watchers()
        self._folder, self._data = folder, data
        self._history = history
        self._generation = self._last_generation = 0
        self._probe: tuple[int, Report | None] = 0, None
        self._snapshots = self._load("snapshots.json")
        self._last = self._load("report.json").get("last")

    @property
    def history(self) -> History:
        """All configs so far, and which one counts."""
        with self._lock:
            return self._history

    @property
    def path(self) -> Path | None:
        """Where it is saved; None: nowhere."""
        return self._folder.path if self._folder else None

    @property
    def generation(self) -> int:
        """A number that grows with each change of the config."""
        with self._lock:
            return self._generation

    @property
    def report(self) -> Report | None:
        """The newest report; see `is_stale`."""
        with self._lock:
            return self._last.report if self._last else None

    @property
    def probe(self) -> Report | None:
        """The newest report of a probe."""
        with self._lock:
            return self._probe[1]

    @property
    def is_stale(self) -> bool:
        """Whether the report is of another config than the one that counts now, or missing."""
        with self._lock:
            return self._last is None or self._last.config != self._history.config

    @property
    def snapshots(self) -> Mapping[str, Snapshot]:
        """All that was kept under names."""
        with self._lock:
            return dict(self._snapshots)

    def snapshot(self, name: str) -> Snapshot:
        """What was kept under a name; SessionError where nothing was."""
        check_kind(name, str, SessionError, "a snapshot is meant by its name, not by {}")
        snapshots = self.snapshots
        if name not in snapshots:
            raise SessionError(f"there is no snapshot {shown(name)}{nearest(name, snapshots)}")
        return snapshots[name]

    def change(self, edit: Callable[[History], History]) -> None:
        """Put what `edit` makes of the history in its place; nothing else is changed meanwhile."""
        with self._changing():
            history = edit(self._history)
            if history is self._history:
                return
            self._history = history
            self._generation += 1
            if self._folder is not None:
                self._folder.write("history.json", history.to_json())

    def note(self, generation: int, result: Snapshot) -> None:
        """Remember the report of a config that counted at that generation, if there is none of a newer one."""
        with self._changing():
            if generation >= self._last_generation:
                self._last, self._last_generation = result, generation
                self._save("report.json", {"last": result})

    def note_probe(self, generation: int, report: Report) -> None:
        """Remember what a probe found of a config that counted at that generation, if nothing newer is known."""
        with self._lock:
            if generation >= self._probe[0]:
                self._probe = generation, report

    def keep(self, name: str, snapshot: Snapshot | None = None) -> None:
        """Remember a snapshot under a name; None: the config that counts now, and its report where there is one."""
        check_kind(name, str, SessionError, "a snapshot's name is text, not {}")
        with self._changing():
            self._snapshots[name] = snapshot or Snapshot(self._history.config, None if self.is_stale else self.report)
            self._save("snapshots.json", self._snapshots)

    def forget(self, name: str) -> None:
        """Remember a snapshot no longer; SessionError where there is none."""
        with self._changing():
            self.snapshot(name)
            del self._snapshots[name]
            self._save("snapshots.json", self._snapshots)

    @contextmanager
    def _changing(self) -> Generator[None]:
        """Holds the lock of the memory. Watchers are told after it is released: they may ask what changed."""
        try:
            with self._lock:
                yield
        finally:
            self.watchers.tell()

    def _load(self, part: _Part) -> dict[str, Snapshot]:
        folder = self._folder
        return folder.parsed(part, partial(load_snapshots, data=self._data)) if folder and folder.has(part) else {}

    def _save(self, part: _Part, snapshots: Mapping[str, Snapshot]) -> None:
        if self._folder is not None:
            self._folder.write(part, dump_snapshots(snapshots, self._data))
