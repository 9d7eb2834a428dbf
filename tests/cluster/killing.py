"""Workers killed while they calibrate and evaluate: ``python -m tests.cluster.killing --rounds 100``."""

from __future__ import annotations

import argparse
import os
import signal
import sys

import numpy as np
from distributed import Client, LocalCluster

from qbench.cluster.connect import connected
from qbench.session.session import Session
from tests.networks import residual

SAMPLES = 700
SHAPE = (3, 6, 7)


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


def ran(data: np.ndarray, **where: object) -> Session:
    return Session(residual(), data, data[::-1].copy(), **where)


def check(client: Client, data: np.ndarray, alone: Session, seed: int) -> list[str]:
    """One round: which stages lost a worker; AssertionError where anything is not the same, bit for bit."""
    killer = Killer(client.cluster, seed)
    session = ran(data, cluster=client)
    report = session.run(killer)
    assert session.statistics == alone.statistics
    assert report == alone.report, "the reports differ"
    return killer.killed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    rounds, data = parser.parse_args().rounds, images()
    alone, killed = ran(data), 0
    alone.run(False)
    with connected("local:2") as client:
        for seed in range(rounds):
            killed += len(check(client, data, alone, seed))
            print(f"round {seed + 1} of {rounds}: the same; {killed} workers killed so far", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
