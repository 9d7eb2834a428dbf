"""How much faster one calibration is on more processes of a Dask cluster, beside what should come of them."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from qbench.bench.machine import cores, describe
from qbench.bench.subject import find
from qbench.calibration.counter import merged
from qbench.calibration.statistics import Statistics
from qbench.cluster.connect import connected
from qbench.data.dataset import Dataset
from qbench.data.load import Samples
from qbench.ir.graph import Graph
from qbench.ir.types import Dim
from qbench.progress import StageProgress
from qbench.session.session import Session

_ROUNDS = 3


@dataclass(frozen=True)
class Team:
    """A number of workers.

    Parameters
    ----------
    workers
        How many processes, of one thread each.
    seconds
        One calibration: the median of some.
    predicted_s
        What it should take: see :class:`Scaling`.
    efficiency
        How much of what its processors could do is used: the seconds of one worker, over these seconds times as many
        workers as run at once.
    """

    workers: int
    seconds: float
    predicted_s: float
    efficiency: float


@dataclass(frozen=True)
class Scaling:
    """What was measured.

    Parameters
    ----------
    model, data, samples
        Which model, on what.
    tensors
        How many are observed.
    bytes_each
        That travel for each of them, from each worker.
    processors
        That the workers share. W workers should take ``pass_s / min(W, processors) + W * merge_s``.
    pass_s, merge_s
        One pass over the data by one worker; packing and merging what one worker found.
    teams
        In ascending order of their workers.
    """

    model: str
    data: str
    samples: int
    tensors: int
    bytes_each: int
    processors: int
    pass_s: float
    merge_s: float
    teams: tuple[Team, ...]

    def to_json(self) -> str:
        """Everything, and the machine."""
        return json.dumps({**asdict(self), "machine": describe()}, indent=1, allow_nan=False)

    def __str__(self) -> str:
        rows = [
            f"{one.workers:7}  {one.seconds:7.2f}  {one.predicted_s:9.2f}  {one.efficiency:10.2f}" for one in self.teams
        ]
        costs = f"{self.tensors} tensors of {self.bytes_each / 1000:.1f} kB, {1000 * self.merge_s:.0f} ms to merge"
        of = f"{self.processors} processors; of each worker come {costs}"
        return "\n".join(["workers  seconds  predicted  efficiency", *rows, "", of])


def scaling(
    model: str,
    samples: Callable[[Graph], tuple[Samples, str]],
    shapes: Mapping[str, tuple[Dim, ...]],
    told: StageProgress | None = None,
    workers: Sequence[int] = (1, 2),
) -> Scaling:
    """Time one calibration on clusters of several sizes, by turns, once kernels are loaded and the model is planned.

    Parameters
    ----------
    model, samples, shapes
        As for :func:`~qbench.bench.interactive.interactive`; all the samples are used.
    told
        Called with how many calibrations are done.
    workers
        Numbers of processes; one worker, what the others are compared with, is always among them.

    Raises
    ------
    ModelError
        No such model.
    ClusterError
        Dask is not installed.
    """
    sizes, taken, found = sorted({1, *workers}), dict[int, list[float]](), dict[str, Statistics]()
    turns = [size for _ in range(1 + _ROUNDS) for size in sizes]
    with TemporaryDirectory() as place, ExitStack() as stack:
        (source,) = find([model], Path(place), shapes)
        (x, _), data = samples(source.graph)
        clients = {size: stack.enter_context(connected(f"local:{size}")) for size in sizes}
        for size, client in clients.items():
            client.wait_for_workers(size)
        for done, size in enumerate(turns):
            if told is not None:
                told("calibrations", done, len(turns))
            session = Session(source.graph, x, cluster=clients[size])
            begin = time.perf_counter()
            found = {**session.statistics}
            taken.setdefault(size, []).append(time.perf_counter() - begin)
        if told is not None:
            told("calibrations", len(turns), len(turns))
    seconds = {size: median(all_[1:]) for size, all_ in taken.items()}  # the first made and loaded what all need
    each, merge_s = _merge(found)
    pass_s, processors = max(0.0, seconds[1] - merge_s), cores()

    def team(size: int) -> Team:
        at_once = min(size, processors)
        return Team(size, seconds[size], pass_s / at_once + size * merge_s, seconds[1] / (at_once * seconds[size]))

    count = Dataset(source.graph, x).pieces
    teams = tuple(map(team, sizes))
    return Scaling(source.name, data, count, len(found), each, processors, pass_s, merge_s, teams)


def _merge(found: Mapping[str, Statistics]) -> tuple[int, float]:
    """Bytes of a tensor's statistics on their way, and the seconds that one worker's take to be packed and merged."""
    from qbench.cluster.parcel import packed  # with Dask behind it

    taken, content = list[float](), b""
    for _ in range(1 + _ROUNDS):
        begin = time.perf_counter()
        content, _ = packed(found)
        merged((0, dict(found)), (0, dict(found)))
        taken.append(time.perf_counter() - begin)
    return len(content) // max(1, len(found)), median(taken[1:])
