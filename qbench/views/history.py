"""What was done to a session, what was kept of it under names, and any two of those compared."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from qbench.errors import SessionError, shown
from qbench.quant.config import QuantConfig
from qbench.quant.config_checks import diff
from qbench.report.entries import LayerReport
from qbench.report.report import Report
from qbench.session.session import Session
from qbench.views.histogram import HistogramView
from qbench.views.overlay import overlay
from qbench.views.result import Outcome, outcome
from qbench.views.state import Part
from qbench.views.view import View

Reports = Callable[[QuantConfig], Report | None]
"""What is known of a config, if it was evaluated."""

Sessions = Mapping[str, Session]
NO_SESSIONS: Sessions = MappingProxyType({})

_MOST_LAYERS = 60
_SAME_DB = 0.05


@dataclass(frozen=True, kw_only=True)
class EditRow(View):
    """One entry of the history.

    Parameters
    ----------
    key
        What `comparison_view` knows it by.
    position, label
        How many edits come before it, and what was done.
    state
        ``done``, ``now`` (this one counts) or ``undone``.
    outcome
        What its config cost; None where it was not evaluated.
    """

    key: str
    position: int
    label: str
    state: str
    outcome: Outcome | None


@dataclass(frozen=True, kw_only=True)
class SnapshotRow(View):
    """A config that was kept under a name; `is_now` says whether it counts now."""

    key: str
    name: str
    outcome: Outcome | None
    is_now: bool


@dataclass(frozen=True)
class HistoryView(View):
    """All edits, oldest first, all snapshots, and the other sessions that can be compared with."""

    edits: tuple[EditRow, ...]
    snapshots: tuple[SnapshotRow, ...]
    others: tuple[Version, ...] = ()


@dataclass(frozen=True)
class Version(View):
    """One side of a comparison; `outcome` is None where it was not evaluated."""

    key: str
    label: str
    outcome: Outcome | None


@dataclass(frozen=True)
class SettingChange(View):
    """A setting that differs, as JSON text; None where one side says nothing."""

    path: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class LayerChange(View):
    """A layer that lost more or less than before, in dB: `gain_db` is positive where it is better."""

    name: str
    before_db: float | None
    after_db: float | None
    gain_db: float | None
    runs_before: str
    runs_after: str


@dataclass(frozen=True)
class ComparisonView(View):
    """Two versions of the config, and what came of them.

    Parameters
    ----------
    before, after
        Which two.
    settings
        What differs between the configs.
    layers
        What differs between the reports, the largest differences first; empty where one was not evaluated.
    more_layers
        How many more there are.
    profile
        Of all layers that both have, in the order of the graph: name, SQNR before and after, None where not measured.
    histograms
        Of the chosen tensor, before and after; empty where one side has none.
    """

    before: Version
    after: Version
    settings: tuple[SettingChange, ...]
    layers: tuple[LayerChange, ...]
    more_layers: int
    profile: tuple[tuple[str, float | None, float | None], ...] = ()
    histograms: tuple[HistogramView, ...] = ()


def history_view(session: Session, reports: Reports, others: Sessions = NO_SESSIONS) -> HistoryView:
    """The history and the snapshots of a session, and other sessions by their names."""
    history = session.history
    now = history.position
    edits = tuple(
        EditRow(
            key=f"edit {i}",
            position=i,
            label=edit.label,
            state="now" if i == now else "done" if i < now else "undone",
            outcome=_outcome(reports(edit.config)),
        )
        for i, edit in enumerate(history.edits)
    )
    snapshots = tuple(
        SnapshotRow(
            key=f"snapshot {name}",
            name=name,
            outcome=_outcome(kept.report or reports(kept.config)),
            is_now=kept.config == history.config,
        )
        for name, kept in session.snapshots.items()
    )
    return HistoryView(edits, snapshots, tuple(_other(name, other)[0] for name, other in others.items()))


def comparison_view(
    session: Session,
    before: str,
    after: str,
    reports: Reports,
    others: Sessions = NO_SESSIONS,
    layer: str | None = None,
    part: Part = "activation",
) -> ComparisonView:
    """Compare two versions, named by their keys; with the histograms of a layer's tensor where one is given.

    Raises
    ------
    SessionError
        There is no such version.
    """
    (one, old, was), (two, new, now) = (_version(session, key, reports, others) for key in (before, after))
    settings = tuple(SettingChange(path, _said(a), _said(b)) for path, a, b in diff(old, new))
    changes = () if was is None or now is None else _changes(was, now)
    layers = _largest(changes)
    profile = tuple((change.name, change.before_db, change.after_db) for change in changes)
    sides = (_session(session, before, others), old, was), (_session(session, after, others), new, now)
    drawn = overlay(*sides, layer, part)
    more = max(0, len(layers) - _MOST_LAYERS)
    return ComparisonView(one, two, settings, layers[:_MOST_LAYERS], more, profile, drawn)


def _session(session: Session, key: str, others: Sessions) -> Session:
    """Whose version it is."""
    return others[key.partition(" ")[2]] if key.startswith("session ") else session


def _other(name: str, session: Session) -> tuple[Version, QuantConfig, Report | None]:
    report = None if session.is_stale else session.report
    return Version(f"session {name}", name, _outcome(report)), session.config, report


def _version(
    session: Session, key: str, reports: Reports, others: Sessions
) -> tuple[Version, QuantConfig, Report | None]:
    kind, _, name = key.partition(" ")
    if kind == "session" and name in others:
        return _other(name, others[name])
    edits = session.history.edits
    kept = session.snapshots.get(name) if kind == "snapshot" else None
    if kept is not None:
        report = kept.report or reports(kept.config)
        return Version(key, name, _outcome(report)), kept.config, report
    if kind == "edit" and name.isdecimal() and int(name) < len(edits):
        edit = edits[int(name)]
        report = reports(edit.config)
        return Version(key, f"{name}: {edit.label}", _outcome(report)), edit.config, report
    raise SessionError(f"there is no version {shown(key)} to compare: it was replaced by a newer edit")


def _changes(before: Report, after: Report) -> tuple[LayerChange, ...]:
    old = {layer.name: layer for layer in before.by_layer}
    return tuple(_layer(old[layer.name], layer) for layer in after.by_layer if layer.name in old)


def _largest(changes: tuple[LayerChange, ...]) -> tuple[LayerChange, ...]:
    changed = [
        change
        for change in changes
        if change.runs_before != change.runs_after or (change.gain_db is not None and abs(change.gain_db) >= _SAME_DB)
    ]
    return tuple(sorted(changed, key=lambda change: -abs(change.gain_db or 0)))


def _layer(before: LayerReport, after: LayerReport) -> LayerChange:
    gain = None
    if before.sqnr_db is not None and after.sqnr_db is not None:
        gain = 0.0 if before.sqnr_db == after.sqnr_db else after.sqnr_db - before.sqnr_db
    gain = None if gain is None or math.isnan(gain) else gain
    return LayerChange(after.name, before.sqnr_db, after.sqnr_db, gain, before.runs_as, after.runs_as)


def _outcome(report: Report | None) -> Outcome | None:
    return None if report is None else outcome(report.output)


def _said(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)
