"""Lower qnn ops to integer ops: no scale is left, only zero points, mantissas, shifts and tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Attr, Graph
from qbench.ir.op import Op, bind
from qbench.ops.qnn_base import QnnOp
from qbench.passes.rewrite import Rewriter

__all__ = ["LegalizePass"]


@dataclass(frozen=True)
class LegalizePass:
    """Replace each qnn op by the integer op that it stands for, with its parameters as named constants."""

    name: ClassVar[str] = "legalize"

    def __call__(self, graph: Graph) -> Graph:
        """The integer graph; it computes what the realized one does, bit for bit."""
        rewriter = Rewriter(graph)
        for node in graph.nodes:
            op = bind(node, graph.qparams)
            if not isinstance(op, QnnOp):
                continue
            lowered = op.lower(*(graph.types[value] for value in node.inputs))
            constants = tuple(
                rewriter.constant(f"{node.name}.{operand}", array) for operand, array in lowered.constants.items()
            )
            rewriter.update(node, op=lowered.op.name, inputs=node.inputs + constants, attrs=_attrs(lowered.op))
        return rewriter.finish()


def _attrs(op: Op) -> FrozenMap[str, Attr]:
    """The attributes of an op that differ from their defaults."""
    values = {name: (getattr(op, name), field.default) for name, field in type(op).attributes().items()}
    return FrozenMap({name: value for name, (value, default) in values.items() if value != default})
