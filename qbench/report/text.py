"""Reports and tables as text, for a terminal."""

import math
from collections.abc import Callable, Collection, Sequence

from qbench.report.entries import LayerReport, OutputLoss, OutputReport, Unlike

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
_OUTPUTS, _EDITS = 8, 4
_LEFT = ("layer", "op", "runs as", "why")


def aligned(headers: Sequence[str], lines: Sequence[Sequence[str]], left: Collection[str]) -> str:
    """Columns of one width each, those of the headers named in `left` on the left."""
    rows = [headers, *lines]
    widths = [max(len(row[column]) for row in rows) for column in range(len(headers))]
    texts = [
        "  ".join(
            cell.ljust(width) if header in left else cell.rjust(width)
            for header, cell, width in zip(headers, row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]
    return "\n".join([texts[0], "-" * max(map(len, texts)), *texts[1:]])


def shortened(text: str, limit: int) -> str:
    """Names come from files: no control characters, no 10,000 letters."""
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= limit else f"{text[: limit - 9]}...{text[-6:]}"


def report_text(layers: Sequence[LayerReport], output: OutputReport, edits: Sequence[str] = ()) -> str:
    """One line per layer, then what stands out, what was done to the config, and the output."""
    lines = [[cell(layer) for _, cell in _COLUMNS] for layer in layers]
    table = aligned([header for header, _ in _COLUMNS], lines, _LEFT)
    return "\n".join([table, "", *_remarks(layers), *_done(edits), _summary(output)])


def unlike_text(unlike: Sequence[Unlike]) -> list[str]:
    """What to know of data unlike those of the calibration, and what to do about it: of the first tensor, if any."""
    if not unlike:
        return []
    first, more = unlike[0], len(unlike) - 1
    others = f" ({more} tensor{'s' * (more > 1)} behind it, too)" if more else ""
    return [
        f"{first.clipped:.1%} of the values of {shortened(first.tensor, 32)!r} are clipped: they reach "
        f"{first.reaches:.4g}, those of the calibration data {first.calibrated:.4g}{others}; calibrate on data like "
        "those that the network will meet, scaled in the same way"
    ]


def _remarks(layers: Sequence[LayerReport]) -> list[str]:
    """What a reader of a hundred lines should not miss."""
    spoiled = [
        layer
        for layer in layers
        if isinstance(layer.weight_scale, float) and (layer.weight_worst_channel_db or 0.0) < _SPOILED_DB
    ]
    if not spoiled:
        return []
    worst = min(spoiled, key=lambda layer: layer.sqnr_db if layer.sqnr_db is not None else math.inf)
    return [
        f"one scale for all channels spoils the weights of {len(spoiled)} layers (a channel below {_SPOILED_DB:g} dB), "
        f"{shortened(worst.name, 32)} suffers most; weights.axis='channel' gives each channel its own"
    ]


def _done(edits: Sequence[str]) -> list[str]:
    if not edits:
        return []
    more = f"{len(edits) - _EDITS} edits, then " if len(edits) > _EDITS else ""
    return [f"since the start: {more}{'; '.join(shortened(edit, 200) for edit in edits[-_EDITS:])}"]


def _summary(output: OutputReport) -> str:
    parts = [f"output: SQNR {_number(output.sqnr_db, '.2f') or '-'} dB"]
    if output.agreement is not None:
        parts.append(f"agreement with the float model {output.agreement:.2%}")
    if output.top1 is not None and output.top1_float is not None:
        parts.append(f"top-1 {output.top1:.2%} (float {output.top1_float:.2%})")
    if len(output.losses) > 1 or output.agreement is None:
        parts += [_loss(loss) for loss in output.losses[:_OUTPUTS]]
        parts += [f"{len(output.losses) - _OUTPUTS} more outputs"] if len(output.losses) > _OUTPUTS else []
    parts += [said for loss in output.losses[:_OUTPUTS] for said in _said(loss)]
    if output.metric is not None and output.metric_float is not None:
        name = shortened(output.metric_name or "metric", 40)
        parts.append(f"{name} {output.metric:.5g} (float {output.metric_float:.5g})")
    return f"{', '.join(parts)}; {output.samples} {output.data} samples"


def _loss(loss: OutputLoss) -> str:
    said = f"{shortened(loss.name, 32)} {_number(loss.sqnr_db, '.2f') or '-'} dB"
    return said if loss.cosine is None else f"{said} (cosine {loss.cosine:.6f})"


def _said(loss: OutputLoss) -> list[str]:
    """What is lost of what an output says, where that is more than numbers."""
    name = shortened(loss.name, 32)
    found = [] if loss.found_db is None else [f"{name} {loss.found_db:.2f} dB where something is found"]
    texts = [] if loss.texts_alike is None else [f"{loss.texts_alike:.2%} of the texts of {name} read alike"]
    found += [] if loss.varies_db is None else [f"{name} {loss.varies_db:.2f} dB of how it varies"]
    return [*found, *texts] + ([] if loss.nats_lost is None else [f"{loss.nats_lost:.2g} nats lost by {name}"])


def _number(value: float | None, spec: str) -> str:
    return "" if value is None else format(value, spec)


def _values(value: float | tuple[float, ...] | None) -> str:
    if isinstance(value, tuple):
        return f"{min(value):.4g}..{max(value):.4g}" if value else ""
    return "" if value is None else f"{value:.4g}"
