from __future__ import annotations

import threading

from qbench.widgets.runner import Runner

PATIENCE = 30


def test_a_request_while_work_goes_on_cancels_it_and_starts_anew():
    started, log = threading.Semaphore(0), []

    def work(cancel: threading.Event) -> None:
        started.release()
        if len(log) < 2:
            assert cancel.wait(PATIENCE)
        log.append(cancel.is_set())

    runner = Runner(work)
    for _ in range(3):
        runner.request()
        assert started.acquire(timeout=PATIENCE)
    assert runner.wait(PATIENCE)
    assert log == [True, True, False]
    assert not runner.is_busy


def test_it_works_again_after_it_was_idle():
    log = []
    runner = Runner(lambda _: log.append(1))
    assert runner.wait()
    for count in (1, 2):
        runner.request()
        assert runner.wait(PATIENCE)
        assert len(log) == count
