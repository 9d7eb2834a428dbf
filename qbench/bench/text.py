"""A result as text, for a terminal."""

from collections.abc import Iterable
from itertools import groupby

from qbench.bench.result import Entry, Ratio, Result, StepTime
from qbench.report.text import aligned, shortened

_HEADERS = (
    "model",
    "engine",
    "dtype",
    "threads",
    "batch",
    "median ms",
    "min ms",
    "images/s",
    "GMAC/s",
    "of peak",
    "dB",
)
_STEP_HEADERS = ("step", "kernel", "ms", "GMAC/s", "of peak")
_SLOWEST = 5
_LONGEST = 48
_WRONG_DB = 5.0


def bench_table(result: Result, *, all_steps: bool = False) -> str:
    """The machine, a line for each timing, how qbench compares, and its slowest steps (or all of them)."""
    parts = [
        _machine(result),
        _timings(result),
        "\n".join(_comparison(result.ratios())),
        *_profiles(result.steps(), None if all_steps else _SLOWEST),
        "\n".join(_remarks(result)),
    ]
    return "\n\n".join(part for part in parts if part)


def _machine(result: Result) -> str:
    machine = result.machine
    lines = [f"{machine['cpu']}, {machine['cores']} cores, {machine['level']}"]
    for dtype, peaks in result.peaks.items():
        if peaks:
            measured = ", ".join(f"{peak / 1e9:.1f}" for peak in peaks)
            lines.append(f"one core's peak, {dtype}: {measured} GMAC/s (each time the bare loop was run)")
    return "\n".join(lines)


def _timings(result: Result) -> str:
    """A line for each timing, those of one model and setting together, with the failures among them."""
    lines = [
        (
            *_entry(row),
            f"{row.median_ms:.2f}",
            f"{row.min_ms:.2f}",
            f"{1e3 * row.batch / row.median_ms:.1f}",
            f"{row.gmac_per_s:.1f}",
            _percent(row.peak_fraction),
            "" if timing.sqnr_db is None else f"{timing.sqnr_db:.1f}",
        )
        for row, timing in zip(result.rows(), result.timings, strict=True)
    ]
    table = aligned(_HEADERS, lines, left=_HEADERS[:3]) if lines else ""
    failed = [f"{_told(failure)}: {failure.error}" for failure in result.failures]
    return "\n".join(filter(None, (table, *failed)))


def _entry(entry: Entry) -> tuple[str, ...]:
    return _short(entry.model), entry.engine, entry.dtype, str(entry.threads), str(entry.batch)


def _told(entry: Entry) -> str:
    return f"{_short(entry.model)}, {_setting(entry.threads, entry.batch)}, {entry.engine} {entry.dtype}"


def _setting(threads: int, batch: int) -> str:
    return f"{threads} thread{'s' * (threads > 1)}, batch {batch}"


def _comparison(ratios: Iterable[Ratio]) -> list[str]:
    lines: list[str] = []
    for (model, threads, batch), group in groupby(ratios, lambda r: (r.model, r.threads, r.batch)):
        said = [f"{r.dtype} {r.ratio:.2f}x {r.peer} {r.peer_dtype}" for r in group]
        lines.append(f"{_short(model)}, {_setting(threads, batch)}: qbench {', '.join(said)}")
    return ["as fast as the fastest peer, by medians:", *lines] if lines else []


def _profiles(steps: Iterable[StepTime], most: int | None) -> list[str]:
    parts: list[str] = []
    for title, group in groupby(steps, _told):
        every = list(group)
        whole = sum(step.ms for step in every)
        lines = [
            (
                _short(step.step),
                _short(step.kernel),
                f"{step.ms:.3f}",
                f"{step.gmac_per_s:.1f}" if step.gmac_per_s else "",
                _percent(step.peak_fraction),
            )
            for step in every[:most]
        ]
        parts.append(
            f"{title}: {len(every)} steps, {whole:.2f} ms; slowest first\n"
            + aligned(_STEP_HEADERS, lines, left=_STEP_HEADERS[:2])
        )
    return parts


def _remarks(result: Result) -> list[str]:
    lines: list[str] = []
    for trip in result.round_trips:
        where = f"{_short(trip.model)}, {_setting(trip.threads, trip.batch)}: between two cores"
        if trip.median_ns is None:
            lines.append(f"{where} nothing could be measured: others use them")
        else:
            extent = f"{trip.median_ns:.0f} ns there and back ({trip.min_ns:.0f} to {trip.max_ns:.0f})"
            lines.append(f"{where} {extent}, {trip.state}: {trip.turns} of {trip.of_turns} turns count")
    lines += [
        f"{_told(timing.entry)}: its output is far from the float model's ({timing.sqnr_db:.1f} dB)"
        for timing in result.timings
        if timing.sqnr_db is not None and timing.sqnr_db < _WRONG_DB
    ]
    for timing in result.timings:
        steps: dict[str, str] = timing.settings.get("interpreted") or {}
        for name, reason in list(steps.items())[:1]:
            count = f"{len(steps)} step{'s' * (len(steps) > 1)}"
            lines.append(
                f"{_told(timing.entry)}: {count} run in the interpreter, {_short(name)} since {_short(reason)}"
            )
    return [*lines, *result.notes]


def _percent(fraction: float | None) -> str:
    return "" if fraction is None else f"{fraction:.0%}"


def _short(text: str) -> str:
    return shortened(text, _LONGEST)
