"""A comparison as text, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qbench.report.text import aligned, shortened

if TYPE_CHECKING:
    from qbench.parity.comparison import Comparison, LayerComparison
    from qbench.parity.difference import Difference

__all__ = ["comparison_text"]

_HEADERS = ("layer", "op", "elements", "different", "rate", "predicted", "max", "end to end", "max")
_MANY = 5


def comparison_text(comparison: Comparison) -> str:
    """A line for each layer that differs, then the first divergent op and the totals."""
    differing = [layer for layer in comparison.layers if layer.different or layer.end_to_end.different]
    parts = [aligned(_HEADERS, [_cells(layer) for layer in differing], names=2)] if differing else []
    return "\n\n".join([*parts, "\n".join(_summary(comparison, len(differing)))])


def _cells(layer: LayerComparison) -> tuple[str, ...]:
    return (
        shortened(layer.name, 40),
        layer.op,
        f"{layer.elements:,}",
        f"{layer.different:,}",
        f"{layer.found.rate:.3%}",
        "" if layer.predicted is None else f"{layer.predicted:.3%}",
        _largest(layer.found),
        f"{layer.end_to_end.different:,}",
        _largest(layer.end_to_end),
    )


def _largest(difference: Difference) -> str:
    if difference.max_lsb is not None:
        return str(difference.max_lsb)
    return f"{difference.max_relative:.1e}"


def _summary(comparison: Comparison, differing: int) -> list[str]:
    first, count = comparison.first, len(comparison.layers)
    who = f"{comparison.left} and {comparison.right}"
    lines: list[str] = []
    if first is None:
        lines.append(f"{who}: no difference in {comparison.elements:,} elements of {count} layers")
    else:
        lines.append(f"first divergent op: {shortened(first.name, 80)} ({first.op}){_why(first)}")
        told = f"{comparison.different:,} of {comparison.elements:,} elements differ, in {differing} of {count} layers"
        end = f"; end to end {comparison.different_end_to_end:,}" if comparison.fed else ""
        fed = f", each op fed with the values of {_other(comparison)}" if comparison.fed else ""
        lines.append(f"{who}: {told}{fed}{end}")
    lines[-1] += f"; {comparison.samples} sample{'s' * (comparison.samples != 1)}"
    if comparison.missing:
        shown = "; ".join(f"{shortened(tensor, 60)}: {why}" for tensor, why in comparison.missing[:_MANY])
        more = len(comparison.missing) - _MANY
        lines.append(
            f"not compared: {len(comparison.missing)} values ({shown}{f'; and {more} more' if more > 0 else ''})"
        )
    return lines


def _why(first: LayerComparison) -> str:
    if first.roundings is None:
        return ""
    left, right = first.roundings
    return f": {left} against {right}" if left != right else f": both round as {left}"


def _other(comparison: Comparison) -> str:
    return comparison.right if comparison.fed == "left" else comparison.left
