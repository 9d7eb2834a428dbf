"""Sums in Einstein's notation that are products of matrices."""

from collections.abc import Mapping
from dataclasses import replace

from qbench.ir.graph import Attr, Node
from qbench.ir.types import Dim, dim_product
from qbench.ops.float.dense import BatchMatmul
from qbench.ops.float.einsum import Einsum, Labels
from qbench.ops.float.reshape import Reshape, Transpose
from qbench.passes.rewrite import Rewriter, attrs


def einsum_to_matmul(rw: Rewriter, node: Node) -> bool:
    """An einsum of two tensors in which all axes that one of them has alone are the result's, and some are summed over.

    Axes that both tensors and the result have are the batch. Transposes go where the product has no flag for them, and
    reshapes where rows, columns or what is summed over are no axes, or several.
    """
    op = rw.op(node)
    if not isinstance(op, Einsum) or len(node.inputs) != 2:
        return False
    (lhs, rhs), out = op.labels([rw.types[name].rank for name in node.inputs])
    left, right = node.inputs
    own = [label for label in out if (label in lhs) != (label in rhs)]
    if own and own[0] in rhs:  # the rows of the result are the right tensor's
        lhs, rhs, left, right = rhs, lhs, right, left
    batch = tuple(label for label in out if label not in own)
    rows, columns = (tuple(label for label in own if label in term) for term in (lhs, rhs))
    inner = tuple(label for label in lhs if label not in out)
    if not inner or sorted(lhs) != sorted(batch + rows + inner) or sorted(rhs) != sorted(batch + inner + columns):
        return False
    sizes = dict(zip(lhs + rhs, rw.types[left].shape + rw.types[right].shape, strict=True))
    chain = _Chain(rw, node, sizes)
    apart = rows[: _apart(batch, rows, out, sizes)]
    many, rows = apart + batch, rows[len(apart) :]
    first, turned_left = chain.matrices(left, lhs, many, rows, inner)
    second, turned_right = chain.matrices(right, rhs, batch, inner, columns)
    flags = {"transpose_lhs": turned_left, "transpose_rhs": turned_right}
    product = chain.add(BatchMatmul.name, (first, second), {key: value for key, value in flags.items() if value})
    chain.order(chain.split(product, many, rows, columns), many + rows + columns, out)
    chain.end()
    return True


def _apart(batch: Labels, rows: Labels, out: Labels, sizes: Mapping[str, Dim]) -> int:
    """How many of several axes of rows go with the batch, for which the other tensor is the same matrix or matrices.

    No kernel repeats matrices for a part of the batch only, but for samples, which are computed one by one.
    """
    if batch:
        return int(len(rows) > 1 and rows[0] == out[0] and not isinstance(sizes[rows[0]], int))
    return max(len(rows) - 1, 0)


class _Chain:
    """The nodes that take an einsum's place.

    Parameters
    ----------
    rw
        The graph.
    node
        The einsum.
    sizes
        Of its axes, by their labels.
    """

    def __init__(self, rw: Rewriter, node: Node, sizes: Mapping[str, Dim]) -> None:
        self._rw, self._node, self._sizes = rw, node, sizes
        self._nodes: list[Node] = []

    def add(self, op: str, inputs: tuple[str, ...], given: Mapping[str, Attr]) -> str:
        """One more node; gives the value that it makes."""
        name = self._rw.fresh(f"{self._node.name}.{op.rpartition('.')[2]}_{len(self._nodes)}")
        self._nodes.append(Node(name, op, inputs, (name,), attrs(given), self._node.sources))
        return name

    def matrices(self, value: str, labels: Labels, batch: Labels, rows: Labels, columns: Labels) -> tuple[str, bool]:
        """A tensor as matrices, and whether their rows are its columns."""
        turned = labels == batch + columns + rows and labels != batch + rows + columns
        if turned:
            rows, columns = columns, rows
        value = self.order(value, labels, batch + rows + columns)
        if len(rows) == len(columns) == 1:
            return value, turned
        shape = (*self._shape(batch), dim_product(self._shape(rows)), dim_product(self._shape(columns)))
        return self.add(Reshape.name, (value,), {"newshape": shape}), turned

    def split(self, value: str, batch: Labels, rows: Labels, columns: Labels) -> str:
        """Matrices with an axis for each label."""
        if len(rows) == len(columns) == 1:
            return value
        return self.add(Reshape.name, (value,), {"newshape": self._shape(batch + rows + columns)})

    def order(self, value: str, labels: Labels, wanted: Labels) -> str:
        """A tensor with its axes in another order."""
        if labels == wanted:
            return value
        return self.add(Transpose.name, (value,), {"axes": tuple(map(labels.index, wanted))})

    def end(self) -> None:
        """Put the nodes in place: the product has the einsum's name, and the last one makes what that made."""
        last = replace(self._nodes[-1], outputs=self._node.outputs)
        made = [*self._nodes[:-1], last]
        named = (replace(node, name=self._node.name) if node.op == BatchMatmul.name else node for node in made)
        self._rw.replace(self._node, tuple(named))

    def _shape(self, labels: Labels) -> tuple[Dim, ...]:
        return tuple(self._sizes[label] for label in labels)
