"""Turn an annotated graph with qparams into one of qnn ops: integers with scales, floats where a reason says so."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Graph
from qbench.passes.annotate import FAKE
from qbench.passes.emitter import Emitter
from qbench.passes.groups import find_groups
from qbench.passes.realize_group import realize_group
from qbench.quant.rounding import Rounding

__all__ = ["RealizePass"]


@dataclass(frozen=True)
class RealizePass:
    """Replace fake-quantized float ops by qnn ops on integers.

    Parameters
    ----------
    rounding
        Of every requantize and add.
    overrides
        Another rounding for single nodes; one for any node of a fused group holds for the group.
    """

    name: ClassVar[str] = "realize"
    rounding: Rounding = "tflite_single"
    overrides: FrozenMap[str, Rounding] = field(default_factory=FrozenMap[str, Rounding])

    def __call__(self, graph: Graph) -> Graph:
        """The qnn graph; GraphError where a point has no qparams."""
        emitter = Emitter(graph)
        for group in find_groups(graph, {node.name for node in graph.nodes if node.reason}):
            if group.head.op == FAKE:
                emitter.point(group.head)
            elif group.head.reason:
                emitter.float_node(group.head)
            else:
                chosen: list[Rounding] = [
                    self.overrides[node.name] for node in group.nodes if node.name in self.overrides
                ]
                realize_group(emitter, group, chosen[0] if chosen else self.rounding)
        return emitter.finish()
