"""Activation functions that an exporter wrote as several ops, recognized by what they compute.

Exporters write gelu or hard-swish in a dozen orders (x * (0.5 * (1 + erf)), (0.5 * x) * (1 + erf), with a division or
with a product...). Instead of a pattern for each, the few ops around an erf, tanh, sigmoid or clip are evaluated on
sample points, by their own NumPy meaning, and compared with the activation functions that we have.
"""

from collections.abc import Iterator
from functools import cache

import numpy as np

from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Attr, Node
from qbench.ir.op import Array, bind
from qbench.ops.float.activation import Gelu, HardSigmoid, HardSwish, Relu, Silu
from qbench.passes.canonicalize.rule import fuse, scalar
from qbench.passes.rewrite import Rewriter

_REACH = 8
"""Most ops of a function before its anchor, and after it."""

_LARGE = np.array([20.0, 50.0, 300.0], np.float32)
_POINTS = np.concatenate([np.linspace(-12, 12, 385, dtype=np.float32), _LARGE, -_LARGE])

_GLUE = ("add", "subtract", "multiply", "divide", "power", "negative", "clip", "maximum", "minimum", Relu.name)

ANCHORS: dict[str, tuple[tuple[str, FrozenMap[str, Attr]], ...]] = {
    "erf": ((Gelu.name, FrozenMap()),),
    "tanh": ((Gelu.name, FrozenMap({"approximate": "tanh"})),),
    "sigmoid": ((Silu.name, FrozenMap()),),
    "clip": (
        (HardSwish.name, FrozenMap()),
        (HardSigmoid.name, FrozenMap({"alpha": 1 / 6})),
        (HardSigmoid.name, FrozenMap()),
    ),
    HardSigmoid.name: ((HardSwish.name, FrozenMap()),),
}
"""The op that each function is looked for from."""


def recognize_activation(rw: Rewriter, node: Node) -> bool:
    """Replace the largest group of ops around `node` that computes one of the functions of `ANCHORS`."""
    inputs = _values_before(rw, node)
    for root in reversed([node, *_nodes_after(rw, node)]):
        for value in inputs:
            group: dict[str, Node] = {}
            result = _evaluate(rw, root.output, value, group)
            if result is None or rw.types[value] != rw.types[root.output] or not _closed(rw, group, root):
                continue
            for op, values in ANCHORS[node.op]:
                if (root.op, len(group)) != (op, 1) and np.allclose(result, _known(op, values), rtol=1e-5, atol=1e-5):
                    nodes = tuple(n for n in rw if n.name in group)
                    return fuse(rw, nodes, op, (value,), **values)
    return False


def _values_before(rw: Rewriter, node: Node) -> list[str]:
    """The values that `node` is computed from by a few simple ops, nearest first."""
    found = list(node.inputs)
    for value in found:  # grows on the way
        producer = rw.producer(value)
        if producer is not None and producer.op in _GLUE and len(found) < _REACH:
            found += [name for name in producer.inputs if name not in found and name not in rw.constants]
    return found


def _nodes_after(rw: Rewriter, node: Node) -> Iterator[Node]:
    """The simple ops after `node`, each the only reader of the one before."""
    for _ in range(_REACH):
        reader = rw.sole_consumer(node.output)
        if reader is None or reader.op not in _GLUE:
            return
        yield reader
        node = reader


def _evaluate(rw: Rewriter, value: str, variable: str, group: dict[str, Node]) -> Array | None:
    """A value at the sample points of `variable`; None if it depends on more. The nodes on the way go to `group`."""
    if value == variable:
        return _POINTS
    number = scalar(rw, value)
    if number is not None:
        return np.asarray([number], np.float32)
    node = rw.producer(value)
    if node is None or (node.op not in _GLUE and node.op not in ANCHORS) or len(group) > 2 * _REACH:
        return None
    group[node.name] = node
    operands = [_evaluate(rw, name, variable, group) for name in node.inputs]
    known = tuple(operand for operand in operands if operand is not None)
    with np.errstate(all="ignore"):
        return rw.op(node).compute_all(known)[0] if len(known) == len(operands) else None


def _closed(rw: Rewriter, group: dict[str, Node], root: Node) -> bool:
    """Whether nothing outside reads a value of the group but that of `root`."""
    inner = (node.output for node in group.values() if node.name != root.name)
    return all(
        value not in rw.outputs and all(reader.name in group for reader in rw.consumers(value)) for value in inner
    )


@cache
def _known(op: str, values: FrozenMap[str, Attr]) -> Array:
    return bind(Node("known", op, ("x",), ("y",), values)).compute_all((_POINTS,))[0]
