"""The rate of differences that theory predicts for one layer: its multipliers, and how its outputs are spread."""

import numpy as np
from numpy.typing import NDArray

from qbench.ir.dtypes import integer_range
from qbench.ir.graph import Graph, Node
from qbench.ir.op import Array, is_op
from qbench.ops.float.activation import Clip
from qbench.ops.qnn.requantize import ratio
from qbench.parity.graph_runner import Segment, requantizes
from qbench.parity.theory import Mode, disagreement


def requantize_of(segment: Segment) -> Node | None:
    """The one requantize of a segment."""
    found = [node for node in segment.nodes if requantizes(node)]
    return found[0] if len(found) == 1 else None


class Expected:
    """Looks at the integers of one layer and tells how many of them should differ.

    What saturates is the same under every rounding; so only outputs between the bounds count.

    Parameters
    ----------
    graph
        Where the layer is.
    segment
        The layer; it has one requantize.
    requantize
        That one.
    modes
        How the two sides round.
    axis
        Of the channels in the layer's output.
    """

    def __init__(
        self, graph: Graph, segment: Segment, requantize: Node, modes: tuple[Mode, Mode], axis: int | None
    ) -> None:
        source, target = graph.qparams[requantize.inputs[0]], graph.qparams[requantize.outputs[0]]
        kind = graph.types[segment.nodes[-1].outputs[0]]
        self._modes, self._axis, self._zero_point = modes, axis, target.zero_points[0]
        self._real = ratio(source, target, kind.rank).reshape(-1)
        scales = np.asarray(source.scales, np.float32) / np.asarray(target.scales, np.float32)
        self._rounded = scales.astype(np.float64).reshape(-1)
        bounds = [integer_range(target.dtype)]
        bounds += [(_bound(node, "a_min"), _bound(node, "a_max")) for node in segment.nodes if is_op(node, Clip)]
        self._low, self._high = max(low for low, _ in bounds), min(high for _, high in bounds)
        self._elements = 0
        self._sums: NDArray[np.float64] = np.zeros((3, 1))

    def add(self, values: Array) -> None:
        """Look at more of the layer's outputs."""
        integers = values.astype(np.int64)
        inside = (integers > self._low) & (integers < self._high)
        distance = integers - self._zero_point
        sums = [inside, inside & (distance < 0), np.where(inside, np.abs(distance), 0)]
        others = tuple(i for i in range(values.ndim) if i != self._axis)
        self._sums = self._sums + np.array([np.atleast_1d(part.sum(axis=others)) for part in sums], np.float64)
        self._elements += values.size

    def rate(self) -> float:
        """The fraction of all outputs that theory says will differ."""
        inside, negative, magnitude = self._sums
        if len(self._real) not in (1, len(inside)):  # channels lie along another axis: only the whole is known
            inside, negative, magnitude = (
                np.full(len(self._real), part.sum() / len(self._real)) for part in self._sums
            )
        total = 0.0
        for channel, count in enumerate(inside):
            at = channel if len(self._real) > 1 else 0
            if count:
                total += count * disagreement(
                    *self._modes,
                    float(self._real[at]),
                    negative=float(negative[channel] / count),
                    magnitude=float(magnitude[channel] / count),
                    rounded=float(self._rounded[at]),
                )
        return total / self._elements if self._elements else 0.0


def _bound(node: Node, name: str) -> int:
    bound = node.attrs[name]
    assert isinstance(bound, (int, float))
    return int(np.clip(bound, -(2**62), 2**62))
