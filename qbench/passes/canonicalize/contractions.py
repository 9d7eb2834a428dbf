"""Sums in Einstein's notation that are products of matrices."""

from dataclasses import replace

from qbench.ir.graph import Node
from qbench.ops.float.dense import BatchMatmul
from qbench.ops.float.einsum import Einsum, Labels
from qbench.ops.float.reshape import Transpose
from qbench.passes.rewrite import Rewriter, attrs


def einsum_to_matmul(rw: Rewriter, node: Node) -> bool:
    """An einsum of two tensors with one axis of rows, one of columns and one that is summed over, whatever their order.

    Axes that both tensors and the result have are the batch. Transposes go where the product has no flag for them.
    """
    op = rw.op(node)
    if not isinstance(op, Einsum) or len(node.inputs) != 2:
        return False
    (lhs, rhs), out = op.labels([rw.types[name].rank for name in node.inputs])
    left, right = node.inputs
    own = [label for label in out if (label in lhs) != (label in rhs)]
    if len(own) == 2 and own[0] in rhs:  # the rows of the result are the right tensor's
        lhs, rhs, left, right = rhs, lhs, right, left
    batch, summed = tuple(label for label in out if label not in own), [label for label in lhs if label not in out]
    if len(own) != 2 or own[0] not in lhs or own[1] not in rhs or len(summed) != 1:
        return False
    (rows, columns), (inner,) = own, summed
    if sorted(lhs) != sorted((*batch, rows, inner)) or sorted(rhs) != sorted((*batch, inner, columns)):
        return False
    turned = lhs == (*batch, inner, rows), rhs == (*batch, columns, inner)
    before: list[Node] = []
    operands = (
        left if turned[0] else _ordered(rw, node, before, left, lhs, (*batch, rows, inner)),
        right if turned[1] else _ordered(rw, node, before, right, rhs, (*batch, inner, columns)),
    )
    flags = {"transpose_lhs": turned[0], "transpose_rhs": turned[1]}
    given = attrs({key: value for key, value in flags.items() if value})
    product = replace(node, op=BatchMatmul.name, inputs=operands, attrs=given)
    made = (*batch, rows, columns)
    if made == out:
        rw.replace(node, (*before, product))
        return True
    name = rw.fresh(f"{node.name}.product")
    axes = tuple(made.index(label) for label in out)
    last = replace(node, op=Transpose.name, inputs=(name,), attrs=attrs({"axes": axes}))
    rw.replace(node, (*before, replace(product, name=name, outputs=(name,)), last))
    return True


def _ordered(rw: Rewriter, node: Node, before: list[Node], value: str, labels: Labels, wanted: Labels) -> str:
    """The value with its axes in another order, by a transpose before the node where they are not."""
    if labels == wanted:
        return value
    name = rw.fresh(f"{node.name}.{'lhs' if not before else 'rhs'}")
    axes = tuple(labels.index(label) for label in wanted)
    before.append(Node(name, Transpose.name, (value,), (name,), attrs({"axes": axes}), node.sources))
    return name
