"""Compute now what does not depend on the input."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from qbench.ir.graph import Graph
from qbench.ir.open_attributes import is_open
from qbench.passes.rewrite import Rewriter

_MOST_GROWTH = 1 << 20  # bytes


@dataclass(frozen=True)
class FoldConstantsPass:
    """A node whose inputs are all constants becomes constants that have the names of its outputs.

    Its value is the node's own NumPy meaning. A node that makes a graph output stays, since an output must be computed.
    So does one whose result would exceed the constants that it is made from by more than 1 MiB (broadcast, tile), which
    is cheaper to run than to store.
    """

    name: ClassVar[str] = "fold-constants"

    def __call__(self, graph: Graph) -> Graph:
        rw = Rewriter(graph)
        for node in rw:
            arrays = [rw.array(value) for value in node.inputs]
            known = tuple(array for array in arrays if array is not None)
            if len(known) < len(arrays) or not set(node.outputs).isdisjoint(rw.outputs) or is_open(node):
                continue
            made = [rw.types[value] for value in node.outputs]
            size = sum(kind.nbytes for kind in made)
            if size > sum(array.nbytes for array in known) + _MOST_GROWTH:
                continue
            with np.errstate(all="ignore"):
                results = rw.op(node).compute_all(known)
            rw.remove(node)
            for value, result in zip(node.outputs, results, strict=True):
                rw.set_constant(value, result)
        return rw.finish()
