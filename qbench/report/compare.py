"""Two reports side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qbench.report.entries import LayerReport, OutputReport
from qbench.report.report import Report

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["compare"]

_OF_LAYER = ("sqnr_db", "runs_as", "clipped", "threshold", "scale", "calibrator")
_OF_OUTPUT = ("sqnr_db", "agreement", "top1")


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
    return pd.DataFrame(rows)


def _row(
    name: str,
    before: LayerReport | OutputReport | None,
    after: LayerReport | OutputReport | None,
    columns: tuple[str, ...],
) -> dict[str, object]:
    row: dict[str, object] = {"name": name, "gain_db": _gain(before, after)}
    for column in columns:
        row[f"{column}_before"], row[f"{column}_after"] = getattr(before, column, None), getattr(after, column, None)
    return row


def _gain(before: LayerReport | OutputReport | None, after: LayerReport | OutputReport | None) -> float | None:
    if before is None or after is None or before.sqnr_db is None or after.sqnr_db is None:
        return None
    return 0.0 if before.sqnr_db == after.sqnr_db else after.sqnr_db - before.sqnr_db
