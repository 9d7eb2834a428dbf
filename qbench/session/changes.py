"""What tuning has changed: in the config, in the encodings, in the integer graph."""

from dataclasses import dataclass
from typing import Any

from qbench.errors import shown
from qbench.ir.diff import GraphDiff
from qbench.ir.diff import diff as graph_diff
from qbench.quant.config import QuantConfig
from qbench.quant.config_checks import diff as config_diff
from qbench.quant.encodings import Encoding
from qbench.quantize.quantized import Quantized


@dataclass(frozen=True)
class SessionDiff:
    """Two states of a session.

    Parameters
    ----------
    config
        (path, old value, new value) for each setting that differs.
    encodings
        Old and new encoding by tensor, for those that differ; None on a side where it is not quantized.
    graph
        The two integer graphs compared. None, and no encodings, before statistics were collected.
    """

    config: tuple[tuple[str, Any, Any], ...]
    encodings: dict[str, tuple[Encoding | None, Encoding | None]]
    graph: GraphDiff | None

    def __str__(self) -> str:
        if not self.config:
            return "nothing changed"
        lines = ["config:"]
        lines += [f"  {path}: {_said(old)} -> {_said(new)}" for path, old, new in self.config]
        if self.encodings:
            lines.append("encodings:")
            lines += [f"  {shown(name)}: {_short(old)} -> {_short(new)}" for name, (old, new) in self.encodings.items()]
        if self.graph is not None:
            lines += ["integer graph:", str(self.graph).rstrip()]
        return "\n".join(lines)


def session_diff(before: QuantConfig, after: QuantConfig, quantized: tuple[Quantized, Quantized] | None) -> SessionDiff:
    """Compare two configs and, where they are given, what they lead to."""
    config = tuple(config_diff(before, after))
    if quantized is None:
        return SessionDiff(config, {}, None)
    old, new = (dict(one.encodings) for one in quantized)
    changed = {
        name: (old.get(name), new.get(name)) for name in dict.fromkeys([*old, *new]) if old.get(name) != new.get(name)
    }
    return SessionDiff(config, changed, graph_diff(quantized[0].graph, quantized[1].graph))


def _said(value: Any) -> str:
    return "(not said)" if value is None else repr(value)


def _short(encoding: Encoding | None) -> str:
    if encoding is None:
        return "float"
    q = encoding.qparams
    scale = f"{q.scales[0]:.6g}" if q.axis is None else f"{min(q.scales):.6g}..{max(q.scales):.6g}"
    return f"{q.dtype} scale {scale} zero_point {q.zero_points[0]} ({encoding.reason})"
