"""Functions of two 8-bit integers, by table."""

import numpy as np

from qbench.errors import GraphError
from qbench.ir.dtypes import dtype_of, integer_range
from qbench.ir.op import Array, register
from qbench.ir.types import TensorType
from qbench.ops.float.elementwise import Add
from qbench.ops.rules import InternalOp


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
