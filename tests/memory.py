"""Resident memory while many images go through calibration and evaluation: ``python -m tests.memory --images 10000``.

The images are files, of the size that the network wants; the network is one of those that everybody times. Status 1
where more is resident than is allowed, or where the end of a stage takes more than its middle did.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image

import qbench as qb
from qbench.bench.networks import NETWORKS

STAGES = ("calibration", "evaluation")
GROWTH = 1 << 26
"""Bytes that an allocator may keep in pieces."""


def make(folder: Path, count: int, height: int, width: int) -> Path:
    """Images of blurred noise, no two alike."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(count):
        coarse = Image.fromarray(rng.integers(0, 256, (14, 14, 3), np.uint8))
        coarse.resize((width, height), Image.Resampling.BILINEAR).save(folder / f"{number:05d}.jpg")
    return folder


def resident(kind: str = "VmRSS") -> int:
    """Bytes that this process has in memory now (Linux), or had at most: ``VmHWM``."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(kind))


def watched(graph: qb.Graph, images: object, every: int, cache: int) -> dict[str, list[int]]:
    """By stage: the most that was resident in each stretch of so many images."""
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

    qb.Session(graph, images, preset="int8", cache_bytes=cache).run(progress=tell)
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
    parser.add_argument("--cache", type=int, default=64, metavar="MIB", help="of the session; it fills up meanwhile")
    options = parser.parse_args(arguments)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "network.onnx"
        path.write_bytes(NETWORKS[options.network]().SerializeToString())
        graph = qb.load(path)
        height, width = (size for size in graph.types[graph.inputs[0]].shape[2:] if isinstance(size, int))
        images = make(Path(folder) / "images", options.images, height, width)
        seen = watched(graph, qb.load_data(images, std=255).x, options.every, options.cache << 20)
    highest = resident("VmHWM")
    print(f"at most {highest / 2**30:.3f} GiB")
    return int(highest > options.at_most * 2**30 or any(map(grows, seen.values())))


if __name__ == "__main__":
    sys.exit(main())
