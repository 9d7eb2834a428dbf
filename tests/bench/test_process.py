"""The pipe between the bench and its engines, with engines made up on the spot."""

from __future__ import annotations

import io
import json
import os
import time
from contextlib import ExitStack

import numpy as np
import pytest

from qbench.bench import engines, worker
from qbench.bench.process import EngineError, Process
from qbench.bench.worker import Worker, serve

FAKE = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    {what}
"""


def fake(what: str) -> Process:
    return Process("fake", program=f"exec({FAKE.format(what=what)!r})")


def test_requests_and_replies_are_lines_of_json() -> None:
    with fake("print(json.dumps({'got': request}), flush=True)") as process:
        assert process.ask("turn", seconds=0.5, name="\n\u2028é") == {
            "got": {"do": "turn", "seconds": 0.5, "name": "\n\u2028é"}
        }
        assert process.ask("profile") == {"got": {"do": "profile"}}


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("sys.exit('out of\\x1b memory')", r"^fake: the process ended with status 1: out of\? memory$"),
        ("import os; os.kill(os.getpid(), 11)", "^fake: the process ended with SIGSEGV$"),
        ("print(json.dumps({'error': 'ValueError: a\\nb'}), flush=True)", "^fake: ValueError: a b$"),
    ],
)
def test_what_goes_wrong_is_one_line_that_names_the_engine(what: str, message: str) -> None:
    with fake(what) as process, pytest.raises(EngineError, match=message):
        process.ask("turn", seconds=1)


def test_a_process_that_is_gone_stays_gone() -> None:
    with fake("sys.exit(3)") as process:
        for _ in range(2):
            with pytest.raises(EngineError, match="status 3"):
                process.ask("turn", seconds=1)


def test_an_interruption_leaves_no_process_behind() -> None:
    pids: list[int] = []
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt), ExitStack() as stack:
        for _ in range(2):
            process = stack.enter_context(
                fake("import os; print(json.dumps({'pid': os.getpid()}), flush=True)\n    while 1: pass")
            )
            pids.append(process.ask("turn")["pid"])
        raise KeyboardInterrupt
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert time.monotonic() - start < 60


class Echo:
    """An engine."""

    def __init__(self, task: engines.Task) -> None:
        self.task, self.settings = task, {"speed": "high"}

    def run(self) -> engines.Outputs:
        return [np.full(3, self.task.threads, np.float32)]

    def profile(self) -> list[tuple[str, str, float, int]]:
        return [("conv", "kernel", 0.5, 10)]


def answers(*requests: dict[str, object]) -> list[dict[str, object]]:
    replies = io.StringIO()
    serve([json.dumps(request) for request in requests], replies)
    return [json.loads(line) for line in replies.getvalue().splitlines()]


def test_a_worker_answers_and_survives_errors(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setattr(worker.engines, "engine", lambda name, task: Echo(task))
    task = {"model": "m", "dtype": "int8", "threads": 2, "inputs": "i"}
    output = f"{tmp_path}/y.npy"
    early, opened, turn, profile, wrong = answers(
        {"do": "turn", "seconds": 0.0},
        {"do": "open", "engine": "echo", "task": task, "output": output},
        {"do": "turn", "seconds": 0.01},
        {"do": "profile"},
        {"do": "open", "engine": "echo", "task": {}, "output": output},
    )
    assert early == {"error": "RuntimeError: open comes first"}
    assert opened == {"settings": {"speed": "high"}}
    assert np.load(output).tolist() == [2, 2, 2]
    assert len(turn["seconds"]) >= 1
    assert all(second > 0 for second in turn["seconds"])
    assert profile == {"steps": [["conv", "kernel", 0.5, 10]]}
    assert wrong["error"].startswith("TypeError")


def test_a_long_inference_is_not_run_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[float] = []
    made = Worker()
    monkeypatch.setattr(made, "_once", lambda: runs.append(1.0) or 1.0)
    assert made.turn(0.5) == {"seconds": [1.0]}
    assert len(runs) == 1


def test_gauges_read_the_machine() -> None:
    with Process("gauge") as process:
        trip = process.ask("read", gauge=["round_trip"])["value"]
        assert trip is None or 1e-9 < trip < 1
        assert process.ask("read", gauge=["peak", "int8"])["value"] > 1e8
        with pytest.raises(EngineError, match="gauge: ModuleNotFoundError"):
            process.ask("read", gauge=["nothing"])
