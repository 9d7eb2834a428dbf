"""Numbers that follow from the sizes of the inputs: ops without operands, constant once the sizes are known."""

import numpy as np

from qbench.ir.dtypes import DType, numpy_dtype
from qbench.ir.op import Array, Op, register
from qbench.ir.sizes import size_of
from qbench.ir.types import Dim, TensorType, numbers
from qbench.ops.rules import need_equal, require


@register
class Sizes(Op):
    """Sizes as a tensor."""

    name = "sizes"
    operands = ()
    float_reason = "default for this op: it gives sizes"
    values: tuple[Dim, ...]
    shape: tuple[int, ...] = ()
    dtype: DType = "int64"

    def infer(self) -> TensorType:
        need_equal(self, "the number of values", len(self.values), int(np.prod(self.shape)))
        return TensorType(self.shape, self.dtype)

    def compute(self) -> Array:
        return np.asarray(numbers(self.values), numpy_dtype(self.dtype)).reshape(self.shape)


@register
class Arange(Op):
    """``start, start + step, ...`` up to `stop`, without it."""

    name = "arange"
    operands = ()
    float_reason = "default for this op: it counts"
    stop: Dim
    start: Dim = 0
    step: int = 1
    dtype: DType = "int64"

    def infer(self) -> TensorType:
        require(self.step != 0, f"{self.name}: step must not be 0")
        count = ((size_of(self.stop) - size_of(self.start)) / self.step).ceil()
        return TensorType((count.dim if count.number is None else max(int(count.number), 0),), self.dtype)

    def compute(self) -> Array:
        start, stop = numbers((self.start, self.stop))
        return np.arange(start, stop, self.step).astype(numpy_dtype(self.dtype))
