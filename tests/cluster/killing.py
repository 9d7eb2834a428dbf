"""Workers killed while they calibrate, evaluate and search: ``python -m tests.cluster.killing --rounds 100``."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Mapping

import numpy as np
from distributed import Client, LocalCluster

from qbench.cluster.connect import connected
from qbench.search.front import Front
from qbench.session.session import Session
from tests.networks import residual

SAMPLES = 700
SHAPE = (3, 6, 7)
TRIALS = 4  # of a search, which then ends


def images(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(SAMPLES, *SHAPE)).astype(np.float32)


class Killer:
    """Kills one worker in each stage, when so much of it is done; the nanny starts another."""

    def __init__(self, cluster: LocalCluster, seed: int) -> None:
        self._nannies, self._rng = cluster.workers, np.random.default_rng(seed)
        self.killed: list[str] = []

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage not in self.killed and done >= self._rng.integers(0, total):
            self.killed.append(stage)
            pid = self._nannies[self._rng.choice(sorted(self._nannies))].pid
            if pid is not None:  # one that has just died, and is not there again
                os.kill(pid, signal.SIGKILL)


def right(outputs: Mapping[str, np.ndarray], truths: np.ndarray) -> float:
    """A metric of the user's."""
    (scores,) = outputs.values()
    return float(np.mean(scores.reshape(len(truths), -1).argmax(axis=1) == truths))


def ran(data: np.ndarray, **where: object) -> Session:
    truths = np.arange(len(data)) % 3
    return Session(residual(), data, (data[::-1].copy(), truths), metric=right, **where)


def found(session: Session, killer: Killer | None = None, total: int = TRIALS) -> list[tuple[object, ...]]:
    """What a search tries, and what it finds of that; times apart, which differ. It tells `total` of them."""

    enough = threading.Event()

    def tell(front: Front) -> None:
        if killer is not None:
            killer("search", len(front.rows), total)
        if len(front.rows) == TRIALS:
            enough.set()

    rows = session.search(at_least=2.0, tell=tell, cancel=enough).rows
    return [(row.label, row.config, row.metric, row.sqnr_db) for row in rows]


def check(client: Client, data: np.ndarray, alone: Session, searched: list[tuple[object, ...]], seed: int) -> list[str]:
    """One round: which stages lost a worker; AssertionError where anything is not the same, bit for bit."""
    killer = Killer(client.cluster, seed)
    session = ran(data, cluster=client)
    report = session.run(killer)
    assert session.statistics == alone.statistics
    assert report == alone.report, "the reports differ"
    assert found(session, killer, len(searched)) == searched, "the searches differ"
    return killer.killed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first round")
    options, data = parser.parse_args(), images()
    alone, killed = ran(data), Counter[str]()
    alone.run(False)
    searched = found(alone)
    with connected("local:2") as client:
        for number in range(options.rounds):
            killed.update(check(client, data, alone, searched, options.first + number))
            told = ", ".join(f"{count} in {stage}" for stage, count in killed.items())
            print(f"round {number + 1} of {options.rounds}: the same; workers killed so far: {told}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
