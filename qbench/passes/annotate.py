"""Decide which nodes run in integers and which tensors are therefore quantized; mark both in the graph."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from qbench.forms.scores import is_softmax, read_only_by
from qbench.forms.sums import denominator
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.memo import Memo
from qbench.ir.op import OPS, QuantRule, bind, is_op
from qbench.ops.moves import moved_from
from qbench.ops.products import is_layer
from qbench.ops.qnn.border import Dequantize, FakeQuantize, Quantize
from qbench.ops.qnn.dynamic import DynamicFakeQuantize
from qbench.ops.rules import OPEN_SIZE
from qbench.passes.groups import Group, find_groups, integer_operands, rule_of
from qbench.passes.insert_points import Insertion
from qbench.quant.points import Point
from qbench.quant.specs import Mode

_ONLY_FLOAT = "only float layers read it"
_MOST_AVERAGED = 2**44
"""Sums of 16-bit integers times more than this would not be safe in 64 bits."""


@dataclass(frozen=True)
class AnnotatePass:
    """Put a ``qnn.fake_quantize`` at every point, and a reason on every node that stays in float.

    Sums of products run in integers wherever they can. Other ops follow their neighbours: they run in integers if one
    of their inputs is there already, since going back and forth costs accuracy and time.

    Parameters
    ----------
    excluded
        Nodes that must stay in float, with the reason.
    narrow_weights
        Whether weights leave the smallest integer of their type unused.
    wide
        Tensors that 8 bits cannot hold, with the reason: what reads or makes them stays in float, but for layers with
        weights, which read them in 16 bits, and sums of products, which make them so. None: 8 bits are taken to hold
        everything.
    included
        Nodes that run in integers even so.
    modes
        Nodes that stay in float and whose weights are stored as integers all the same, by mode: where that is static,
        they read integers, too.
    """

    name: ClassVar[str] = "annotate"
    excluded: FrozenMap[str, str] = field(default_factory=FrozenMap[str, str])
    narrow_weights: bool = True
    wide: FrozenMap[str, str] | None = None
    included: frozenset[str] = frozenset()
    modes: FrozenMap[str, Mode] = field(default_factory=FrozenMap[str, Mode])

    def __call__(self, graph: Graph, memo: Memo | None = None) -> Graph:
        """The annotated graph; it computes what the prepared one does until qparams are bound to its points."""
        groups = find_groups(graph, self.excluded)
        too_wide = _with_moved(groups, self.wide or {})
        reasons = _float_reasons(graph, groups, self.excluded, None if self.wide is None else too_wide, self.included)
        layers = [group.head for group in groups if group.head.name not in reasons and is_layer(graph, group.head)]
        readers = [graph.node(name) for name, mode in self.modes.items() if mode == "static"]
        wide = {node.inputs[0]: too_wide[node.inputs[0]] for node in (*layers, *readers) if node.inputs[0] in too_wide}
        if self.wide is not None and _is_mixed(graph, reasons):
            sums = (group.outputs[0] for group in groups if rule_of(group.head) == QuantRule.MAC)
            only_float = reasons.keys() - {node.name for node in readers}
            wide |= {value: _ONLY_FLOAT for value in sums if _only_float_reads(graph, value, only_float)}
        return Insertion(graph, groups, reasons, self.narrow_weights, wide, self.modes).annotated(
            memo or Memo(), (self.name, bool(self.excluded), self.wide is None)
        )


def points(annotated: Graph) -> dict[str, Point]:
    """The points of an annotated graph, by the name of their float tensor, in execution order."""
    found: dict[str, Point] = {}
    source = _sources_of_scales(annotated)
    for node in annotated.nodes:
        if not is_op(node, FakeQuantize):
            continue
        tensor = str(node.attrs["tensor"])
        producer = annotated.producers.get(node.inputs[0])
        if node.inputs[0] not in annotated.constants:
            name, op = (producer.name, producer.op) if producer else (None, None)
            found[tensor] = Point(tensor, "activation", node.output, name, op, wide=str(node.attrs.get("wide", "")))
            continue
        readers = annotated.consumers[node.output]
        reader = readers[0]
        axis = node.attrs.get("channel_axis")
        data = next((source[value] for value in reader.inputs if value in source), None)
        found[tensor] = Point(
            tensor,
            "weight",
            node.output,
            reader.name,
            reader.op,
            axis if isinstance(axis, int) else None,
            data,
            _bias_after(annotated, reader),
            stored=all(reader.reason and not has_range(annotated, reader) for reader in readers),
        )
    return found


def has_range(annotated: Graph, node: Node) -> bool:
    """Whether a node reads data that are rounded by the range of each run."""
    return is_op(annotated.producers.get(node.inputs[0]), DynamicFakeQuantize)


def takes_integers(annotated: Graph, node: Node) -> bool:
    """Whether a node that stays in float has weights in 8 bits, and reads integers."""
    return OPS[node.op].reads_integers and is_op(annotated.producers.get(node.inputs[1]), FakeQuantize)


def quantized_value(graph: Graph, tensor: str) -> str | None:
    """The value that holds the integers of a float tensor in a realized or legalized graph; None where it is float."""
    if tensor in graph.qparams:
        return tensor
    producer = graph.producers.get(tensor)
    if producer is not None and is_op(producer, Dequantize):
        return producer.inputs[0]
    return next((node.output for node in graph.consumers.get(tensor, ()) if is_op(node, Quantize)), None)


def _float_reasons(
    graph: Graph,
    groups: tuple[Group, ...],
    excluded: Mapping[str, str],
    wide: Mapping[str, str] | None,
    included: frozenset[str],
) -> dict[str, str]:
    """The nodes that stay in float, each with its reason."""
    integer = {value for value, t in graph.input_types().items() if t.dtype == "float32"}
    reasons = dict[str, str]()
    before_softmax = _read_by(graph, is_softmax)
    before_float = set[str]() if wide is None else _read_by(graph, lambda node: _stays(node, included))
    for group in groups:
        reason = excluded.get(group.head.name) or _float_reason(graph, group.head, integer, included)
        if not reason and group.head.name in before_softmax:
            reason = "neighbour of float: only a softmax reads it"
        if not reason and group.head.name in before_float - included:
            reason = "neighbour of float: only float layers read it"
        if not reason and included.isdisjoint(node.name for node in group.nodes):
            reason = _too_wide(graph, group, wide or {})
        if reason:
            reasons[group.head.name] = reason
            reasons.update({n.name: f"neighbour of float: {n.inputs[0]} is float" for n in group.nodes[1:]})
        else:
            integer.update(group.outputs)
    wanted: set[str] = set()
    for group in reversed(groups):
        node = group.head
        if node.name in reasons:
            continue
        if rule_of(node) != QuantRule.SAME or wanted.intersection(node.outputs):
            wanted.update(node.inputs)
        elif any(value in graph.inputs for value in moved_from(graph, node.outputs[0])):
            reasons[node.name] = "neighbour of float: nothing after it runs in integers"
    return reasons


def _with_moved(groups: tuple[Group, ...], wide: Mapping[str, str]) -> dict[str, str]:
    """Tensors that 8 bits cannot hold, and what is only moved of them."""
    found = dict(wide)
    for group in groups:
        if rule_of(group.head) == QuantRule.SAME and group.head.inputs[0] in found:
            found.update(dict.fromkeys(group.outputs, found[group.head.inputs[0]]))
    return found


def _too_wide(graph: Graph, group: Group, wide: Mapping[str, str]) -> str:
    """Why 8 bits are too few for what a group reads, or makes without a wide accumulator; empty where they are not."""
    if is_layer(graph, group.head):
        return ""  # it reads 16 bits at twice the price of 8, and a float layer takes four times as long
    made = () if rule_of(group.head) == QuantRule.MAC else group.outputs
    return next((wide[value] for value in (*integer_operands(group.head), *made) if value in wide), "")


def _only_float_reads(graph: Graph, value: str, reasons: Collection[str]) -> bool:
    """Whether all that reads a value, straight or moved, stays in float: then nothing is won by few bits."""
    return all(
        reader.name in reasons
        or (
            rule_of(reader) == QuantRule.SAME
            and all(_only_float_reads(graph, name, reasons) for name in reader.outputs)
        )
        for reader in graph.consumers[value]
    )


def _is_mixed(graph: Graph, reasons: Mapping[str, str]) -> bool:
    """Whether more stays in float by default than a softmax."""
    return any(reason.startswith("default") and not is_softmax(graph.node(name)) for name, reason in reasons.items())


def _read_by(graph: Graph, is_wanted: Callable[[Node], bool]) -> set[str]:
    """The elementwise nodes that only certain others read, straight or through others of them.

    Those before a softmax scale scores, or hide some with a number so large that no 8 bits could tell the others apart.
    Sums that only normalizations read, and further such sums, are a residual stream.
    """
    values = read_only_by(graph, is_wanted)
    return {n.name for n in graph.nodes if n.outputs[0] in values and rule_of(n) == QuantRule.ELEMENTWISE}


def _stays(node: Node, included: frozenset[str]) -> bool:
    """Whether its op runs in float, unless a config asks for what else it has."""
    return rule_of(node) == QuantRule.FLOAT and not (OPS[node.op].by_choice and node.name in included)


def _float_reason(graph: Graph, node: Node, integer: set[str], included: frozenset[str]) -> str:
    """Why a node cannot run in integers; empty where it can."""
    rule, op = rule_of(node), OPS[node.op]
    if _stays(node, included):
        return op.float_reason
    if rule == QuantRule.INTERNAL:
        return f"unsupported: {node.op} stands in a float graph"
    reals = [value for value in node.inputs if value not in graph.constants]
    if any(graph.types[value].dtype != "float32" for value in (*node.inputs, *node.outputs)):
        return "unsupported: its tensors are not float32"
    if not reals:
        return "unsupported: all its inputs are constants"
    if rule != QuantRule.MAC and not integer.intersection(reals):
        return f"neighbour of float: {reals[0]} is float"
    return _special_reason(graph, node)


def _special_reason(graph: Graph, node: Node) -> str:
    """Limits of single ops."""
    obstacle = bind(node).obstacle(*(graph.types[value] for value in node.inputs))
    if obstacle:
        return obstacle
    shape = graph.types[node.inputs[0]].shape
    if rule_of(node) == QuantRule.AVERAGE:
        count = denominator(bind(node), shape)
        if count is None:
            return f"unsupported: an average over {OPEN_SIZE}"
        if isinstance(count, int) and count > _MOST_AVERAGED:
            return "unsupported: an average over windows of too many sizes to have one divisor"
    operands = integer_operands(node)
    varying = [value for value in node.inputs if value not in operands and value not in graph.constants]
    return f"unsupported: {varying[0]} is not a constant" if varying else ""


def _sources_of_scales(annotated: Graph) -> dict[str, str]:
    """The activation tensor whose scale each integer value has."""
    found: dict[str, str] = {}
    for node in annotated.nodes:
        if is_op(node, FakeQuantize) and node.inputs[0] not in annotated.constants:
            found[node.output] = str(node.attrs["tensor"])
        elif node.inputs and node.inputs[0] in found and rule_of(node) == QuantRule.SAME and not node.reason:
            found.update(dict.fromkeys(node.outputs, found[node.inputs[0]]))
    return found


def _bias_after(annotated: Graph, node: Node) -> str | None:
    """The constant that a bias_add right after a node adds."""
    readers = annotated.consumers[node.outputs[0]]
    is_bias = len(readers) == 1 and rule_of(readers[0]) == QuantRule.BIAS and not readers[0].reason
    return readers[0].inputs[1] if is_bias else None
