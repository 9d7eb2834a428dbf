"""Metrics and budgets that no search can do much with, data that is hardly any, and a kill in the middle."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qbench.cli import main
from qbench.errors import DataError
from qbench.ir import archive
from qbench.search.front import Front
from qbench.session.session import Session
from tests.search.planted import GRAPH, X, session, spoiled

Outputs = Mapping[str, np.ndarray]

METRIC = """
import os, signal
from pathlib import Path
import numpy as np

def likeness(outputs, y):
    dying = Path("dies")
    if dying.exists():
        left = int(dying.read_text()) - 1
        dying.write_text(str(left))
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
    return float(np.mean(outputs["y"][np.arange(len(y)), y]))
"""


@pytest.mark.parametrize(
    ("metric", "complaint"),
    [
        (lambda outputs, y: 0.5, "is constant"),
        (lambda outputs, y: math.nan, "gave nan; it must be finite"),
        (lambda outputs, y: "good", "it must give one number"),
    ],
)
def test_a_metric_that_says_nothing(metric: Any, complaint: str):
    with pytest.raises(DataError, match=complaint):
        session().search(metric)


def test_a_noisy_metric_gives_finite_numbers_and_a_best_one():
    noise, enough = np.random.default_rng(0), threading.Event()

    def noisy(outputs: Outputs, y: Any) -> float:
        return float(outputs["y"][np.arange(len(y)), y].mean() + noise.normal(scale=0.05))

    def told(front: Front) -> None:
        if len(front.rows) == 3:
            enough.set()

    front = session().search(noisy, max_ms=1e6, tell=told, cancel=enough)
    assert all(math.isfinite(row.metric) for row in front.rows)
    assert front.best.unseen == max(row.unseen for row in front.rows)


def test_a_budget_that_nothing_meets_gives_the_nearest_and_says_so():
    front = session().search(max_ms=1e-6, seconds=20)
    assert not front.met
    assert front.best.ms == min(row.ms for row in front.rows)
    assert "nothing meets what is wanted; the nearest is marked with a star" in str(front)


@pytest.mark.parametrize("evaluation", [None, (X[:1], np.zeros(1, np.int64))])
def test_one_sample(evaluation: Any):
    one = Session(GRAPH, X[:1], evaluation, config=spoiled())
    front = one.search(at_least=45.0)
    assert front.met
    assert front.best.metric_held_back is None
    assert len(one.repairs(progress=False)) > 0
    choice = one.choose(progress=False)
    assert choice.held_back_db >= choice.plain_db


def test_dead_channels_and_inputs_that_are_all_alike():
    weight = GRAPH.constants["dense_1.weight"]
    dead = np.array(weight.array)
    dead[:5], dead[:, 3] = 0, 0
    graph = GRAPH.rebound(constants={**GRAPH.constants, "dense_1.weight": type(weight)(dead)})
    alike = np.repeat(X[:2], 12, axis=0)  # second moments of rank 2
    config = spoiled().with_value("weights.rounding", "sequential").with_value("weights.equalize", True)
    made = Session(graph, alike, config=config)
    ratio = made.run(progress=False).output.sqnr_db
    assert ratio is not None
    assert math.isfinite(ratio)
    assert made.search(at_least=40.0).met


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    archive.save(GRAPH, tmp_path / "model.qbench")
    spoiled().save(tmp_path / "start.json")
    np.savez(tmp_path / "cal.npz", x=X)
    np.savez(tmp_path / "eval.npz", x=X[:24], y=np.arange(24) % 5)
    (tmp_path / "metric_that_kills.py").write_text(METRIC)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path


def command(out: str) -> list[str]:
    data = ["--calibration", "cal.npz", "--evaluation", "eval.npz", "--config", "start.json"]
    wanted = ["--metric", "metric_that_kills:likeness", "--at-least", "1e6", "--out", out]
    return ["tune", "model.qbench", *data, *wanted]


def test_killed_in_the_middle_it_goes_on_to_the_same_front(here: Path, capsys: pytest.CaptureFixture[str]):
    def found(out: str) -> list[str]:
        assert main(command(out)) == 0
        return re.findall(r"^(metric \S+), \S+ ms: (.*); best", capsys.readouterr().out, re.MULTILINE)

    (here / "dies").write_text("12")
    path = os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]))
    killed = subprocess.run(
        [sys.executable, "-m", "qbench", *command("killed")], env=os.environ | {"PYTHONPATH": path}, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    known = json.loads((here / "killed/trials.json").read_text())["trials"]
    assert known
    (here / "dies").unlink()
    assert len(labels := found("killed")) > 1
    assert labels == found("whole")
    after = json.loads((here / "killed/trials.json").read_text())["trials"]
    assert {key: after[key] for key in known} == known
