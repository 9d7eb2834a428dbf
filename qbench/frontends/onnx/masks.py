"""Which keys a query of attention sees: truth values that broadcast to (batch, heads, queries, keys)."""

from dataclasses import dataclass
from functools import reduce

import numpy as np

from qbench.frontends.onnx.builder import Builder, Unsupported, Value
from qbench.frontends.onnx.source import SourceNode
from qbench.ir.sizes import size_of
from qbench.ir.types import Dim


@dataclass(frozen=True)
class Places:
    """Where queries stand among keys, both (batch, heads, length, size).

    The first query has the place `before`; where `lengths` (batch,) says how many keys there are, the last one that of
    the last key.
    """

    queries: Value
    keys: Value
    before: Dim = 0
    lengths: Value | None = None

    def causal(self, builder: Builder, node: SourceNode) -> Value | None:
        """What an attribute of onnxruntime's ops asks for."""
        return self.seen(builder, right=0) if node.flag("unidirectional") else None

    def seen(self, builder: Builder, left: int = -1, right: int = -1) -> Value | None:
        """What is at most so far to either side (-1: anywhere); None where that is all."""
        if self.lengths is None and max(left, right) < 0:
            return None
        dtype = "int64" if self.lengths is None else self.lengths.dtype
        at = builder.emit("arange", stop=self.keys.shape[2], dtype=dtype)
        parts = list[Value]()
        if self.lengths is not None:
            parts.append(builder.emit("less", at, self._count(builder, self.lengths)))
        if right >= 0:
            parts.append(builder.emit("less_equal", at, self._column(builder, right)))
        if left >= 0:
            parts.append(builder.emit("greater_equal", at, self._column(builder, -left)))
        return both(builder, *parts)

    def _count(self, builder: Builder, lengths: Value) -> Value:
        return builder.emit("reshape", lengths, newshape=(lengths.shape[0], 1, 1, 1))

    def _column(self, builder: Builder, by: int) -> Value:
        """The places of queries, moved."""
        size = size_of(self.queries.shape[2])
        first = size_of(self.before) + by if self.lengths is None else size_of(by) - size
        dtype = "int64" if self.lengths is None else self.lengths.dtype
        rows = builder.emit("arange", start=first.dim, stop=(first + size).dim, dtype=dtype)
        rows = builder.emit("expand_dims", rows, axes=(1,))
        return rows if self.lengths is None else builder.emit("add", self._count(builder, self.lengths), rows)


def both(builder: Builder, *given: Value | None) -> Value | None:
    """What all of some masks show; None shows all."""
    masks = [mask for mask in given if mask is not None]
    return reduce(lambda a, b: builder.emit("logical_and", a, b), masks) if masks else None


def some(builder: Builder, mask: Value, axes: tuple[int, ...]) -> Value:
    """Whether any is true along some axes."""
    numbers = builder.emit("max", builder.emit("cast", mask, dtype="int32"), axes=axes)
    return builder.emit("cast", numbers, dtype="bool")


def as_long_as(builder: Builder, mask: Value, keys: Dim) -> Value:
    """A mask of the first keys, with the others hidden."""
    count, wanted = mask.shape[-1], keys
    if count == wanted or count == 1:
        return mask
    if not isinstance(count, int) or not isinstance(wanted, int) or count > wanted:
        raise Unsupported(f"a mask of {count} keys for {wanted}")
    hidden = np.zeros(1, bool) if mask.dtype == "bool" else np.full(1, -np.inf, mask.dtype)
    rest = builder.emit("broadcast_to", hidden, shape=(*mask.shape[:-1], wanted - count))
    return builder.emit("concatenate", mask, rest, axis=mask.rank - 1)


def filler(builder: Builder, node: SourceNode, mask: Value | None, k: Value) -> Value | None:
    """What onnxruntime's mask adds to the scores: 1 keeps a key, or a number says how many are kept."""
    if mask is None:
        return None
    if mask.rank == 1:
        if mask.shape[0] != k.shape[0]:
            raise Unsupported("a mask of where sequences begin and end; export a mask of 0 and 1")
        lengths = builder.emit("expand_dims", mask, axes=(1,))
        at = builder.emit("arange", stop=k.shape[2], dtype=mask.dtype)
        keeps = builder.emit("less", at, lengths)
    else:
        keeps = builder.emit("greater", mask, np.asarray(0, mask.dtype))
    axes = {2: (1, 2), 3: (1,), 4: ()}.get(keeps.rank, ())
    keeps = builder.emit("expand_dims", keeps, axes=axes) if axes else keeps
    hidden = np.asarray(node.real("mask_filter_value", -10000.0), k.dtype)
    return builder.emit("where", keeps, np.asarray(0, k.dtype), hidden)
