"""Sums of products in Einstein's notation."""

import math
from collections.abc import Sequence

import numpy as np

from qbench.ir.op import Array, register
from qbench.ir.types import Dim, TensorType, dim_factors
from qbench.ops.rules import FloatOp, need_float, require

DENSE = "...k,nk->...n"
"""What a dense layer computes."""

Labels = tuple[str, ...]


@register
class Einsum(FloatOp):
    """``numpy.einsum``: axes of one letter go together, and those that the result does not have are summed over."""

    name = "einsum"
    operands = ("*data",)
    float_reason = "unsupported: a sum of products that is no product of matrices"
    equation: str
    """Such as ``bij,bjk->bik``; an ellipsis stands for the axes that have no letter, the same in every term."""

    def labels(self, ranks: Sequence[int]) -> tuple[list[Labels], Labels]:
        """The labels of each operand's axes, and of the result's.

        Raises
        ------
        GraphError
            An equation that is none, or does not fit operands of these ranks.
        """
        left, arrow, right = self.equation.replace(" ", "").partition("->")
        terms = left.split(",")
        wrong = f"{self.name}: equation={self.equation!r}"
        letters = self.equation.replace(" ", "").replace("...", "").replace("->", "").replace(",", "")
        require(bool(arrow) and (not letters or (letters.isascii() and letters.isalpha())), f"{wrong} is no equation")
        require(len(terms) == len(ranks), f"{wrong} has {len(terms)} terms for {len(ranks)} operands")
        spread = {rank - len(term) + 3 for term, rank in zip(terms, ranks, strict=True) if "..." in term}
        rest = spread.pop() if spread else 0
        require(not spread and rest >= 0, f"{wrong}: its ellipsis stands for different numbers of axes")
        axes = tuple(f".{axis}" for axis in range(rest))
        inputs, output = [_expanded(term, axes) for term in terms], _expanded(right, axes)
        fits = all(len(term) == rank for term, rank in zip(inputs, ranks, strict=True))
        require(fits, f"{wrong} does not fit operands of ranks {list(ranks)}")
        known = {label for term in inputs for label in term}
        require(known >= {*output} and len({*output}) == len(output), f"{wrong}: the result has other axes")
        return inputs, output

    def _sizes(self, types: Sequence[TensorType]) -> dict[str, Dim]:
        sizes: dict[str, Dim] = {}
        for term, given in zip(self.labels([t.rank for t in types])[0], types, strict=True):
            for label, dim in zip(term, given.shape, strict=True):
                known = sizes.setdefault(label, dim)
                require(known == dim, f"{self.name}: axis {label.lstrip('.')} has the sizes {known} and {dim}")
        return sizes

    def infer(self, *data: TensorType) -> TensorType:
        require(bool(data), f"{self.name} needs at least one operand")
        need_float(self, *data)
        sizes, (_, output) = self._sizes(data), self.labels([t.rank for t in data])
        return TensorType(tuple(sizes[label] for label in output), data[0].dtype)

    def compute(self, *data: Array) -> Array:
        return np.einsum(self.equation, *data, optimize=True)

    def depth(self, *types: TensorType) -> int:
        _, output = self.labels([t.rank for t in types])
        return math.prod(dim_factors(dim)[0] for label, dim in self._sizes(types).items() if label not in output)

    def macs(self, *types: TensorType) -> int:
        return (len(types) - 1) * math.prod(dim_factors(dim)[0] for dim in self._sizes(types).values())


def _expanded(term: str, axes: Labels) -> Labels:
    before, ellipsis, after = term.partition("...")
    return (*before, *(axes if ellipsis else ()), *after)
