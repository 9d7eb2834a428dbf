"""Quantized ops as the integer ops that they stand for: one node for one node, their parameters as constants."""

import dataclasses
import operator
from functools import partial
from typing import cast

from qbench.ir.build import rebuild
from qbench.ir.graph import Graph, Node
from qbench.ir.memo import Memo
from qbench.ir.names import claimed
from qbench.ir.op import OPS, bind
from qbench.ops.qnn.base import Lowered, QnnOp


def legal(graph: Graph, memo: Memo | None = None) -> Graph:
    """The graph with no quantized op left in it; it computes the same, bit for bit.

    Parameters
    ----------
    graph
        Any graph.
    memo
        Of earlier times.
    """
    memo = Memo() if memo is None else memo
    taken, constants = {*graph.types, *graph.by_name}, dict(graph.constants)
    nodes = list(graph.nodes)
    for index, node in enumerate(graph.nodes):
        declared = OPS.get(node.op)
        if declared is None or not issubclass(declared, QnnOp):
            continue
        op = cast("QnnOp", bind(node, graph.qparams))
        lowered = op.lowered(tuple(graph.types[value] for value in node.inputs))
        names: list[str] = []
        for operand, constant in lowered.constants.items():
            names.append(claimed(f"{node.name}.{operand}", taken))
            constants[names[-1]] = constant
        given = node, lowered, tuple(names)
        nodes[index] = memo.recall(("legal", node.name), given, partial(_integer_node, *given))
    return graph if all(map(operator.is_, nodes, graph.nodes)) else rebuild(graph, nodes=nodes, constants=constants)


def _integer_node(node: Node, lowered: Lowered, constants: tuple[str, ...]) -> Node:
    op = lowered.op
    attrs = op.given(**{name: getattr(op, name) for name in op.attributes()})
    return dataclasses.replace(node, op=op.name, inputs=node.inputs + constants, attrs=attrs)
