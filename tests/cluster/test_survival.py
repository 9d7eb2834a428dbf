"""Long work goes on from what is done, and ends when it is asked to."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from distributed import Client

from qbench.calibration.statistics import Statistics
from qbench.cluster.connect import connected
from qbench.errors import Cancelled, ClusterError, SessionError
from qbench.session import quantizer
from qbench.session.arrays import save_statistics
from qbench.session.session import Session
from tests.networks import mlp, samples

X = samples(700)


def test_the_scheduler_is_lost_and_the_next_run_goes_on(tmp_path: Path):
    done = list[int]()

    def lose(stage: str, samples: int, total: int) -> None:
        if samples and not done:
            done.append(samples)
            client.cluster.close()

    with connected("local:1") as client:
        session = Session(mlp(), X, path=tmp_path / "s", cluster=client)
        with pytest.raises(ClusterError, match="its scheduler is gone: start it and run again"):
            session.run(lose)
    told = list[tuple[str, int]]()
    report = Session.resume(tmp_path / "s").run(lambda stage, samples, total: told.append((stage, samples)))
    assert done[0] >= 256
    again = [samples for stage, samples in told if stage == "calibration"]
    assert all(samples > done[0] for samples in again)  # what was seen before is not run again
    assert report == Session(mlp(), X).run(False)


def test_a_disk_is_full_and_the_next_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    kept = list[Path]()

    def full(found: Mapping[str, Statistics], path: Path) -> None:
        if kept:
            raise OSError(errno.ENOSPC, "No space left on device")
        save_statistics(found, path)
        kept.append(path)

    monkeypatch.setattr(quantizer, "save_statistics", full)
    with pytest.raises(SessionError, match=r"No space left on device; what is in memory is whole: make room and run"):
        Session(mlp(), X, path=tmp_path / "s").run(False)
    monkeypatch.undo()
    told = list[int]()
    session = Session.resume(tmp_path / "s")
    report = session.run(lambda stage, samples, total: told.append(samples) if stage == "calibration" else None)
    assert all(samples > 256 for samples in told)  # the first block is not run again
    assert report == Session(mlp(), X).run(False)


class Pipe(Sequence[np.ndarray]):
    """Samples behind a pipe: once that is there, whoever reads them waits for somebody who writes into it."""

    def __init__(self, path: Path, rows: np.ndarray = X) -> None:
        self.path, self.rows = path, rows

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, first: int, last: int) -> Pipe:
        return Pipe(self.path, self.rows[first:last])

    def __getitem__(self, index: int) -> np.ndarray:
        return self.rows[index : index + 1]

    def __iter__(self) -> Iterator[np.ndarray]:
        if self.path.exists():
            self.path.open().close()
        yield self.rows


def test_cancel_does_not_wait_for_what_workers_do(client: Client, tmp_path: Path):
    pipe, cancel = tmp_path / "pipe", threading.Event()
    session = Session(mlp(), Pipe(pipe), cluster=client)
    os.mkfifo(pipe)
    cancel.set()
    with pytest.raises(Cancelled):  # while both workers wait at the pipe
        session.run(False, cancel=cancel)
    writer = os.open(pipe, os.O_RDWR)  # which nobody has to wait for
    pipe.unlink()
    assert session.run(False) == Session(mlp(), X).run(False)
    os.close(writer)
