"""What is read ahead is the same, in the same order; no more is read than there is room for, and errors are told."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from qbench.data.ahead import ahead


def test_items_come_in_order():
    assert [*ahead(range(1000), lambda item: 1 << 20)] == [*range(1000)]


def test_no_more_is_read_than_there_is_room_for():
    read, enough = list[int](), threading.Event()

    def items() -> Iterator[int]:
        for number in range(10):
            read.append(number)
            if number == 3:
                enough.set()
            yield number

    taking = ahead(items(), lambda item: 1 << 26)
    assert next(taking) == 0
    assert next(taking) == 1
    assert enough.wait(30)
    assert len(read) == 4  # two that were taken, and two that wait
    taking.close()
    assert [thread for thread in threading.enumerate() if thread.name == "qbench reading" and not gone(thread)] == []


def gone(thread: threading.Thread) -> bool:
    thread.join(30)
    return not thread.is_alive()


def test_errors_are_told_where_they_are_due():
    def items() -> Iterator[int]:
        yield 1
        raise KeyError("two")

    taking = ahead(items(), lambda item: 1)
    assert next(taking) == 1
    with pytest.raises(KeyError, match="two"):
        next(taking)
