"""Dense layers whose data are quantized by the range that they have at run time."""

from dataclasses import dataclass

import numpy as np

from qbench.errors import GraphError
from qbench.ir.op import Array, Epilogue, register
from qbench.ir.types import Dim, TensorType
from qbench.ops.float.dense import Dense
from qbench.ops.integer.products import IntegerDense
from qbench.ops.onnx.dynamic import by_range
from qbench.ops.products import DenseProduct
from qbench.ops.rules import InternalOp


@dataclass(frozen=True, kw_only=True)
class _ByRange(InternalOp):
    rows: Dim = 0
    """So many indices of axis 0 belong to a sample, which has a range of its own; 0: all do."""

    def split(self, data: Array) -> list[Array]:
        """The parts of the data that have a range each."""
        rows = self.rows if isinstance(self.rows, int) and self.rows else max(len(data), 1)
        return [data[first : first + rows] for first in range(0, len(data), rows)]


@register
class DynamicFakeQuantize(_ByRange):
    """Rounds each sample to the 256 numbers that uint8 at the scale of its range can express.

    As `qnn.dynamic_quantize`, which is ONNX's DynamicQuantizeLinear, does for a single sample.
    """

    name = "qnn.dynamic_fake_quantize"

    def infer(self, data: TensorType) -> TensorType:
        if data.dtype != "float32":
            raise GraphError(f"{self.name} takes float32, not {data}")
        return data

    def compute(self, data: Array) -> Array:
        made = np.empty_like(data)
        for sample, out in zip(self.split(data), self.split(made), strict=True):
            integers, scale, zero_point = by_range(sample)
            out[...] = (integers.astype(np.float32) - zero_point.astype(np.float32)) * scale
        return made


@register
class DynamicDense(DenseProduct, _ByRange):
    """A dense layer that quantizes each sample to uint8 at the scale of its range, and gives real numbers.

    ``sum((integer - zero_point) * weight)`` in int32, as float32 times the product of both scales: what
    DynamicQuantizeLinear, MatMulInteger, Cast and Mul of ONNX compute of a single sample. `weight` is int8 [units, in],
    `scale` float32 [units].
    """

    name = "qnn.dynamic_dense"
    form_of = "nn.dense"
    operands = ("data", "weight", "scale")
    absorbs = (Epilogue.BIAS, Epilogue.CLAMP)

    def infer(self, data: TensorType, weight: TensorType, scale: TensorType) -> TensorType:
        if (data.dtype, weight.dtype, scale) != ("float32", "int8", TensorType(weight.shape[:1], "float32")):
            raise GraphError(
                f"{self.name} takes float32, int8 and a float32 for each unit, not {data}, {weight}, {scale}"
            )
        return Dense().infer(data, weight.with_dtype("float32"))

    def compute(self, data: Array, weight: Array, scale: Array) -> Array:
        made = np.empty((*data.shape[:-1], len(weight)), np.float32)
        for sample, out in zip(self.split(data), self.split(made), strict=True):
            integers, step, zero_point = by_range(sample)
            sums = IntegerDense(data_zero_point=int(zero_point)).compute(integers, weight)
            out[...] = sums.astype(np.float32) * (step * scale)
        return made
