"""Waiting for conditions rather than for time to pass."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic
from typing import TypeVar

T = TypeVar("T")


def until(ask: Callable[[], T | None], seconds: float) -> T:
    """Ask again and again until there is an answer; AssertionError after so many seconds."""
    end, pause = monotonic() + seconds, threading.Event()
    while True:
        answer = ask()
        if answer is not None:
            return answer
        assert monotonic() < end, f"no answer within {seconds} s"
        pause.wait(0.05)
