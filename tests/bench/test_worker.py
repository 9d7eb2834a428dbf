"""An engine's process: what it answers, with an engine made up on the spot."""

import io
import json

import numpy as np
import pytest

from qbench.bench import engines, worker
from qbench.bench.worker import PROGRAM, Worker
from qbench.process import Process, WorkerError, serve


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
    serve(Worker(), [json.dumps(request) for request in requests], replies)
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
    with Process("gauge", PROGRAM) as process:
        trip = process.ask("read", gauge=["round_trip"])["value"]
        assert trip is None or 1e-9 < trip < 1
        assert process.ask("read", gauge=["peak", "int8"])["value"] > 1e8
        with pytest.raises(WorkerError, match="gauge: ModuleNotFoundError"):
            process.ask("read", gauge=["nothing"])
