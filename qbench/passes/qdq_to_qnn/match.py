"""What stands around a float op between dequantize and quantize: its operands, what is fused behind it, its targets."""

from dataclasses import dataclass
from functools import cached_property

from qbench.forms import Arithmetic, Bias, Operand, Site, absorbs_bias, absorbs_clamps
from qbench.ir.graph import Node
from qbench.ir.op import OPS, QuantRule
from qbench.passes.rewrite import Rewriter
from qbench.quant.arithmetic import dequantize


@dataclass(frozen=True, eq=False)
class Match:
    """Nodes of the graph that one form stands for.

    Parameters
    ----------
    head, bias, clamps
        The float op, and what is fused behind it.
    targets
        The quantize nodes of the result: of its only output, where nothing else reads that.
    site
        The same without names.
    """

    head: Node
    bias: Node | None
    clamps: tuple[Node, ...]
    targets: tuple[Node, ...]
    site: Site

    @cached_property
    def members(self) -> tuple[Node, ...]:
        """The float nodes."""
        return (self.head, *([self.bias] if self.bias is not None else []), *self.clamps)


def match(rw: Rewriter, head: Node, arithmetic: Arithmetic) -> Match:
    """Look at a float node."""
    operands = tuple(_operand(rw, value) for value in head.inputs)
    bias = _follower(rw, head, QuantRule.BIAS) if absorbs_bias(head.op) else None
    adding = head if OPS[head.op].rule == QuantRule.BIAS else bias
    stored = None if adding is None else _operand(rw, adding.inputs[1])
    if stored is None or stored.array is None:
        adding = bias = None
    clamps = _clamps(rw, bias or head) if absorbs_clamps(head.op) else ()
    own = rw.qparams.get(head.outputs[0])  # of a quantize node, which is its own target
    targets = () if own is not None else _quantizes(rw, clamps[-1] if clamps else bias or head)
    if not targets:
        clamps = ()
    site = Site(
        head,
        operands,
        rw.types[head.outputs[0]].rank,
        tuple(rw.qparams[target.output] for target in targets) if own is None else (own,),
        arithmetic,
        None if adding is None or stored is None else _bias(adding, stored),
        clamps,
    )
    return Match(head, bias, clamps, targets, site)


def integers_behind(rw: Rewriter, value: str) -> str | None:
    """The integers that a value of real numbers is dequantized from; None for any other."""
    producer = rw.producer(value)
    return producer.inputs[0] if producer is not None and producer.op == "qnn.dequantize" else None


def _operand(rw: Rewriter, value: str) -> Operand:
    integers = integers_behind(rw, value)
    held = value if integers is None else integers
    return Operand(value, rw.types[held], None if integers is None else rw.qparams[integers], rw.array(held))


def _bias(node: Node, stored: Operand) -> Bias:
    assert stored.array is not None
    attrs = tuple(node.attrs.items())
    if stored.q is None:
        return Bias(stored.array, attrs=attrs)
    return Bias(dequantize(stored.array, stored.q), stored.array, stored.q, attrs)


def _follower(rw: Rewriter, node: Node, rule: QuantRule) -> Node | None:
    """The node of a rule that alone reads what a node makes, as its first operand."""
    reader = rw.sole_consumer(node.output) if len(node.outputs) == 1 else None
    fits = reader is not None and OPS[reader.op].rule == rule and reader.inputs[0] == node.output
    return reader if fits else None


def _clamps(rw: Rewriter, node: Node) -> tuple[Node, ...]:
    found: list[Node] = []
    while (reader := _follower(rw, node, QuantRule.CLAMP)) is not None:
        found.append(reader)
        node = reader
    return tuple(found)


def _quantizes(rw: Rewriter, node: Node) -> tuple[Node, ...]:
    """The nodes that quantize what a node makes, where nothing else reads it; else none."""
    value, readers = node.outputs[0], rw.consumers(node.outputs[0])
    alone = value not in rw.outputs and all(reader.op == "qnn.quantize" for reader in readers)
    return readers if alone and all(rw.qparams[reader.output].axis is None for reader in readers) else ()
