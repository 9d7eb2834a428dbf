"""Fused groups: the runs of nodes that share one accumulator and one rounding.

A convolution, the bias added to it and the relu after it become one integer step: only what comes out of the last of
them is rounded to few bits, so only that tensor has a range, a histogram and a scale.
"""

from collections.abc import Collection
from dataclasses import dataclass

from qbench.errors import GraphError
from qbench.forms import absorbs_bias, absorbs_clamps
from qbench.ir.graph import Graph, Node
from qbench.ir.memo import Memo
from qbench.ir.op import OPS, QuantRule, Role, bind, is_op
from qbench.ops.float.elementwise import Multiply


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes fused into one integer step.

    Parameters
    ----------
    nodes
        The head (convolution, add...), then a bias_add and a relu or clip where they follow it alone.
    """

    nodes: tuple[Node, ...]

    @property
    def head(self) -> Node:
        """The node that decides how the group is quantized."""
        return self.nodes[0]

    @property
    def outputs(self) -> tuple[str, ...]:
        """The values that leave the group; one, but for split."""
        return self.nodes[-1].outputs


def rule_of(node: Node) -> QuantRule:
    """The quantization rule of a node's op."""
    if node.op not in OPS:
        raise GraphError(f"unknown op {node.op}")
    return OPS[node.op].rule


def integer_operands(node: Node) -> tuple[str, ...]:
    """The inputs that an integer node reads as integers of their own scale."""
    role = OPS[node.op].role
    read = (value for index, value in enumerate(node.inputs) if role(index) in (Role.DATA, Role.WEIGHT))
    return tuple(dict.fromkeys(read))


def find_groups(graph: Graph, excluded: Collection[str] = ()) -> tuple[Group, ...]:
    """Every node in exactly one group, in execution order.

    Parameters
    ----------
    graph
        Prepared or annotated.
    excluded
        Names of nodes that must stand alone, such as those kept in float.
    """
    groups: list[Group] = []
    taken: set[str] = set()
    for node in graph.nodes:
        if node.name in taken:
            continue
        members = [node]
        if node.name not in excluded:
            _extend(graph, members, excluded)
        taken.update(member.name for member in members)
        groups.append(Group(tuple(members)))
    return tuple(groups)


def remembered_groups(annotated: Graph, memo: Memo) -> tuple[Group, ...]:
    """The groups of an annotated graph: nodes with a reason, which stay in float, stand alone."""
    given = annotated.nodes, annotated.inputs, annotated.outputs, annotated.types
    return memo.recall(
        "groups", given, lambda: find_groups(annotated, {node.name for node in annotated.nodes if node.reason})
    )


def group_of(graph: Graph) -> dict[str, str]:
    """The output tensor of the group that each node is in, by node name (the first one of a split)."""
    return {node.name: group.outputs[0] for group in find_groups(graph) for node in group.nodes}


def _extend(graph: Graph, members: list[Node], excluded: Collection[str]) -> None:
    if rule_of(members[0]) == QuantRule.FLOAT:
        return
    if absorbs_bias(members[0].op):
        follower = _follower(graph, members[-1], excluded)
        if follower is not None and _is_bias_of(graph, follower, members[0]):
            members.append(follower)
    if absorbs_clamps(members[0].op):
        follower = _follower(graph, members[-1], excluded)
        if follower is not None and rule_of(follower) == QuantRule.CLAMP:
            members.append(follower)


def _follower(graph: Graph, node: Node, excluded: Collection[str]) -> Node | None:
    """The one node that reads the output of `node`, where nothing else needs it."""
    if len(node.outputs) != 1 or node.output in graph.outputs:
        return None
    readers = graph.consumers[node.output]
    if len(readers) != 1 or readers[0].name in excluded or readers[0].inputs[0] != node.output:
        return None
    return readers[0]


def _is_bias_of(graph: Graph, node: Node, head: Node) -> bool:
    if rule_of(node) != QuantRule.BIAS or node.inputs[1] not in graph.constants:
        return False
    rank = graph.types[node.output].rank
    axis = bind(node).channel_axis_of("output", rank)
    if is_op(head, Multiply):
        return multiply_axis(graph, head) in (axis, None)
    return axis == bind(head).channel_axis_of("output", rank)


def multiply_axis(graph: Graph, node: Node) -> int | None:
    """The axis of the result along which the constant factor of a multiply varies; None for one factor for all."""
    constant = next((value for value in node.inputs if value in graph.constants), None)
    if constant is None:
        return None
    shape, rank = graph.constants[constant].shape, graph.types[node.output].rank
    varying = [axis for axis, size in enumerate(shape) if size != 1]
    return varying[0] + rank - len(shape) if len(varying) == 1 else None
