"""Lower qnn ops to integer ops: no scale is left, only zero points, mantissas, shifts and tables."""

from __future__ import annotations

import dataclasses
import operator
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from qbench.ir.build import rebuild
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Attr, Graph, Node
from qbench.ir.memo import Memo
from qbench.ir.names import fresh
from qbench.ir.op import Op, bind
from qbench.ops.qnn_base import Lowered, QnnOp

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
        taken, constants = {*graph.types, *graph.by_name}, dict(graph.constants)
        nodes = list(graph.nodes)
        for index, node in enumerate(graph.nodes):
            op = bind(node, graph.qparams)
            if not isinstance(op, QnnOp):
                continue
            lowered = op.lowered(tuple(graph.types[value] for value in node.inputs))
            names: list[str] = []
            for operand, constant in lowered.constants.items():
                names.append(fresh(f"{node.name}.{operand}", taken))
                taken.add(names[-1])
                constants[names[-1]] = constant
            given = node, lowered, tuple(names)
            nodes[index] = self.memo.recall((self.name, node.name), given, partial(_integer_node, *given))
        return graph if all(map(operator.is_, nodes, graph.nodes)) else rebuild(graph, nodes=nodes, constants=constants)


def _integer_node(node: Node, lowered: Lowered, constants: tuple[str, ...]) -> Node:
    op = lowered.op
    return dataclasses.replace(node, op=op.name, inputs=node.inputs + constants, attrs=_attrs(op))


def _attrs(op: Op) -> FrozenMap[str, Attr]:
    """The attributes of an op that differ from their defaults."""
    values = {name: (getattr(op, name), field.default) for name, field in type(op).attributes().items()}
    return FrozenMap({name: value for name, (value, default) in values.items() if value != default})
