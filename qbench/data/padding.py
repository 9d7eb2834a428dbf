"""Sequences without the padding that an input named for it hides: nothing is measured on what the network ignores."""

from collections.abc import Mapping

import numpy as np

from qbench.errors import DataError, shown
from qbench.ir.dtypes import is_float
from qbench.ir.graph import Graph
from qbench.ir.op import Array

_MASK = "attention_mask"
"""How exporters end the name of an input that is 1 at each position of a sequence, and 0 at padding."""


def unpadded(graph: Graph, piece: Mapping[str, Array], number: int) -> dict[str, Array]:
    """A sample cut to the last position that its mask shows, where the graph leaves the length open.

    Parameters
    ----------
    graph
        Its inputs are looked at.
    piece
        An array for each of them.
    number
        Of the sample, for messages.

    Raises
    ------
    DataError
        A mask that shows no position at all.
    """
    arrays = dict(piece)
    for name, kind in graph.input_types().items():
        if not name.endswith(_MASK) or is_float(kind.dtype) or kind.rank != 2 or arrays[name].ndim != 2:
            continue
        rows = arrays[name] != 0
        if rows.size and not rows.any(axis=1).all():
            raise DataError(
                f"sample {number}: input {shown(name)} is 0 at every position, so that nothing of the sequence "
                "is left; give 1 where it is real"
            )
        length, symbol = int(np.flatnonzero(rows.any(axis=0)).max(initial=-1)) + 1, kind.shape[1]
        if isinstance(symbol, str) and 0 < length < rows.shape[1]:
            arrays |= {other: _cut(graph.types[other].shape, a, symbol, length) for other, a in arrays.items()}
    return arrays


def _cut(shape: tuple[object, ...], array: Array, symbol: str, length: int) -> Array:
    """The first positions along each axis of this size; an array of another rank is refused elsewhere."""
    if symbol not in shape or len(shape) != array.ndim:
        return array
    return array[tuple(slice(length) if dim == symbol else slice(None) for dim in shape)]
