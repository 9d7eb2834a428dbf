"""What a rewriting rule is, and what several of them need."""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from qbench.ir.dtypes import is_float
from qbench.ir.graph import Attr, Node
from qbench.ir.op import Op, is_op
from qbench.passes.rewrite import Rewriter, attrs, joined_sources

Rule = Callable[[Rewriter, Node], bool]
"""Rewrites the graph around one node if it can; returns whether it did."""

Rules = dict[str, list[Rule]]
"""The rules to try at a node, in order, by its op."""

FLOAT_MAX = float(np.finfo(np.float32).max)
"""Exporters write this, or infinity, for a bound that does not bound."""


def by_op(ops_by_rule: dict[Rule, Iterable[str | type[Op]]]) -> Rules:
    """Rules by the ops of the nodes that each starts from."""
    rules: Rules = {}
    for rule, ops in ops_by_rule.items():
        for op in ops:
            rules.setdefault(op if isinstance(op, str) else op.name, []).append(rule)
    return rules


def apply_rules(rw: Rewriter, rules: Rules) -> None:
    """Rewrite until no rule applies."""
    while sum(_apply(rw, rules, name) for name in [node.name for node in rw]):
        pass


def _apply(rw: Rewriter, rules: Rules, name: str) -> bool:
    """Whether a rule was applied to the node of that name, if there still is one."""
    node = rw.find(name)
    return node is not None and any(rule(rw, node) for rule in rules.get(node.op, ()))


def scalar(rw: Rewriter, value: str) -> float | None:
    """The number that all elements of a float constant share; None where they differ or `value` is no such constant."""
    array = rw.array(value)
    if array is None or array.size == 0 or not is_float(rw.types[value].dtype):
        return None
    first = array.reshape(-1)[0]
    return float(first) if array.size == 1 or np.all(array == first) else None


def with_scalar(rw: Rewriter, node: Node, *, commutes: bool = True) -> tuple[str, float] | None:
    """A binary node's tensor operand and its constant number, where the result has the type of the tensor.

    The number is the right operand, or either one where the op commutes.
    """
    lhs, rhs = node.inputs
    for data, other in ((lhs, rhs), (rhs, lhs)) if commutes else ((lhs, rhs),):
        number = scalar(rw, other)
        if number is not None and data not in rw.constants and rw.types[data] == rw.types[node.output]:
            return data, number
    return None


def fuse(rw: Rewriter, nodes: tuple[Node, ...], op: str, inputs: tuple[str, ...], **values: Attr) -> bool:
    """Replace nodes by one of another op, with the last one's name and output and the sources of all. Returns True."""
    last = nodes[-1]
    sources = joined_sources(*nodes)
    rw.replace(nodes, (dataclasses.replace(last, op=op, inputs=inputs, attrs=attrs(values), sources=sources),))
    return True


def before(rw: Rewriter, node: Node, *kinds: type[Op]) -> Node | None:
    """The node that makes the first input, if it is of one of these ops and its output is read here only, once."""
    producer = rw.producer(node.inputs[0])
    if not is_op(producer, *kinds) or rw.sole_consumer(node.inputs[0]) != node:
        return None
    return producer if node.inputs.count(node.inputs[0]) == 1 else None


def values(rw: Rewriter, node: Node, *keys: str) -> tuple[Any, ...]:
    """Several attributes of a node, the op's defaults where the node does not give them."""
    op = rw.op(node)
    return tuple(getattr(op, key) for key in keys)
