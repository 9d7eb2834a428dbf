"""Infer every type again from the inputs and the op declarations."""

from dataclasses import dataclass
from typing import ClassVar

from qbench.ir.build import rebuild
from qbench.ir.graph import Graph


@dataclass(frozen=True)
class InferTypesPass:
    """Types, order of nodes and used constants as the op declarations have them; GraphError where they do not fit."""

    name: ClassVar[str] = "infer-types"

    def __call__(self, graph: Graph) -> Graph:
        result = rebuild(graph)
        return graph if result == graph else result
