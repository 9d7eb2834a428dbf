"""Two reports side by side."""

from __future__ import annotations

import math
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from qbench.errors import SessionError, check_kind
from qbench.report.entries import LayerReport, OutputReport
from qbench.report.report import Report
from qbench.report.text import aligned, shortened

if TYPE_CHECKING:
    import pandas as pd

_OF_LAYER = ("sqnr_db", "runs_as", "clipped", "threshold", "scale", "calibrator")
_OF_OUTPUT = ("sqnr_db", "agreement", "top1")
_HIGHER_IS_BETTER = (*_OF_OUTPUT, "metric")


@runtime_checkable
class _Runs(Protocol):
    """A session, which is a floor above."""

    def run(self) -> Report: ...


@dataclass(frozen=True, eq=False)
class ReportComparison:
    """What became better and worse from one report to another.

    Parameters
    ----------
    layers
        One row for each layer that is in one report only, runs in another type or has another SQNR, the greatest
        change first. Columns ``name``, ``gain_db`` (positive: better after; None where it is not known), and
        ``X_before`` and ``X_after`` of type, SQNR and encoding.
    output
        One row for each of ``sqnr_db``, ``agreement``, ``top1`` and ``metric`` that both reports have: columns
        ``measure``, ``before``, ``after``, ``gain``.
    regressions
        What became worse at the output, a sentence each.
    """

    layers: pd.DataFrame
    output: pd.DataFrame
    regressions: tuple[str, ...]

    def __str__(self) -> str:
        columns = ("name", "gain_db", "sqnr_db_before", "sqnr_db_after", "runs_as_before", "runs_as_after")
        layers = [[_cell(value) for value in row] for row in self.layers[list(columns)].itertuples(index=False)]
        output = [[_cell(value) for value in row] for row in self.output.itertuples(index=False)]
        headers = ("layer", "gain dB", "dB before", "dB after", "ran as", "runs as")
        found = [
            aligned(headers, layers, ("layer", "ran as", "runs as")) if layers else "no layer changed",
            aligned(list(self.output.columns), output, ("measure",)) if output else "nothing to compare at the output",
            *(f"regression: {regression}" for regression in self.regressions),
        ]
        return "\n\n".join(found)


def compare_reports(
    before: Report | _Runs | str | PathLike[str],
    after: Report | _Runs | str | PathLike[str],
    *,
    tolerance_db: float = 0.0,
) -> ReportComparison:
    """Which layers, and what at the output, became better or worse.

    Parameters
    ----------
    before, after
        Reports, paths of ``report.json``, or sessions, which are run where their report is stale.
    tolerance_db
        How much SQNR the output may lose, in dB, before that counts as a regression. Agreement, top-1 and the metric
        may lose nothing; nor may a model begin to make NaN. A file does not tell an infinite SQNR from none: such are
        not compared.

    Returns
    -------
    ReportComparison
        Layers and output, changed or worse; it prints.

    Raises
    ------
    SessionError
        A file that cannot be read, or is no report.
    """
    import pandas as pd  # takes longer to import than all of qbench

    old, new = _report(before), _report(after)
    table = compare(old, new).iloc[:-1]
    changed = (table["gain_db"].fillna(0.0) != 0) | _differs(table, "runs_as") | _differs(table, "sqnr_db")
    layers = table[changed].sort_values("gain_db", key=lambda gains: -gains.abs(), kind="stable", ignore_index=True)
    rows = [
        (measure, *values, _gain(*values))
        for measure in _HIGHER_IS_BETTER
        if None not in (values := (getattr(old.output, measure), getattr(new.output, measure)))
    ]
    worse = [
        f"{measure} fell from {was:.5g} to {now:.5g}"
        for measure, was, now, gain in rows
        if gain < -(tolerance_db if measure == "sqnr_db" else 0.0)
    ]
    if new.stopped is not None and old.stopped is None:
        worse.append(new.stopped)
    return ReportComparison(layers, pd.DataFrame(rows, columns=["measure", "before", "after", "gain"]), tuple(worse))


def compare(before: Report, after: Report) -> pd.DataFrame:
    """What became of each layer, and in the last row (named ``""``) of the output.

    Returns
    -------
    DataFrame
        Columns ``name``, ``gain_db`` (positive: better after), and ``X_before`` and ``X_after`` for each other X.
    """
    import pandas as pd  # takes longer to import than all of qbench

    old, new = ({layer.name: layer for layer in report.by_layer} for report in (before, after))
    rows = [_row(name, old.get(name), new.get(name), _OF_LAYER) for name in dict.fromkeys([*old, *new])]
    rows.append(_row("", before.output, after.output, _OF_OUTPUT))
    return pd.DataFrame(rows).astype({"gain_db": float})  # of Nones alone it would be objects


def _report(given: Report | _Runs | str | PathLike[str]) -> Report:
    if isinstance(given, Report):
        return given
    check_kind(given, (str, PathLike, _Runs), SessionError, "a report, its file or a session is compared, not {}")
    return Report.load(given) if isinstance(given, str | PathLike) else given.run()


def _row(
    name: str,
    before: LayerReport | OutputReport | None,
    after: LayerReport | OutputReport | None,
    columns: tuple[str, ...],
) -> dict[str, object]:
    was, now = before and before.sqnr_db, after and after.sqnr_db
    row: dict[str, object] = {"name": name, "gain_db": None if was is None or now is None else _gain(was, now)}
    for column in columns:
        row[f"{column}_before"], row[f"{column}_after"] = getattr(before, column, None), getattr(after, column, None)
    return row


def _gain(before: float, after: float) -> float:
    return 0.0 if before == after else after - before  # two infinities are equal


def _differs(table: pd.DataFrame, column: str) -> pd.Series[bool]:
    before, after = table[f"{column}_before"], table[f"{column}_after"]
    return (before != after) & ~(before.isna() & after.isna())


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:.4g}" if isinstance(value, float) else shortened(str(value), 40)
