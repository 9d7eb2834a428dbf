"""What a search found: a point for each config, those that no other beats, and the one to take."""

from __future__ import annotations

from dataclasses import dataclass

from qbench.search.front import Front
from qbench.views.view import View

__all__ = ["FrontPoint", "FrontView", "front_view"]


@dataclass(frozen=True)
class FrontPoint(View):
    """One config.

    Parameters
    ----------
    label, metric, held_back, ms, bytes
        As in :class:`~qbench.search.front.Found`.
    on_front, is_best
        Whether no other beats it, and whether it is the one to take.
    """

    label: str
    metric: float
    held_back: float | None
    ms: float
    bytes: int
    on_front: bool
    is_best: bool


@dataclass(frozen=True)
class FrontView(View):
    """All that a search measured.

    Parameters
    ----------
    points
        In the order in which they were found.
    metric_float, at_least, max_ms
        The float model's metric, and what is wanted.
    """

    points: tuple[FrontPoint, ...]
    metric_float: float
    at_least: float | None
    max_ms: float | None


def front_view(front: Front) -> FrontView:
    """A picture of what a search found."""
    kept, best = {id(row) for row in front.pareto}, front.best
    points = tuple(
        FrontPoint(row.label, row.metric, row.metric_held_back, row.ms, row.bytes, id(row) in kept, row is best)
        for row in front.rows
    )
    return FrontView(points, front.metric_float, front.limits.at_least, front.limits.max_ms)
