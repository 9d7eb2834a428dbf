"""The whole benchmark: every model, every number of threads, every batch."""

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median

import numpy as np

from qbench.bench.competitors import Competitor, competitors
from qbench.bench.interleave import Turn, comparable, interleave
from qbench.bench.result import Entry, Failure, Profile, Result, RoundTrip, Timing
from qbench.bench.subject import Subject, find, make_subject
from qbench.bench.worker import PROGRAM
from qbench.errors import ModelError
from qbench.ir.types import Dim
from qbench.process import Process, WorkerError
from qbench.progress import StageProgress


@dataclass(frozen=True)
class Plan:
    """What to measure.

    Parameters
    ----------
    models
        Names of :data:`qbench.bench.networks.NETWORKS`, or ONNX or TFLite files.
    peers
        Those of :data:`qbench.bench.competitors.PEERS` that are installed.
    dtypes, threads, batches
        Each with each.
    rounds, seconds
        How many turns an engine has, and how long it runs in all of them together.
    shapes
        Of inputs, in place of those in the files.
    """

    models: Sequence[str]
    peers: Sequence[str] = ()
    dtypes: Sequence[str] = ("int8", "float32")
    threads: Sequence[int] = (1,)
    batches: Sequence[int] = (1,)
    rounds: int = 7
    seconds: float = 2.0
    shapes: Mapping[str, tuple[Dim, ...]] = field(default_factory=dict[str, tuple[Dim, ...]])


def measure(plan: Plan, result: Result, told: StageProgress) -> None:
    """Fill a result.

    Parameters
    ----------
    plan
        What to measure.
    result
        Filled on the way: what is there when this is interrupted was measured.
    told
        Hears how far it is.

    Raises
    ------
    ModelError
        A model that cannot be read. What an engine cannot do is a failure in the result.
    """
    with tempfile.TemporaryDirectory(prefix="qbench") as place, Process("gauge", PROGRAM) as gauge:
        sources = find(plan.models, Path(place), plan.shapes)
        _read_peaks(plan, gauge, result)
        for number, source in enumerate(sources):
            told(f"{source.name}: quantizing", 0, 1)
            subject = make_subject(source, Path(place) / str(number))
            entered = competitors(subject, plan.peers, plan.dtypes)
            for threads in plan.threads:
                for batch in plan.batches:
                    _Group(plan, subject, threads, batch, gauge, result).run(entered, told)
        _read_peaks(plan, gauge, result)


def _read_peaks(plan: Plan, gauge: Process, result: Result) -> None:
    for dtype in plan.dtypes:
        try:
            result.peaks.setdefault(dtype, []).append(gauge.ask("read", gauge=["peak", dtype])["value"])
        except WorkerError as error:
            result.note(str(error))


@dataclass(frozen=True)
class _Group:
    """One model, number of threads and batch: what is compared with each other."""

    plan: Plan
    subject: Subject
    threads: int
    batch: int
    gauge: Process
    result: Result

    def run(self, entered: Sequence[Competitor], told: StageProgress) -> None:
        """Measure it; gather whatever was measured, even if interrupted."""
        stage = f"{self.subject.name}, threads {self.threads}, batch {self.batch}"
        plan, turns = self.plan, dict[Entry, list[Turn]]()
        opened: dict[Entry, Timing] = {}
        with ExitStack() as stack:
            processes: dict[Entry, Process] = {}
            for number, competitor in enumerate(entered):
                told(f"{stage}: loading", number, len(entered))
                entry = Entry(self.subject.name, competitor.label, competitor.dtype, self.threads, self.batch)
                process = stack.enter_context(Process(competitor.label, PROGRAM, self.threads))
                try:
                    opened[entry] = self._open(entry, competitor, process)
                    processes[entry] = process
                except (WorkerError, ModelError) as error:
                    self._failed(entry, str(error))
            try:
                interleave(
                    processes,
                    self._round_trip,
                    rounds=plan.rounds,
                    seconds=plan.seconds / plan.rounds,
                    turns=turns,
                    failed=self._failed,
                    told=lambda done, total: told(stage, done, total),
                )
            finally:
                self._gather(turns, opened)
            for entry in turns:
                if entry.engine == "qbench":
                    self._profile(entry, processes[entry])

    def _profile(self, entry: Entry, process: Process) -> None:
        try:
            steps = process.ask("profile")["steps"]
        except WorkerError as error:
            self.result.note(str(error))
        else:
            self.result.profiles.append(Profile(entry, tuple(tuple(step) for step in steps)))

    def _open(self, entry: Entry, competitor: Competitor, process: Process) -> Timing:
        if competitor.error:
            raise WorkerError(competitor.error)
        output = self.subject.folder / "output.npy"
        task = {
            "model": str(competitor.model),
            "dtype": competitor.dtype,
            "threads": self.threads,
            **self.subject.inputs(self.batch, competitor.dtype),
        }
        reply = process.ask("open", engine=competitor.engine, task=task, output=str(output))
        sqnr = self.subject.sqnr_db(np.load(output, allow_pickle=False))
        return Timing(entry, (), self.subject.macs * self.batch, reply["settings"], sqnr)

    def _gather(self, turns: Mapping[Entry, list[Turn]], opened: Mapping[Entry, Timing]) -> None:
        state, chosen = comparable(turns)
        for entry, taken in chosen.items():
            seconds = tuple(second for turn in taken for second in turn.seconds)
            self.result.timings.append(replace(opened[entry], seconds=seconds))
        if self.threads > 1 and turns:
            every = [turn.round_trip for taken in turns.values() for turn in taken]
            trips = [trip * 1e9 for trip in every if trip is not None]
            extent = (median(trips), min(trips), max(trips)) if trips else (None, None, None)
            counts = sum(map(len, chosen.values())), len(every)
            self.result.round_trips.append(
                RoundTrip(self.subject.name, self.threads, self.batch, *extent, state, *counts)
            )

    def _failed(self, entry: Entry, error: str) -> None:
        self.result.failures.append(Failure(**asdict(entry), error=error))

    def _round_trip(self) -> float | None:
        return self.gauge.ask("read", gauge=["round_trip"])["value"] if self.threads > 1 else None
