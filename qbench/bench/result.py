"""What a benchmark found, and how it is written down."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any


@dataclass(frozen=True)
class Entry:
    """What is timed: a model in an engine."""

    model: str
    engine: str
    dtype: str
    threads: int
    batch: int


@dataclass(frozen=True)
class Timing:
    """Seconds of each inference, of `macs` multiply-accumulates; and what else is worth knowing about it.

    Parameters
    ----------
    entry, seconds, macs
        What ran, how long each time, and how much work it was.
    settings
        What the engine was told.
    sqnr_db
        How close its output is to that of the float model; None where it is no float array.
    """

    entry: Entry
    seconds: tuple[float, ...]
    macs: float
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sqnr_db: float | None = None

    @property
    def median(self) -> float:
        """Seconds."""
        return median(self.seconds)


@dataclass(frozen=True)
class Row(Entry):
    """A line of the table."""

    median_ms: float
    min_ms: float
    gmac_per_s: float
    peak_fraction: float | None


@dataclass(frozen=True)
class Failure(Entry):
    """An engine that could not do it."""

    error: str


@dataclass(frozen=True)
class Ratio:
    """How many times as fast qbench is as the fastest peer, by medians."""

    model: str
    threads: int
    batch: int
    dtype: str
    peer: str
    peer_dtype: str
    ratio: float


@dataclass(frozen=True)
class RoundTrip:
    """How long a cache line took to the other processor and back, beside the timings of one model.

    Parameters
    ----------
    model, threads, batch
        Beside which timings.
    median_ns, min_ns, max_ns
        Before each turn.
    state
        "near" or "far" where most turns were; "mixed" where no state has turns of every engine; "busy" where others
        used the processors. Only turns in that state count.
    turns, of_turns
        How many those are, and how many there were.
    """

    model: str
    threads: int
    batch: int
    median_ns: float | None
    min_ns: float | None
    max_ns: float | None
    state: str
    turns: int
    of_turns: int


@dataclass(frozen=True)
class StepTime(Entry):
    """One step of a program of ours."""

    step: str
    kernel: str
    ms: float
    gmac_per_s: float
    peak_fraction: float | None


@dataclass(frozen=True)
class Profile:
    """Name, kernel, seconds and multiply-accumulates of each step of a program of ours."""

    entry: Entry
    steps: tuple[tuple[str, str, float, int], ...]


@dataclass
class Result:
    """Grows while a benchmark runs; what is there is right, whenever it stops.

    Parameters
    ----------
    machine
        What everything ran on.
    peaks
        Multiply-accumulates per second of one core, by dtype: what the bare loop reached, each time it was measured.
    timings, failures, profiles
        By entry, in the order of the measurement.
    round_trips
        Beside timings of more than one thread.
    notes
        What a reader should know.
    """

    machine: dict[str, object]
    peaks: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    timings: list[Timing] = field(default_factory=list[Timing])
    failures: list[Failure] = field(default_factory=list[Failure])
    profiles: list[Profile] = field(default_factory=list[Profile])
    round_trips: list[RoundTrip] = field(default_factory=list[RoundTrip])
    notes: list[str] = field(default_factory=list[str])

    def note(self, text: str) -> None:
        """Keep what a reader should know, once."""
        if text not in self.notes:
            self.notes.append(text)

    def peak(self, dtype: str) -> float | None:
        """The best that one core has shown."""
        return max(self.peaks.get(dtype, ()), default=None)

    def rows(self) -> list[Row]:
        """A line for each timing."""
        return [self._row(timing) for timing in self.timings]

    def _row(self, timing: Timing) -> Row:
        entry, speed = timing.entry, timing.macs / timing.median
        return Row(
            **asdict(entry),
            median_ms=timing.median * 1e3,
            min_ms=min(timing.seconds) * 1e3,
            gmac_per_s=speed / 1e9,
            peak_fraction=self._fraction(entry, speed),
        )

    def _fraction(self, entry: Entry, speed: float) -> float | None:
        peak = self.peak(entry.dtype)
        return None if peak is None else speed / (peak * entry.threads)

    def ratios(self) -> list[Ratio]:
        """Ours against the fastest peer: int8 to int8, int8 to float32, float32 to float32."""
        found: list[Ratio] = []
        for ours in self.timings:
            if ours.entry.engine != "qbench":
                continue
            e = ours.entry
            for dtype in ("int8", "float32") if e.dtype == "int8" else (e.dtype,):
                same = (e.model, e.threads, e.batch, dtype)
                peers = [t for t in self.timings if t.entry.engine != "qbench" and _place(t.entry) == same]
                if peers:
                    best = min(peers, key=lambda peer: peer.median)
                    ratio = best.median / ours.median
                    found.append(Ratio(e.model, e.threads, e.batch, e.dtype, best.entry.engine, dtype, ratio))
        return found

    def steps(self) -> list[StepTime]:
        """The steps of each profile, slowest first."""
        return [
            StepTime(
                **asdict(profile.entry),
                step=name,
                kernel=kernel,
                ms=seconds * 1e3,
                gmac_per_s=work / seconds / 1e9,
                peak_fraction=self._fraction(profile.entry, work / seconds) if work else None,
            )
            for profile in self.profiles
            for name, kernel, seconds, work in sorted(profile.steps, key=lambda step: -step[2])
        ]

    def to_json(self) -> str:
        """All of it; ``rows`` is the table."""
        trips = [trip.median_ns for trip in self.round_trips if trip.median_ns is not None]
        content: dict[str, Any] = {
            "machine": self.machine,
            "peak": {dtype: max(values) / 1e9 for dtype, values in self.peaks.items() if values},
            "peaks": {dtype: [value / 1e9 for value in values] for dtype, values in self.peaks.items()},
            "round_trip_ns": median(trips) if trips else None,
            "round_trips": [asdict(trip) for trip in self.round_trips],
            "rows": [asdict(row) for row in self.rows()],
            "ratios": [asdict(ratio) for ratio in self.ratios()],
            "errors": [asdict(failure) for failure in self.failures],
            "notes": self.notes,
            "layers": [asdict(step) for step in self.steps()],
            "settings": [
                {**asdict(t.entry), "set": t.settings, "sqnr_db": t.sqnr_db, "inferences": len(t.seconds)}
                for t in self.timings
            ],
        }
        return json.dumps(content, indent=1, allow_nan=False) + "\n"


def _place(entry: Entry) -> tuple[str, int, int, str]:
    return entry.model, entry.threads, entry.batch, entry.dtype
