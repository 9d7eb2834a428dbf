"""Feed the importers damaged files: ``python -m tests.fuzz [--minutes 10] [--format tflite|onnx] [--seed N]``.

Files that ship in ``data/``, shared ones where they are, and generated ones are damaged byte by byte and field by
field. An importer gives a graph or a clean qbench error, at once and in bounded memory; anything else is a failure,
and its file is kept in ``.cache/fuzz``. A file that takes more than ten seconds ends the run at once, with the place
where it hangs; it is kept as ``now``.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import random
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from qbench.errors import QBenchError
from qbench.frontends import load
from tests.fuzzing import onnx_seeds, tflite_seeds
from tests.fuzzing.mutate import mutated

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / ".cache" / "fuzz"
SHARED = Path(os.environ.get("QBENCH_SHARED_DATA", ROOT.parent / "shared" / "data"))
LARGEST = 400_000
"""Bytes of a file to start from: larger ones hold weights, of which a damage shows nothing."""
HANG_SECONDS = 10
"""Of processor time, so that a busy machine makes no failures."""
MEMORY = 2**31
"""Bytes of address space that one file may take beyond what the process has."""
MESSAGE = 20_000
"""Characters of the longest message that a person would read."""
FAILURES = 10
"""How many failures end a run."""

Make = Callable[[random.Random], bytes]


def seeds(extension: str) -> list[bytes]:
    """The real files of a format that are small enough."""
    found = [*(ROOT / "data").glob(f"*.{extension}"), *sorted((SHARED / "models").glob(f"*/*.{extension}"))]
    return [path.read_bytes() for path in sorted(found) if path.stat().st_size <= LARGEST]


def tflite_cases() -> Make:
    networks, files = list(tflite_seeds.networks()), tflite_seeds.files()
    everything = files + seeds("tflite")

    def make(rng: random.Random) -> bytes:
        if rng.random() < 0.6:
            return tflite_seeds.wrong(rng.choice(networks), rng)
        return mutated(rng.choice(everything if rng.random() < 0.2 else files), everything, rng)

    return make


def onnx_cases() -> Make:
    files = onnx_seeds.files()
    everything = files + seeds("onnx")

    def make(rng: random.Random) -> bytes:
        data = rng.choice(everything if rng.random() < 0.2 else files)
        return onnx_seeds.wrong(data, rng) if rng.random() < 0.6 else mutated(data, everything, rng)

    return make


CASES = {"tflite": tflite_cases, "onnx": onnx_cases}


def outcome(path: Path) -> str:
    """What the importer makes of a file: ``graph`` or the error's name; any other exception is a failure."""
    try:
        load(path)
    except QBenchError as error:
        if len(str(error)) > MESSAGE:
            raise AssertionError(f"a message of {len(str(error))} characters") from error
        return type(error).__name__
    return "graph"


def fuzz(formats: list[str], minutes: float, seed: int) -> int:
    """Damage files until the time is over; the number of failures."""
    KEPT.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("error")
    faulthandler.register(signal.SIGPROF, chain=True)  # says where, even within C, then ends the process
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    makers = {name: CASES[name]() for name in formats}
    counts: Counter[str] = Counter()
    failures: dict[str, str] = {}
    end, number = monotonic() + 60 * minutes, 0
    print(f"seed {seed}; the file at hand is {KEPT / 'now'}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        while monotonic() < end and len(failures) < FAILURES:
            number += 1
            kind = formats[number % len(formats)]
            data = makers[kind](random.Random(f"{seed} {number}"))
            path = Path(folder) / f"case.{kind}"
            path.write_bytes(data)
            (KEPT / "now").write_bytes(data)
            signal.setitimer(signal.ITIMER_PROF, HANG_SECONDS)
            try:
                counts[f"{kind}: {outcome(path)}"] += 1
            except Exception as error:
                frames = traceback.extract_tb(error.__traceback__)
                place = f"{type(error).__name__} in {Path(frames[-1].filename).name}:{frames[-1].lineno}"
                if place not in failures:
                    failures[place] = str(KEPT / f"{seed}-{number}.{kind}")
                    Path(failures[place]).write_bytes(data)
                    traceback.print_exc()
                    print(f"kept as {failures[place]}", flush=True)
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
    (KEPT / "now").unlink(missing_ok=True)
    for name, count in sorted(counts.items()):
        print(f"{name:<32} {count:8}")
    print(f"{number} files, {len(failures)} failures")
    return len(failures)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--format", choices=[*CASES], help="one importer only")
    parser.add_argument("--seed", type=int, help="repeat a run; by default another one each time")
    options = parser.parse_args()
    chosen = 0 if os.environ.get("CI") else random.SystemRandom().randrange(2**32)  # CI decides the same twice
    seed = chosen if options.seed is None else options.seed
    return int(fuzz([options.format] if options.format else [*CASES], options.minutes, seed) > 0)


if __name__ == "__main__":
    sys.exit(main())
