"""A report as text, for a terminal."""

from __future__ import annotations

import math
from collections.abc import Callable

from qbench.report.report import LayerReport, OutputReport, Report
from qbench.report.text import shortened

__all__ = ["report_table"]

_COLUMNS: tuple[tuple[str, Callable[[LayerReport], str]], ...] = (
    ("layer", lambda layer: shortened(layer.name, 32)),
    ("op", lambda layer: layer.op),
    ("runs as", lambda layer: layer.runs_as),
    ("SQNR dB", lambda layer: _number(layer.sqnr_db, ".1f")),
    ("weight dB", lambda layer: _number(layer.weight_sqnr_db, ".1f")),
    ("worst ch.", lambda layer: _number(layer.weight_worst_channel_db, ".1f")),
    ("clipped", lambda layer: _number(layer.clipped, ".2%")),
    ("scale", lambda layer: _values(layer.scale)),
    ("zero", lambda layer: _values(layer.zero_point)),
    ("threshold", lambda layer: _values(layer.threshold)),
    ("why", lambda layer: shortened(layer.reason or layer.chosen_by or "", 60)),
)
_SPOILED_DB = 10.0
_RIGHT = {"SQNR dB", "weight dB", "worst ch.", "clipped", "scale", "zero", "threshold"}


def report_table(report: Report) -> str:
    """One line per layer, then what stands out, then the output."""
    rows = [[header for header, _ in _COLUMNS]]
    rows += [[cell(layer) for _, cell in _COLUMNS] for layer in report.by_layer]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_COLUMNS))]
    right = [header in _RIGHT for header, _ in _COLUMNS]
    lines = [
        "  ".join(
            cell.rjust(width) if aligned else cell.ljust(width)
            for cell, width, aligned in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in rows
    ]
    lines.insert(1, "-" * len(lines[0]))
    return "\n".join([*lines, "", *_remarks(report), _summary(report.output)])


def _remarks(report: Report) -> list[str]:
    """What a reader of a hundred lines should not miss."""
    spoiled = [
        layer
        for layer in report.by_layer
        if isinstance(layer.weight_scale, float) and (layer.weight_worst_channel_db or 0.0) < _SPOILED_DB
    ]
    if not spoiled:
        return []
    worst = min(spoiled, key=lambda layer: layer.sqnr_db if layer.sqnr_db is not None else math.inf)
    return [
        f"one scale for all channels spoils the weights of {len(spoiled)} layers (a channel below {_SPOILED_DB:g} dB), "
        f"{shortened(worst.name, 32)} suffers most; weights.axis='channel' gives each channel its own"
    ]


def _summary(output: OutputReport) -> str:
    parts = [f"output: SQNR {_number(output.sqnr_db, '.2f') or '-'} dB"]
    if output.agreement is not None:
        parts.append(f"agreement with the float model {output.agreement:.2%}")
    if output.top1 is not None and output.top1_float is not None:
        parts.append(f"top-1 {output.top1:.2%} (float {output.top1_float:.2%})")
    return f"{', '.join(parts)}; {output.samples} {output.data} samples"


def _number(value: float | None, spec: str) -> str:
    return "" if value is None else format(value, spec)


def _values(value: float | tuple[float, ...] | None) -> str:
    if isinstance(value, tuple):
        return f"{min(value):.4g}..{max(value):.4g}" if value else ""
    return "" if value is None else f"{value:.4g}"
