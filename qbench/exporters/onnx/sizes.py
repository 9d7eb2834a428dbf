"""Sizes that only the run can tell, written as ONNX nodes that work them out from the shapes of the graph's inputs."""

from collections.abc import Sequence

from qbench.errors import ExportError, shown
from qbench.exporters.onnx.writer import Writer
from qbench.ir.graph import Node
from qbench.ir.sizes import Quotient, Size, size_of
from qbench.ir.types import Dim


def sizes(writer: Writer, node: Node, what: str, dims: Sequence[Dim]) -> str:
    """A list of int64: an initializer where all are known, else what nodes make of the inputs' shapes."""
    known = [dim for dim in dims if isinstance(dim, int)]
    if len(known) == len(dims):
        return writer.integers(node, what, known)
    parts = [_Worker(writer, node, f"{what}.{i}").number(size_of(dim)) for i, dim in enumerate(dims)]
    return parts[0] if len(parts) == 1 else writer.step(node, "Concat", parts, axis=0)


class _Worker:
    """Writes the nodes of one size; each makes a list of one number."""

    def __init__(self, writer: Writer, node: Node, what: str) -> None:
        self.writer, self.node, self.what = writer, node, what

    def number(self, size: Size) -> str:
        total = ""
        for monomial, factor in size.terms:
            product = "" if abs(factor) == 1 and monomial else self._constant(abs(int(factor)))
            for atom, power in monomial:
                for _ in range(power):
                    value = self._quotient(atom) if isinstance(atom, Quotient) else self._symbol(atom)
                    product = self._step("Mul", product, value) if product else value
            if factor < 0:
                total = self._step("Sub", total or self._constant(0), product)
            else:
                total = self._step("Add", total, product) if total else product
        return total or self._constant(0)

    def _quotient(self, quotient: Quotient) -> str:
        return self._step("Div", self.number(quotient.above), self.number(quotient.below))

    def _symbol(self, symbol: str) -> str:
        """Read from an input's axis whose size is a multiple of it."""
        for name, kind in self.writer.graph.input_types().items():
            for axis, dim in enumerate(kind.shape):
                terms = size_of(dim).terms
                if len(terms) == 1 and terms[0][0] == ((symbol, 1),):
                    size = self.writer.step(self.node, "Shape", [self.writer.read(name)], start=axis, end=axis + 1)
                    factor = int(terms[0][1])
                    return size if factor == 1 else self._step("Div", size, self._constant(factor))
        raise ExportError(
            f"node {shown(self.node.name)}: no input's shape tells the size {symbol}; "
            "fix it when the model is loaded, with shapes="
        )

    def _constant(self, number: int) -> str:
        return self.writer.integers(self.node, f"{self.what}.{number}", [number])

    def _step(self, op: str, left: str, right: str) -> str:
        return self.writer.step(self.node, op, [left, right])
