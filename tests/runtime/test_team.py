from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from qbench.kernels.levels import numba_is_off
from qbench.runtime import team
from tests.runtime.handmade import graph_of, planned

pytestmark = pytest.mark.skipif(numba_is_off(), reason="without Numba there are no threads")


def program(shape=("N", 4, 8, 8)):
    return planned(graph_of(shape, "float32", [(i, i) for i in range(12)], [12]), 3)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def run_alone(script: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, where warnings about threads and forks are not errors of this one."""
    head = "import os, numpy as np; from tests.runtime.test_team import program\n"
    return subprocess.run([sys.executable, "-W", "ignore", "-c", head + script], capture_output=True, text=True)


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_more_threads_than_processors_give_the_same_bits(threads):
    x = np.random.default_rng(0).normal(0, 50, (threads + 1, 4, 8, 8)).astype(np.float32)
    made = program()
    np.testing.assert_array_equal(made.run(x, threads=threads)["v12"], made.run(x, threads=1)["v12"])


def test_the_processors_are_shared_out_among_runs():
    with team.crew(3) as first, team.crew(3) as second:
        assert first.threads == 3
        assert second.threads == 1
    with team.crew(2) as third:
        assert third.threads == 2


def test_crews_are_used_again():
    with team.crew(2) as first:
        pass
    with team.crew(2) as second:
        assert second is first


def test_without_further_threads_the_caller_works_alone(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    files = open_files()
    monkeypatch.setattr(threading.Thread, "start", refuse)
    crew = team.Crew(3)
    assert crew.threads == 1
    assert open_files() == files


def test_a_closed_crew_leaves_neither_threads_nor_files():
    before = threading.active_count(), open_files()
    crew = team.Crew(3)
    assert threading.active_count() == before[0] + 2
    crew.close()
    assert (threading.active_count(), open_files()) == before


def test_a_process_ends_while_its_workers_are_awake():
    done = run_alone("x = np.ones((5, 4, 8, 8), np.float32); program().run(x, threads=3); print('ran')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")


def test_a_forked_child_makes_its_own_threads():
    done = run_alone(
        "x = np.ones((5, 4, 8, 8), np.float32); p = program(); p.run(x, threads=3)\n"
        "child = os.fork()\n"
        "p.run(x, threads=3)\n"
        "if child: print(os.waitpid(child, 0)[1]); p.run(x, threads=3)\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")


def test_workers_fall_asleep_and_wake_up_again():
    made, x = program(), np.ones((1, 4, 8, 8), np.float32)
    made.run(x, threads=3)
    with team.crew(3) as crew:
        workers = crew.workers
    for _ in range(3):
        while not all(worker.asleep for worker in workers):
            os.sched_yield()
        np.testing.assert_array_equal(made.run(x, threads=3)["v12"], x)
