"""Nodes whose output is their input."""

from qbench.ir.graph import Node
from qbench.ir.op import is_op
from qbench.ops.float.elementwise import Binary
from qbench.ops.float.logic import Where
from qbench.passes.canonicalize.rule import with_scalar
from qbench.passes.rewrite import Rewriter


def remove_identity(rw: Rewriter, node: Node) -> bool:
    """Remove a node that gives back its first input, unless the name of a graph output would be lost."""
    data = _same_as(rw, node)
    if data is None or rw.types[data] != rw.types[node.output]:
        return False
    return data not in rw.constants and rw.bypass(node, data)


def remove_broadcast(rw: Rewriter, node: Node) -> bool:
    """Remove a broadcast that all of its readers would do by themselves, next to an operand of the full shape."""
    data, wide = node.inputs[0], rw.types[node.output].shape

    def spreads(reader: Node) -> bool:
        others = [rw.types[value].shape for value in reader.inputs if value != node.output]
        return is_op(reader, Binary, Where) and wide in others and rw.types[reader.output].shape == wide

    readers = rw.consumers(node.output)
    return bool(readers) and node.output not in rw.outputs and all(map(spreads, readers)) and rw.bypass(node, data)


def _same_as(rw: Rewriter, node: Node) -> str | None:
    op = rw.op(node)
    if isinstance(op, Binary):
        found = None if op.neutral is None else with_scalar(rw, node, commutes=op.commutes)
        return found[0] if found is not None and found[1] == op.neutral else None
    return node.inputs[0] if len(node.outputs) == 1 and op.identity else None
