"""Run programs and sessions from many threads at once: ``python -m tests stress [--minutes 10] [--seed N]``.

Random networks and the real ones of ``../shared``, 1 to 8 threads, any part of the batch, from the start or the middle,
keeping this or that; while other threads run, cancel, edit, probe, time and drop programs, and allocate all the while.
Every result is compared bit for bit with one thread's. A difference, an error, a crash (of the process that does all
this, which this one started) and memory that grows end with status 1 and how to repeat it. The networks of one seed are
always the same; in which order threads come is not.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import itertools
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import traceback
from pathlib import Path
from statistics import median
from time import monotonic

import numpy as np

import qbench as qb
from tests.stressing.cases import models, numbers, random_cases, real_cases
from tests.stressing.targets import ProgramTarget, SessionTarget, Tell

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("QBENCH_SHARED_DATA", ROOT.parent / "shared" / "data"))
HARDEST = "efficientnet_lite0_bn.onnx"
"""Is always among them: it has what threads share most."""
WORKERS, ALLOCATORS, SAMPLES, RANDOM, REAL = 4, 2, 8, 6, 2
ROUND_SECONDS = 20
GROWTH = 256
"""MB by which the level of memory may rise: compiled kernels stay, and heaps are never without gaps."""


def allocate(stop: threading.Event, seed: int) -> None:
    """Take and spoil memory of all sizes, as other threads of a notebook do."""
    rng, held = random.Random(seed), list[np.ndarray]()
    while not stop.is_set():
        block = np.empty(int(2 ** rng.uniform(4, 20)), np.uint8)
        block.fill(rng.randrange(256))
        held.append(block)
        if len(held) > 50:
            del held[rng.randrange(len(held))]


def work(targets: list[ProgramTarget | SessionTarget], stop: threading.Event, seed: int, tell: Tell) -> None:
    rng = random.Random(seed)
    while not stop.is_set():
        target = rng.choice(targets)
        try:
            target.act(rng, tell)
        except Exception:
            tell.compare(f"{target.name}: {traceback.format_exc()}", False)


def resident() -> int:
    """MB of memory that this process holds."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() >> 20


def risen(sizes: list[int]) -> int:
    """MB between the levels of the second quarter of the rounds and the last: single rounds may hold more for a while.

    Few rounds say nothing: the first meet kernels and models that no round before had.
    """
    quarter = len(sizes) // 4
    if quarter < 2:
        return 0
    return max(0, int(median(sizes[-quarter:]) - median(sizes[quarter : 2 * quarter])))


def stress(minutes: float, seed: int) -> int:
    """Go round until the time is over or something is wrong; the number of things that are wrong."""
    paths = models(SHARED, seed)
    hardest = [path for path in paths if path.name == HARDEST]
    if not paths:
        print(f"no models in {SHARED} (set QBENCH_SHARED_DATA): random networks and data/ only")
    paths = [ROOT / "data" / "mnist_cnn.onnx", *(path for path in paths if path not in hardest)]
    real = itertools.cycle(paths)
    sessions = [SessionTarget(paths[0].name, *fed(paths[0]))]
    always = [ProgramTarget(case, random.Random(seed)) for case in real_cases(hardest, SAMPLES)]
    tell, sizes, end = Tell(), list[int](), monotonic() + 60 * minutes
    while monotonic() < end and not tell.wrong:
        number = len(sizes)
        rng = random.Random(f"{seed} {number}")
        cases = random_cases(rng.randrange(2**32), RANDOM, SAMPLES)
        if number:  # what takes long to prepare: the first round does without
            cases += real_cases([next(real) for _ in range(REAL)], 4)
            if len(sessions) == 1:
                sessions += [SessionTarget(path.name, *fed(path)) for path in hardest]
        targets = [*sessions, *always, *(ProgramTarget(case, rng) for case in cases)]
        stop = threading.Event()
        threads = [threading.Thread(target=work, args=(targets, stop, rng.random(), tell)) for _ in range(WORKERS)]
        threads += [threading.Thread(target=allocate, args=(stop, rng.random())) for _ in range(ALLOCATORS)]
        for thread in threads:
            thread.start()
        stop.wait(min(ROUND_SECONDS, max(1, end - monotonic())))
        stop.set()
        for thread in threads:
            thread.join()
        del targets, cases
        sizes.append(resident())
        print(
            f"round {number}: {tell.counts['results compared']} compared, {len(tell.wrong)} wrong, {sizes[-1]} MB",
            flush=True,
        )
    for said in tell.wrong[:5]:
        print(said)
    for name, count in sorted(tell.counts.items()):
        print(f"{name:<20} {count:10}")
    growth = risen(sizes)
    print(f"{'differences':<20} {len(tell.wrong):10}\n{'growth of memory':<20} {growth:10} MB")
    return len(tell.wrong) + (growth > GROWTH)


def fed(path: Path) -> tuple[qb.ir.Graph, np.ndarray]:
    """A model with one input, and data for it."""
    graph = qb.load(path)
    (x,) = numbers(graph, SAMPLES, 1).values()
    return graph, x


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.stress", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, help="repeat the networks of a run; by default others each time")
    parser.add_argument("--here", action="store_true", help="in this process, which a crash then ends")
    options = parser.parse_args()
    chosen = 0 if os.environ.get("CI") else random.SystemRandom().randrange(2**32)  # CI decides the same twice
    seed = chosen if options.seed is None else options.seed
    if options.here:
        faulthandler.enable()
        return int(stress(options.minutes, seed) > 0)
    arguments = ["--here", "--minutes", str(options.minutes), "--seed", str(seed)]
    status = subprocess.run([sys.executable, "-m", "tests.stress", *arguments], cwd=ROOT, check=False).returncode
    print(f"{'crashes':<20} {status < 0:10}" + (f" ({signal.Signals(-status).name})" if status < 0 else ""))
    if status:
        print(f"repeat: python -m tests stress --minutes {options.minutes} --seed {seed}")
    return int(status != 0)


if __name__ == "__main__":
    sys.exit(main())
