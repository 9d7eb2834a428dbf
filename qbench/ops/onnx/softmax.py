"""onnxruntime's softmax of 8-bit integers (QLinearSoftmax): powers by table, summed one after the other in float32."""

import numpy as np

from qbench.errors import GraphError
from qbench.ir.dtypes import dtype_of, integer_range
from qbench.ir.op import Array, register
from qbench.ir.types import TensorType
from qbench.ops.rules import InternalOp


@register
class OnnxSoftmax(InternalOp):
    """``round(power * steps / sum of powers) + zero_point``, in float32, ties to even; too large ones saturate."""

    name = "integer.softmax_float32"
    axis: int = -1
    scale: float
    """Of the data."""
    steps: float
    """How many steps of the result make 1, rounded down."""
    zero_point: int = 0

    def infer(self, data: TensorType) -> TensorType:
        if data.dtype not in ("int8", "uint8"):
            raise GraphError(f"needs 8-bit data, not {data}")
        return data

    def compute(self, data: Array) -> Array:
        wide = np.moveaxis(data.astype(np.int64), self.axis, -1)
        found = powers(self.scale, wide.shape[-1])[wide - wide.max(axis=-1, keepdims=True) + 255]
        total = np.add.accumulate(found, axis=-1)[..., -1:]  # as sum() would not: one after the other
        highest = integer_range(dtype_of(data.dtype))[1]
        with np.errstate(over="ignore"):  # an infinity saturates
            steps = np.rint(found * np.float32(self.steps) / total) + self.zero_point
        return np.moveaxis(np.minimum(steps, highest).astype(data.dtype), -1, self.axis)


def powers(scale: float, length: int) -> Array:
    """What 256 integers of a scale contribute: the last one is the largest along the axis, the one before is one less.

    It is e to the real number below the largest one's, times as much as lets `length` of them add up in float32.
    """
    room = np.log(np.finfo(np.float32).max / np.float32(length))  # in float32, as there
    shift = max(0.0, float(room) - 5) / scale
    return np.exp((np.arange(256, dtype=np.float64) - 255 + shift) * scale).astype(np.float32)
