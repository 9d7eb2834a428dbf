"""Lower qnn ops to integer ops: no scale is left, only zero points, mantissas, shifts and tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from qbench.ir.graph import Graph
from qbench.ir.memo import Memo
from qbench.ops.legal import legal

__all__ = ["LegalizePass"]


@dataclass(frozen=True)
class LegalizePass:
    """Replace each qnn op by the integer op that it stands for, with its parameters as named constants.

    Parameters
    ----------
    memo
        Of earlier runs.
    """

    name: ClassVar[str] = "legalize"
    memo: Memo = field(default_factory=Memo, repr=False, compare=False)

    def __call__(self, graph: Graph) -> Graph:
        """The integer graph; it computes what the realized one does, bit for bit."""
        return legal(graph, self.memo)
