"""Lower qnn ops to integer ops: no scale is left, only zero points, mantissas, shifts and tables."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from qbench.forms.recurrences import with_stored_recurrences
from qbench.ir.build import rebuild
from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph
from qbench.ir.memo import Memo
from qbench.ir.op import bind, is_op
from qbench.ops.legal import legal
from qbench.ops.qnn.border import Dequantize
from qbench.passes.pipeline import Remembering


@dataclass(frozen=True)
class LegalizePass(Remembering):
    """Replace each qnn op by the integer op that it stands for, with its parameters as named constants.

    Weights of float ops that are stored as integers become real, but for those of recurrent layers.
    """

    name: ClassVar[str] = "legalize"

    def __call__(self, graph: Graph, memo: Memo | None = None) -> Graph:
        """The integer graph; it computes what the realized one does, bit for bit where that is in integers."""
        memo = memo or Memo()
        return legal(self._with_real_weights(with_stored_recurrences(graph, memo), memo), memo)

    def _with_real_weights(self, graph: Graph, memo: Memo) -> Graph:
        found: dict[str, Constant] = {}
        for node in graph.nodes:
            if is_op(node, Dequantize) and node.inputs[0] in graph.constants and node.output not in graph.outputs:
                given = graph.constants[node.inputs[0]], bind(node, graph.qparams)
                found[node.output] = memo.recall((self.name, node.name), given, partial(_real, *given))
        if not found:
            return graph
        nodes = [node for node in graph.nodes if found.keys().isdisjoint(node.outputs)]
        return rebuild(graph, nodes=nodes, constants={**graph.constants, **found})


def _real(constant: Constant, op: Dequantize) -> Constant:
    return Constant(op.compute(constant.array))
