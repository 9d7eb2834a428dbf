"""Run by a test in a process of its own, and killed: edits and runs a session as fast as it can, and says so."""

from __future__ import annotations

import sys
from pathlib import Path

from qbench.session.session import Session
from tests.networks import mlp, samples

if __name__ == "__main__":
    path = Path(sys.argv[1])
    graph = mlp() if len(sys.argv) < 3 else Session(mlp(), samples(20)).quantized().qnn
    session = Session.resume(path) if path.exists() else Session(graph, samples(20), samples(20), path=path)
    print("made", flush=True)
    count = len(session.history.edits)
    while True:
        session.override("dense_1", threshold=count / 8)
        print("edited", count, flush=True)
        session.run()
        print("ran", count, flush=True)
        count += 1
