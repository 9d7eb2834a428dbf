"""Lower qnn ops to integer ops: no scale is left, only zero points, mantissas, shifts and tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from qbench.ir.build import rebuild
from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph
from qbench.ir.memo import Memo
from qbench.ir.op import bind, is_op
from qbench.ops.legal import legal
from qbench.ops.qnn.border import Dequantize

__all__ = ["LegalizePass"]


@dataclass(frozen=True)
class LegalizePass:
    """Replace each qnn op by the integer op that it stands for, with its parameters as named constants.

    Weights of float ops that are stored as integers become real.

    Parameters
    ----------
    memo
        Of earlier runs.
    """

    name: ClassVar[str] = "legalize"
    memo: Memo = field(default_factory=Memo, repr=False, compare=False)

    def __call__(self, graph: Graph) -> Graph:
        """The integer graph; it computes what the realized one does, bit for bit."""
        return legal(self._with_real_weights(graph), self.memo)

    def _with_real_weights(self, graph: Graph) -> Graph:
        found: dict[str, Constant] = {}
        for node in graph.nodes:
            if is_op(node, Dequantize) and node.inputs[0] in graph.constants and node.output not in graph.outputs:
                given = graph.constants[node.inputs[0]], bind(node, graph.qparams)
                found[node.output] = self.memo.recall((self.name, node.name), given, partial(_real, *given))
        if not found:
            return graph
        nodes = [node for node in graph.nodes if found.keys().isdisjoint(node.outputs)]
        return rebuild(graph, nodes=nodes, constants={**graph.constants, **found})


def _real(constant: Constant, op: Dequantize) -> Constant:
    return Constant(op.compute(constant.array))
