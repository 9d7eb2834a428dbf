"""How far values may reach beyond what a few samples say of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from qbench.calibration.statistics import Statistics
from qbench.ir.graph import Graph
from qbench.ir.op import bind
from qbench.quant.points import Point

_FEW, _MOST, _ALONE = 16, 2.0, 2.0
"""Of fewer samples: further by `_ALONE` over their number, up to `_MOST` times as far. The next sample is the largest
of all with a chance of one in as many and itself, and what is clipped costs more than a bit."""


@dataclass(frozen=True)
class Reach:
    """How many times as far as they were seen values may reach, why, and where they end.

    Parameters
    ----------
    times, reason
        1 and empty where samples are enough, or their number is not known.
    lowest, highest
        What the tensor's op never goes beyond.
    """

    times: float = 1.0
    reason: str = ""
    lowest: float = -math.inf
    highest: float = math.inf

    @classmethod
    def of(cls, point: Point, graph: Graph, seen: Statistics | None) -> Reach:
        """That of a point of an annotated graph; what was seen of it tells how many samples there were."""
        size = graph.types[point.tensor].shape[1:]
        fixed = [length for length in size if isinstance(length, int)]
        samples = 0 if seen is None or len(fixed) < len(size) else seen.count // max(1, math.prod(fixed))
        if not 0 < samples < _FEW:
            return cls()
        times = min(1 + _ALONE / samples, _MOST)
        reason = f"reaches {times:.3g} times as far, since {samples} sample{'s say' if samples > 1 else ' says'} little"
        if point.node is None:
            return cls(times, reason)
        op = bind(graph.node(point.node))
        return cls(times, reason, *op.within)

    def widened(self, low: float, high: float) -> tuple[float, float]:
        """A range that reaches as far."""
        return max(low * self.times, self.lowest), min(high * self.times, self.highest)
