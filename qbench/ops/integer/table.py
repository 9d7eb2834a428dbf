"""Ops by table: of one integer, of two, and of each input of a concatenation."""

import numpy as np

from qbench.errors import GraphError
from qbench.ir.dtypes import dtype_of, integer_range
from qbench.ir.op import Array, Epilogue, register
from qbench.ir.types import TensorType
from qbench.ops.float.dense import channelwise
from qbench.ops.float.elementwise import Add
from qbench.ops.float.select import Concatenate
from qbench.ops.rules import InternalOp


@register
class IntegerTable(InternalOp):
    """``table[data - smallest integer of its type]``; with an axis, one row of the table per index along it."""

    name = "integer.table"
    operands = ("data", "table")
    absorbs = (Epilogue.REQUANTIZE, Epilogue.CLAMP)
    elementwise = True
    axis: int | None = None

    def infer(self, data: TensorType, table: TensorType) -> TensorType:
        low, high = integer_range(data.dtype)
        entries = (high - low + 1,)
        wanted = entries if self.axis is None else (data.shape[self.axis], *entries)
        if table.shape != wanted:
            raise GraphError(f"a table for {data} has shape {wanted}, not {table.shape}")
        return data.with_dtype(table.dtype)

    def compute(self, data: Array, table: Array) -> Array:
        index = data.astype(np.int64) - np.iinfo(data.dtype).min
        if self.axis is None:
            return table[index]
        rows = channelwise(np.arange(table.shape[0], dtype=np.int64), self.axis, data.ndim)
        return table[rows, index]


@register
class ConcatenateTables(InternalOp):
    """``concatenate(table_0[data_0], table_1[data_1], ...)``: the inputs, then as many tables."""

    name = "integer.concatenate_tables"
    form_of = "concatenate"
    operands = ("*data",)
    axis: int

    def infer(self, *types: TensorType) -> TensorType:
        if not types or len(types) % 2:
            raise GraphError(f"needs as many tables as inputs, not {len(types)} operands")
        half = len(types) // 2
        parts = (IntegerTable().infer(x, table) for x, table in zip(types[:half], types[half:], strict=True))
        return Concatenate(axis=self.axis).infer(*parts)

    def compute(self, *arrays: Array) -> Array:
        half = len(arrays) // 2
        parts = (IntegerTable().compute(x, table) for x, table in zip(arrays[:half], arrays[half:], strict=True))
        return np.concatenate(tuple(parts), axis=self.axis)


@register
class IntegerPairTable(InternalOp):
    """``table[lhs - its smallest integer, rhs - its smallest integer]``; lhs and rhs broadcast."""

    name = "integer.pair_table"
    operands = ("lhs", "rhs", "table")
    elementwise = True

    def infer(self, lhs: TensorType, rhs: TensorType, table: TensorType) -> TensorType:
        entries: list[int] = []
        for data in (lhs, rhs):
            low, high = integer_range(data.dtype)
            entries.append(high - low + 1)
        if table.shape != tuple(entries):
            raise GraphError(f"a table for {lhs} and {rhs} has shape {tuple(entries)}, not {table.shape}")
        return Add().infer(lhs.with_dtype("float32"), rhs.with_dtype("float32")).with_dtype(table.dtype)

    def compute(self, lhs: Array, rhs: Array, table: Array) -> Array:
        rows, columns = (x.astype(np.int64) - integer_range(dtype_of(x.dtype))[0] for x in (lhs, rhs))
        return table[rows, columns]
