"""Resident memory while many images go through calibration and evaluation: ``python -m tests.memory --images 10000``.

Images are made when they are read, so that none of the memory is theirs; the network is one of those that everybody
times. Status 1 where more is resident than is allowed, or where the second half of a stage takes more than the first.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

import qbench as qb
from qbench.bench.networks import NETWORKS

STAGES = ("calibration", "evaluation")
GROWTH = 1 << 26
"""Bytes that an allocator may keep in pieces."""


class Made(Sequence[NDArray[np.float32]]):
    """Images of noise, each the same whenever it is read."""

    def __init__(self, count: int, shape: tuple[int, ...]) -> None:
        self._count, self._shape = count, shape

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> NDArray[np.float32]:
        if not 0 <= index < self._count:
            raise IndexError(index)
        return np.random.default_rng(index).random((1, *self._shape), np.float32)


def resident() -> int:
    """Bytes that this process has in memory (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS:"))


def watched(graph: qb.Graph, images: int, every: int) -> dict[str, list[int]]:
    """By stage: the most that was resident in each stretch of so many images."""
    image = tuple(size for size in graph.types[graph.inputs[0]].shape[1:] if isinstance(size, int))
    seen: dict[str, list[int]] = {}

    def tell(stage: str, done: int, total: int) -> None:
        if stage not in STAGES:
            return
        stretches = seen.setdefault(stage, [])
        if done and len(stretches) <= (done - 1) // every:
            stretches.append(0)
            print(f"{stage}: {done} of {total} images, {resident() / 2**30:.3f} GiB", flush=True)
        if stretches:
            stretches[-1] = max(stretches[-1], resident())

    qb.Session(graph, Made(images, image), preset="int8").run(progress=tell)
    return seen


def grows(stretches: Sequence[int]) -> bool:
    """Whether the last stretch takes more than one in the middle did."""
    return stretches[-1] > stretches[len(stretches) // 2] + GROWTH


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", choices=[*NETWORKS], default="mobilenetv2")
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--every", type=int, default=1_000, help="say what is resident after so many images")
    parser.add_argument("--at-most", type=float, default=1.5, metavar="GIB")
    options = parser.parse_args(arguments)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "network.onnx"
        path.write_bytes(NETWORKS[options.network]().SerializeToString())
        seen = watched(qb.load(path), options.images, options.every)
    highest = max(map(max, seen.values()))
    print(f"at most {highest / 2**30:.3f} GiB")
    return int(highest > options.at_most * 2**30 or any(map(grows, seen.values())))


if __name__ == "__main__":
    sys.exit(main())
