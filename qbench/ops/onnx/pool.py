"""onnxruntime's average pool of 8-bit integers (QLinearAveragePool): real numbers by table, summed in float32."""

import numpy as np

from qbench.errors import GraphError
from qbench.ir.dtypes import DType, dtype_of, integer_range
from qbench.ir.op import Array, QuantRule, register
from qbench.ir.types import TensorType
from qbench.ops.float.pool import Pool2d
from qbench.ops.integer.requantize import saturate
from qbench.ops.numeric.windows import pad2d, pool_counts


@register
class OnnxAvgPool2d(Pool2d):
    """``round(sum of reals[data] / elements / step + zero_point)``, ties to even, saturated.

    Everything is float32, and the elements of a window are added row by row. `reals` has what each integer of the
    data's type stands for.
    """

    name = "integer.avg_pool2d_float32"
    form_of = "nn.avg_pool2d"
    operands = ("data", "reals")
    rule = QuantRule.INTERNAL
    count_include_pad: bool = False
    dtype: DType
    step: float
    """Scale of the result."""
    zero_point: int = 0

    def infer(self, data: TensorType, *others: TensorType) -> TensorType:
        (reals,) = others
        low, high = integer_range(data.dtype)
        if reals != TensorType((high - low + 1,), "float32"):
            raise GraphError(f"the real numbers of {data} are {high - low + 1} of float32, not {reals}")
        return super().infer(data).with_dtype(self.dtype)

    def compute(self, data: Array, reals: Array) -> Array:
        window, shape = self.window, (data.shape[2], data.shape[3])
        rows, columns = window.counts(shape)
        padded = pad2d(reals[data.astype(np.int64) - integer_range(dtype_of(data.dtype))[0]], window.border(shape))
        total = np.zeros((*data.shape[:2], rows, columns), np.float32)
        for down in window.taps(0, rows):
            for across in window.taps(1, columns):
                total += padded[:, :, down, across]
        average = total / pool_counts(shape, window, self.count_include_pad).astype(np.float32)
        steps = np.rint(average / np.float32(self.step) + np.float32(self.zero_point))
        return saturate(steps.astype(np.int64), self.dtype)
