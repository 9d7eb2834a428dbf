"""Concatenation of integers that stand for different reals: each input goes through a table of its own."""

import numpy as np

from qbench.errors import GraphError
from qbench.ir.op import Array, register
from qbench.ir.types import TensorType
from qbench.ops.float.select import Concatenate
from qbench.ops.integer.window import IntegerTable
from qbench.ops.rules import InternalOp


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
