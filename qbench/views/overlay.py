"""The histograms of one tensor in two versions, to be drawn over each other."""

from dataclasses import replace

from qbench.errors import SessionError
from qbench.quant.config import QuantConfig
from qbench.report.report import Report
from qbench.session.session import Session
from qbench.views.histogram import HistogramView, histogram_view
from qbench.views.state import Part, State

_BINS = 128

Side = tuple[Session, QuantConfig, Report | None]
"""A version: whose config, and what came of it where it was evaluated."""


def overlay(before: Side, after: Side, layer: str | None, part: Part) -> tuple[HistogramView, ...]:
    """Both histograms, coarse and without channels; nothing where one of the two has none."""
    found = [None if layer is None else _histogram(*side, layer, part) for side in (before, after)]
    return tuple(one for one in found if one is not None) if None not in found else ()


def _histogram(
    session: Session, config: QuantConfig, report: Report | None, layer: str, part: Part
) -> HistogramView | None:
    if report is None:
        return None
    try:
        view = histogram_view(State(session.quantized(config), session.statistics, report), layer, part)
    except SessionError:  # another session's model may have no such layer
        return None
    return None if view is None else replace(view.coarser(_BINS), by_channel=None)
