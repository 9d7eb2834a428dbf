"""What a comparison found, layer by layer."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from qbench.parity.difference import Difference
from qbench.parity.theory import Mode
from qbench.report.text import aligned, shortened

if TYPE_CHECKING:
    import pandas as pd

_HEADERS = ("layer", "op", "elements", "different", "rate", "predicted", "max", "end to end", "max")
_MANY = 5


@dataclass(frozen=True, kw_only=True)
class LayerComparison:
    """One value that both sides have.

    Parameters
    ----------
    name, op
        The node that it is known by.
    tensor, dtype
        The value.
    found
        How it differs where the op was fed with the other side's own values: what this op alone does otherwise. As
        `end_to_end` where neither side can be fed in the middle.
    end_to_end
        How it differs in runs from the network's input on: all ops before it take part.
    roundings
        How the two sides round; None where that is not known, or nothing is rescaled.
    predicted
        The rate of differences that theory expects for these roundings; see :mod:`qbench.parity.theory`.
    """

    name: str
    op: str
    tensor: str
    dtype: str
    found: Difference
    end_to_end: Difference
    roundings: tuple[Mode, Mode] | None = None
    predicted: float | None = None

    @property
    def elements(self) -> int:
        """How many were compared."""
        return self.found.elements

    @property
    def different(self) -> int:
        """How many of them differ."""
        return self.found.different

    @property
    def max_lsb(self) -> int | None:
        """The largest difference in steps; None where real numbers differ."""
        return self.found.max_lsb if self.found.max_lsb is not None or self.different else 0


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two runs of the same network on the same data.

    Parameters
    ----------
    left, right
        Who was compared.
    layers
        Every value that both have, in execution order.
    samples
        How many samples were run.
    fed
        Whose ops were fed one by one with the other side's values: "left", "right", or "" where neither can be.
    missing
        Values that could not be compared, and why.
    caveats
        What may be the reason of differences, whatever the network; see :class:`~qbench.parity.runner.Runner`.
    """

    left: str
    right: str
    layers: tuple[LayerComparison, ...]
    samples: int
    fed: str = ""
    missing: tuple[tuple[str, str], ...] = ()
    caveats: tuple[str, ...] = ()

    @property
    def elements(self) -> int:
        """Over all layers."""
        return sum(layer.elements for layer in self.layers)

    @property
    def different(self) -> int:
        """Elements that differ, over all layers; 0 means the same bits everywhere."""
        return sum(layer.different for layer in self.layers)

    @property
    def different_end_to_end(self) -> int:
        """The same in runs from the network's input on."""
        return sum(layer.end_to_end.different for layer in self.layers)

    @property
    def first(self) -> LayerComparison | None:
        """The first divergent op: all that goes into it is the same, and what comes out is not."""
        return next((layer for layer in self.layers if layer.different or layer.end_to_end.different), None)

    def layer(self, name: str) -> LayerComparison | None:
        """The layer with that name, or the one that makes that tensor."""
        matches = [layer for layer in self.layers if name in (layer.name, layer.tensor)]
        return matches[-1] if matches else None

    def table(self) -> pd.DataFrame:
        """One row per layer."""
        import pandas as pd  # takes longer to import than all of qbench

        return pd.DataFrame([_row(layer) for layer in self.layers])

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain JSON data."""
        return {
            "left": self.left,
            "right": self.right,
            "samples": self.samples,
            "elements": self.elements,
            "different": self.different,
            "different_end_to_end": self.different_end_to_end,
            "first_divergent": None if self.first is None else self.first.name,
            "fed": self.fed,
            "layers": [
                _row(layer) | {"histogram": layer.found.histogram, "channels": layer.found.channels}
                for layer in self.layers
            ],
            "missing": [{"tensor": tensor, "why": why} for tensor, why in self.missing],
            "caveats": [*self.caveats],
        }

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n"

    def __str__(self) -> str:
        return _text(self)


def _row(layer: LayerComparison) -> dict[str, Any]:
    row = asdict(layer)
    del row["found"], row["end_to_end"]
    whole = layer.end_to_end
    return row | {
        "elements": layer.elements,
        "different": layer.different,
        "rate": layer.found.rate,
        "max_lsb": layer.max_lsb,
        "max_relative": _finite(layer.found.max_relative),
        "different_end_to_end": whole.different,
        "max_lsb_end_to_end": whole.max_lsb,
        "max_relative_end_to_end": _finite(whole.max_relative),
    }


def _finite(value: float | None) -> float | str | None:
    return value if value is None or math.isfinite(value) else str(value)


def _text(comparison: Comparison) -> str:
    """A line for each layer that differs, then the first divergent op and the totals."""
    differing = [layer for layer in comparison.layers if layer.different or layer.end_to_end.different]
    parts = [aligned(_HEADERS, [_cells(layer) for layer in differing], left=_HEADERS[:2])] if differing else []
    return "\n\n".join([*parts, "\n".join(_summary(comparison))])


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


def _summary(comparison: Comparison) -> list[str]:
    first, count = comparison.first, len(comparison.layers)
    who = f"{comparison.left} and {comparison.right}"
    lines: list[str] = []
    if first is None:
        lines.append(f"{who}: no difference in {comparison.elements:,} elements of {count} layers")
    else:
        lines.append(f"first divergent op: {shortened(first.name, 80)} ({first.op}){_why(first)}")
        apart = sum(layer.different > 0 for layer in comparison.layers)
        told = f"{comparison.different:,} of {comparison.elements:,} elements differ, in {apart} of {count} layers"
        whole = sum(layer.end_to_end.different > 0 for layer in comparison.layers)
        end = f"; end to end {comparison.different_end_to_end:,}, in {whole}" if comparison.fed else ""
        fed = f", each op fed with the values of {_other(comparison)}" if comparison.fed else ""
        lines.append(f"{who}: {told}{fed}{end}")
    lines[-1] += f"; {comparison.samples} sample{'s' * (comparison.samples != 1)}"
    if comparison.missing:
        shown = "; ".join(f"{shortened(tensor, 60)}: {why}" for tensor, why in comparison.missing[:_MANY])
        more = len(comparison.missing) - _MANY
        lines.append(
            f"not compared: {len(comparison.missing)} values ({shown}{f'; and {more} more' if more > 0 else ''})"
        )
    return [*lines, *(comparison.caveats if first is not None else ())]


def _why(first: LayerComparison) -> str:
    if first.roundings is None:
        return ""
    left, right = first.roundings
    return f": {left} against {right}" if left != right else f": both round as {left}"


def _other(comparison: Comparison) -> str:
    return comparison.right if comparison.fed == "left" else comparison.left
