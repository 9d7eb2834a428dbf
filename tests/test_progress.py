"""Bars are for who looks, and for what takes long."""

from __future__ import annotations

import io
import sys

import pytest

from qbench import progress
from qbench.progress import showing
from qbench.session.session import Session
from tests.networks import mlp, samples


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def screen_of(monkeypatch: pytest.MonkeyPatch, delay: float = 0) -> Screen:
    """Standard error from now on (pytest puts its own there before each test)."""
    monkeypatch.setattr(sys, "stderr", screen := Screen())
    monkeypatch.setattr(progress, "_DELAY", delay)
    return screen


def test_a_session_shows_each_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = screen_of(monkeypatch)
    session = Session(mlp(), samples(30), samples(40))
    session.run(progress=False)
    assert screen.getvalue() == ""
    session = Session(mlp(), samples(30), samples(40))
    session.run()
    assert "calibration: 100%" in screen.getvalue()
    assert "30/30" in screen.getvalue()
    assert "evaluation: 100%" in screen.getvalue()
    assert "40/40" in screen.getvalue()
    session.sensitivity()
    assert "sensitivity: 100%" in screen.getvalue()


def test_what_is_done_at_once_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = screen_of(monkeypatch, delay=progress._DELAY)
    with showing() as tell:
        tell("calibration", 1, 2)
        tell("calibration", 2, 2)
    assert screen.getvalue() == ""


def test_a_file_shows_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_DELAY", 0)
    with showing() as tell:
        tell("calibration", 1, 2)
    assert capsys.readouterr() == ("", "")


def test_an_interrupted_stage_leaves_its_bar_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = screen_of(monkeypatch)
    with pytest.raises(KeyboardInterrupt), showing() as tell:
        tell("calibration", 1, 4)
        raise KeyboardInterrupt
    assert "1/4" in screen.getvalue()
    assert screen.getvalue().endswith("\n")


def test_what_needed_less_than_there_might_have_been_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = screen_of(monkeypatch)
    with showing() as tell:
        tell("trials", 1, 44)
        tell("trials", 25, 44)
    assert "trials: 100%" in screen.getvalue().rsplit("\r", 1)[-1]


def test_work_within_other_work_tells_whom_that_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = screen_of(monkeypatch)
    told: list[tuple[str, int, int]] = []
    with showing(lambda *what: told.append(what)), showing() as tell:
        tell("compiling", 1, 2)
    with showing(False), showing() as tell:
        tell("compiling", 1, 2)
    assert (told, screen.getvalue()) == ([("compiling", 1, 2)], "")
    with showing() as tell:
        tell("calibration", 1, 4)
        with showing() as within:
            within("compiling", 2, 2)
        tell("calibration", 4, 4)
    assert "compiling: 100%" in screen.getvalue()
    assert "calibration: 100%" in screen.getvalue()
