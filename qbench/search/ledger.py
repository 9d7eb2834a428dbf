"""What was measured, kept as it comes: a search that was killed goes on where it was, and nothing is measured twice."""

import hashlib
import json
import threading
from pathlib import Path
from typing import Any, cast

from qbench.errors import SessionError, shown
from qbench.files import write_text
from qbench.quant.config import QuantConfig

_VERSION = 1


class Ledger:
    """Numbers by what they were measured of; safe to share between threads.

    Parameters
    ----------
    path
        A JSON file that is replaced whole after each entry; None: memory only.

    Raises
    ------
    SessionError
        The file cannot be read or written.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path, self._lock = path, threading.Lock()
        self._known: dict[str, dict[str, Any]] = {}
        if path is not None and path.exists():
            self._known = _read(path)

    @staticmethod
    def key(config: QuantConfig, *measured_on: str) -> str:
        """Identity of a measurement: the config, and digests of model, data and metric."""
        said = json.dumps([config.to_data(), *measured_on], sort_keys=True)
        return hashlib.sha256(said.encode()).hexdigest()[:32]

    def get(self, key: str, *names: str) -> dict[str, Any] | None:
        """What was measured, if it was, and of these names alone; SessionError where the file has others."""
        with self._lock:
            known = self._known.get(key)
        if known is not None and names and known.keys() != {*names}:
            raise _damaged(self._path, f"trial {key} is not of {', '.join(names)}")
        return known

    def put(self, entries: dict[str, dict[str, Any]]) -> None:
        """Note measurements."""
        with self._lock:
            self._known |= entries
            if self._path is None:
                return
            try:
                write_text(self._path, json.dumps({"version": _VERSION, "trials": self._known}))
            except OSError as error:
                raise SessionError(f"cannot save trials to {shown(str(self._path))}: {error}") from error


def _read(path: Path) -> dict[str, dict[str, Any]]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["version"] != _VERSION:
            raise SessionError(f"{shown(str(path))} has format {data['version']}; this qbench reads format {_VERSION}")
        trials = cast("dict[str, dict[str, Any]]", dict(data["trials"]))
        for key, found in trials.items():
            if not all(isinstance(number, float | int | None) for number in found.values()):
                raise ValueError(f"trial {shown(key)} has what is no number")
        return trials
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path | None, why: object) -> SessionError:
    return SessionError(f"the trials in {shown(str(path))} cannot be read: {why}; delete the file to begin again")
