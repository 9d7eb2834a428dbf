"""How long work tells how far it is, and hears that it should stop."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Protocol

from tqdm.auto import tqdm

__all__ = ["Cancel", "Progress", "StageProgress", "showing"]

Progress = Callable[[int, int], object]
"""Called with how much is done and how much there is to do."""

StageProgress = Callable[[str, int, int], object]
"""Called with the stage ("calibration", "evaluation"), how much is done, and how much there is to do."""

_DELAY = 1.0  # seconds that a stage takes before it has a bar


class Cancel(Protocol):
    """Says whether to stop; a ``threading.Event`` is one."""

    def is_set(self) -> bool:
        """Whether somebody asked to stop."""
        ...


@contextmanager
def showing(progress: bool | StageProgress = True) -> Generator[StageProgress]:
    """Give what to tell: the callable itself, or bars in a notebook or on a terminal, or (False) what shows nothing."""
    if callable(progress):
        yield progress
    elif progress:
        bars = _Bars()
        try:
            yield bars.show
        finally:
            bars.close()
    else:
        yield lambda stage, done, total: None


class _Bars:
    """A bar for each stage in turn."""

    def __init__(self) -> None:
        self._stage = ""
        self._bar: tqdm[Any] | None = None

    def show(self, stage: str, done: int, total: int) -> None:
        if self._bar is None or stage != self._stage:
            self.close()
            self._stage, self._bar = stage, tqdm(total=total, desc=stage, delay=_DELAY, disable=None)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
