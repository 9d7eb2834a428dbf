"""What the whole network lost, now and before the last edit, how large and how fast it is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from qbench.report.entries import Flip, Latency, OutputReport
from qbench.report.report import Report
from qbench.search.cost import constant_bytes
from qbench.views.pictures import Picture
from qbench.views.state import State
from qbench.views.view import View

Pictures = Callable[[int], Picture | None]
"""Gives the picture of a sample, by its index in the data; None where it is no image."""

_MOST_FLIPS = 24


@dataclass(frozen=True)
class Outcome(View):
    """The numbers of one report, as in :class:`~qbench.report.report.OutputReport`; what outputs say, of the worst."""

    sqnr_db: float | None
    agreement: float | None
    top1: float | None
    flipped: int | None
    metric: float | None
    found_db: float | None = None
    texts_alike: float | None = None
    nats_lost: float | None = None
    varies_db: float | None = None


@dataclass(frozen=True)
class Baseline(View):
    """What the numbers of now can be compared with, beside those before the last edit; on the same data."""

    label: str
    outcome: Outcome


@dataclass(frozen=True)
class Glance(View):
    """What the newest finished probe says of the whole network, while a drag goes on or each layer is not known yet.

    Parameters
    ----------
    thresholds
        That the last edit set, by tensor.
    now, before
        What the network loses with them, and what it lost before the edit; None where that is not known.
    samples
        How many the probe has.
    """

    thresholds: Mapping[str, float]
    now: Outcome
    before: Outcome | None
    samples: int


@dataclass(frozen=True)
class FlipView(View):
    """A sample whose prediction flipped, as in :class:`~qbench.report.report.Flip`.

    Parameters
    ----------
    verdict
        Which of the two models is right, where the label is known: ``float``, ``quantized`` or ``neither``.
    picture
        What the sample looks like; None where it is no image.
    is_new
        Whether the config before the last edit did not flip it, as far as that is known.
    names
        What the two classes and the label are called, where the user said it.
    """

    sample: int
    float_class: int
    quantized_class: int
    label: int | None
    verdict: str | None
    picture: Picture | None
    is_new: bool
    names: tuple[str, str, str | None] | None = None


@dataclass(frozen=True, kw_only=True)
class ResultView(View):
    """The result of the last evaluation.

    Parameters
    ----------
    now
        Its numbers.
    before
        Those of the config before the last edit, on the same data; None where that is not known.
    baselines
        What else they can be compared with: the session's start, and snapshots.
    top1_float
        Of the float model; None without labels.
    metric_name, metric_float
        The user's metric, and what it says of the float model; None where there is none.
    samples, data
        How many, and of which data: ``evaluation``, ``calibration``, or ``probe`` (a few samples, for a quick look).
    flips
        The first samples whose predictions flipped.
    bytes_float, bytes_now
        Size of all constants of the model as it came, and of the integer graph.
    latency
        How long one run takes; None where that was not measured.
    steps_ran, steps
        How many nodes of the integer graph had to run for it, of how many.
    is_stale
        Whether the config was changed since.
    caveats
        What makes the numbers worth less than they seem.
    """

    now: Outcome
    before: Outcome | None
    baselines: tuple[Baseline, ...]
    top1_float: float | None
    metric_name: str | None
    metric_float: float | None
    samples: int
    data: str
    flips: tuple[FlipView, ...]
    bytes_float: int
    bytes_now: int
    latency: Latency | None
    steps_ran: int
    steps: int
    is_stale: bool
    caveats: tuple[str, ...] = ()


def result_view(
    state: State,
    before: Report | None = None,
    pictures: Pictures = lambda _: None,
    baselines: Mapping[str, Report] | None = None,
    labels: Sequence[str] = (),
    caveats: tuple[str, ...] = (),
) -> ResultView:
    """The result of a session's state.

    Parameters
    ----------
    state
        Of a session.
    before
        What the config before the last edit cost.
    pictures
        Of flipped samples.
    baselines
        Reports on the same data, by what they are called.
    labels
        Names of the classes, by number.
    caveats
        As `qbench.views.caveats` gives them.
    """
    output, graph = state.report.output, state.quantized.graph
    old: set[int] = set() if before is None else {flip.sample for flip in before.output.flips}
    flips = tuple(
        FlipView(
            flip.sample,
            flip.float_class,
            flip.quantized_class,
            flip.label,
            _verdict(flip),
            pictures(flip.sample),
            before is not None and flip.sample not in old,
            _names(flip, labels),
        )
        for flip in output.flips[:_MOST_FLIPS]
    )
    return ResultView(
        now=outcome(output),
        before=None if before is None else outcome(before.output),
        baselines=tuple(Baseline(name, outcome(report.output)) for name, report in (baselines or {}).items()),
        top1_float=output.top1_float,
        metric_name=output.metric_name,
        metric_float=output.metric_float,
        samples=output.samples,
        data=output.data,
        flips=flips,
        bytes_float=constant_bytes(state.quantized.trace.source),
        bytes_now=constant_bytes(graph),
        latency=output.latency,
        steps_ran=len(state.report.steps_ran),
        steps=len(graph.nodes),
        is_stale=state.is_stale,
        caveats=caveats,
    )


def outcome(output: OutputReport) -> Outcome:
    """The numbers of a report's output."""
    found = [loss.found_db for loss in output.losses if loss.found_db is not None]
    texts = [loss.texts_alike for loss in output.losses if loss.texts_alike is not None]
    nats = [loss.nats_lost for loss in output.losses if loss.nats_lost is not None]
    varies = [loss.varies_db for loss in output.losses if loss.varies_db is not None]
    return Outcome(
        output.sqnr_db,
        output.agreement,
        output.top1,
        output.flipped,
        output.metric,
        min(found, default=None),
        min(texts, default=None),
        max(nats, default=None),
        min(varies, default=None),
    )


def _names(flip: Flip, labels: Sequence[str]) -> tuple[str, str, str | None] | None:
    classes = [each for each in (flip.float_class, flip.quantized_class, flip.label) if each is not None]
    if not labels or not all(0 <= each < len(labels) for each in classes):
        return None
    right = None if flip.label is None else labels[flip.label]
    return labels[flip.float_class], labels[flip.quantized_class], right


def _verdict(flip: Flip) -> str | None:
    if flip.label is None:
        return None
    return {flip.float_class: "float", flip.quantized_class: "quantized"}.get(flip.label, "neither")
