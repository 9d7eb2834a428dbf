"""Where values become integers: a ``qnn.fake_quantize`` at every point of a graph whose nodes have been decided on."""

import dataclasses
from collections.abc import Hashable, Iterable, Mapping

from qbench.ir.batch import batch_symbol
from qbench.ir.build import rebuild
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Attr, Graph, Node
from qbench.ir.memo import Memo
from qbench.ir.op import QuantRule, bind, is_op
from qbench.ir.sizes import size_of
from qbench.ops.float.elementwise import Multiply
from qbench.ops.qnn.border import FakeQuantize
from qbench.ops.qnn.dynamic import DynamicFakeQuantize
from qbench.passes.groups import Group, integer_operands, multiply_axis, rule_of
from qbench.passes.rewrite import Rewriter
from qbench.quant.specs import Mode


class Insertion:
    """Points put into a graph, group by group.

    Parameters
    ----------
    graph
        Prepared.
    groups
        All its fused groups.
    reasons
        The nodes that stay in float, each with its reason.
    narrow
        Whether weights leave the smallest integer of their type unused.
    wide
        Tensors that get 16 bits, with the reason.
    modes
        Nodes that stay in float and whose weights are stored as integers all the same, by mode.
    """

    def __init__(
        self,
        graph: Graph,
        groups: tuple[Group, ...],
        reasons: Mapping[str, str],
        narrow: bool,
        wide: Mapping[str, str],
        modes: Mapping[str, Mode],
    ) -> None:
        self._graph, self._groups, self._reasons = graph, groups, reasons
        self._narrow, self._wide, self._modes = narrow, wide, modes
        self._names, self._batch = Rewriter(graph), batch_symbol(graph)
        self._stored = {name: _stored(graph.node(name)) for name in modes if name in reasons}
        self._moved = {value for group in groups if self._moves(group) for value in group.outputs}
        self._quantized: dict[str, str] = {}  # what integer nodes read in place of a value
        self._everywhere: dict[str, str] = {}  # what all nodes read in place of a value that integer nodes make
        self._by_range: dict[str, str] = {}  # what is rounded by the range of each run, by what it is made of
        self._nodes: list[Node] = []

    def annotated(self, memo: Memo, place: tuple[Hashable, ...]) -> Graph:
        """The graph with its points, and with the reason on every node that stays in float.

        Nodes that are as they were last time at this place of the memo are the same objects, whose types are known.
        """
        for group in self._groups:
            if group.head.name in self._reasons:
                for node in group.nodes:
                    self._float_node(node)
            else:
                self._integer_group(group)
        nodes = [memo.recall((*place, node.name), (node,), lambda node=node: node) for node in self._nodes]
        return rebuild(self._graph, nodes=nodes)

    def _float_node(self, node: Node) -> None:
        mode, read = self._modes.get(node.name), self._stored.get(node.name, ())
        if read and mode == "static":
            read = node.inputs[0], *read
        self._add_points(read)
        inputs = [
            self._quantized.get(value, value) if value in read else self._everywhere.get(value, value)
            for value in node.inputs
        ]
        if mode == "dynamic":
            inputs[0] = self._ranged(node.inputs[0], inputs[0])
        self._nodes.append(dataclasses.replace(node, inputs=tuple(inputs), reason=self._reasons[node.name]))

    def _integer_group(self, group: Group) -> None:
        operands = integer_operands(group.head)
        self._add_points(operands)
        inputs = tuple(self._quantized.get(name, name) if name in operands else name for name in group.head.inputs)
        members = [dataclasses.replace(group.head, inputs=inputs), *group.nodes[1:]]
        if not self._moves(group):
            value = group.outputs[0]
            raw = self._names.fresh(f"{value}.raw") if value in self._graph.outputs else value
            members[-1] = dataclasses.replace(members[-1], outputs=(raw,))
            members.append(self._fake(value, raw))
            self._everywhere[value] = self._quantized[value]
        self._nodes.extend(members)

    def _add_points(self, values: Iterable[str]) -> None:
        """Points of what is to be read as integers, where it has none yet."""
        new = [value for value in dict.fromkeys(values) if value not in self._quantized and value not in self._moved]
        self._nodes.extend(self._fake(value, value) for value in new)

    def _moves(self, group: Group) -> bool:
        """Whether the group only moves integers about, so that what it makes has the scale of what it reads."""
        return rule_of(group.head) == QuantRule.SAME and group.head.name not in self._reasons

    def _fake(self, value: str, raw: str) -> Node:
        """The point of a value, which is computed under the name `raw`."""
        graph = self._graph
        self._quantized[value] = value if raw != value else self._names.fresh(f"{value}.q")
        axis = self._channel_axis(value)
        attrs: dict[str, Attr] = {"tensor": value}
        attrs |= {"channel_axis": axis} if axis is not None else {}
        attrs |= {"narrow": True} if self._narrow and value in graph.constants else {}
        attrs |= {"wide": self._wide[value]} if value in self._wide else {}
        name, outputs = self._names.fresh(f"{value}.q"), (self._quantized[value],)
        return Node(name, FakeQuantize.name, (raw,), outputs, FrozenMap(attrs), self._sources(value))

    def _ranged(self, value: str, read: str) -> str:
        """What is read, rounded by the range of each run."""
        if read not in self._by_range:
            first = size_of(self._graph.types[value].shape[0])
            rows = first.replaced({self._batch: 1}).dim if self._batch in first.symbols else 0
            name, made = (self._names.fresh(f"{value}.by_range") for _ in range(2))
            attrs, sources = FrozenMap[str, Attr]({"rows": rows}), self._sources(value)
            self._nodes.append(Node(name, DynamicFakeQuantize.name, (read,), (made,), attrs, sources))
            self._by_range[read] = made
        return self._by_range[read]

    def _sources(self, value: str) -> tuple[str, ...]:
        producer = self._graph.producers.get(value)
        return producer.sources if producer else ()

    def _channel_axis(self, value: str) -> int | None:
        """The axis of a constant that scales may run along for all the nodes that read its integers."""
        if value not in self._graph.constants:
            return None
        axes = {
            _weight_axis(self._graph, node, value)
            for node in self._graph.consumers[value]
            if value in self._stored.get(node.name, ())
            or (node.name not in self._reasons and value in integer_operands(node))
        }
        return axes.pop() if len(axes) == 1 else None


def _stored(node: Node) -> tuple[str, ...]:
    """The operands of a float node that are stored as integers."""
    return tuple(node.inputs[index] for index in bind(node).stored)


def _weight_axis(graph: Graph, node: Node, value: str) -> int | None:
    if found := bind(node).stored:
        axis = next((axis for index, axis in found.items() if node.inputs[index] == value), None)
        return None if axis is None else axis % graph.types[value].rank
    axis = multiply_axis(graph, node) if is_op(node, Multiply) else None
    return None if axis is None else axis - (graph.types[node.output].rank - graph.types[value].rank)
