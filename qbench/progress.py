"""How long work tells how far it is, and hears that it should stop."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, runtime_checkable

from tqdm.auto import tqdm

from qbench.errors import DataError, check_kind

Progress = Callable[[int, int], object]
"""Called with how much is done and how much there is to do."""

StageProgress = Callable[[str, int, int], object]
"""Called with the stage ("calibration", "evaluation", "compiling kernels ..."), how much is done, and how much there is
to do."""

_outer: ContextVar[StageProgress | None] = ContextVar("_outer", default=None)
"""Whom work tells that this thread is in the middle of."""

_DELAY = 1.0  # seconds that a stage takes before it has a bar


@runtime_checkable
class Cancel(Protocol):
    """Says whether to stop; a ``threading.Event`` is one."""

    def is_set(self) -> bool:
        """Whether somebody asked to stop."""
        ...


def stopped(cancel: Cancel | None) -> bool:
    """Whether somebody asked to stop; DataError where `cancel` is nothing that could say so."""
    if cancel is None:
        return False
    check_kind(cancel, Cancel, DataError, "cancel={} says nothing: give something with is_set(), a threading.Event")
    return cancel.is_set()


@contextmanager
def showing(progress: bool | StageProgress = True) -> Generator[StageProgress]:
    """Give what to tell: the callable itself, or bars in a notebook or on a terminal, or (False) what shows nothing.

    Work within other work that asks for bars tells whom that tells, so that who hides or draws one does so for all.
    """
    outer = _outer.get()
    bars = _Bars()
    tell = _apart(progress) if callable(progress) else _silent if not progress else outer or bars.show
    token, ended = _outer.set(tell), False
    try:
        yield tell
        ended = True
    finally:
        _outer.reset(token)
        bars.close(ended)


def _apart(tell: StageProgress) -> StageProgress:
    """What tells the same; what it does on hearing so is no part of the work that tells."""

    def told(stage: str, done: int, total: int) -> None:
        token = _outer.set(None)
        try:
            tell(stage, done, total)
        finally:
            _outer.reset(token)

    return told


def _silent(stage: str, done: int, total: int) -> None: ...


class _Bars:
    """A bar for each stage; the time that another one takes in between is none of its own."""

    def __init__(self) -> None:
        self._stage = ""
        self._bars: dict[str, tqdm[Any]] = {}

    def show(self, stage: str, done: int, total: int) -> None:
        if stage not in self._bars:
            self._bars[stage] = tqdm(total=total, desc=stage, delay=_DELAY, disable=None)
        bar = self._bars[stage]
        if stage != self._stage and not bar.disable:
            bar.unpause()
        self._stage = stage
        bar.update(done - bar.n)

    def close(self, ended: bool) -> None:
        """What needed less than there might have been is done; what was stopped stays where it was."""
        for bar in self._bars.values():
            if ended and bar.total is not None:
                bar.n = bar.total
            bar.close()
