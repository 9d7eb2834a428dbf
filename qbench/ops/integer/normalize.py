"""Normalization in integers: exact sums, one exact root for each row, and an accumulator of 32 bits."""

import numpy as np

from qbench.ir.op import Array, register
from qbench.ir.types import TensorType, numel
from qbench.ops.rules import InternalOp, axis_within, need_equal, require
from qbench.quant.inverse_root import NORMAL_BITS, inverse_root

GAMMA_BITS = 15
SHIFT = 8
"""Bits that products of a normalized number and gamma lose, so that 32 hold them."""
MOST = 2**14
"""Numbers in a row: the sum of the squares of that many 16-bit integers, times their number, has 62 bits."""


@register
class Normalize(InternalOp):
    """``(x - mean) / sqrt(variance + epsilon) * gamma + beta`` over `axis` and all axes after it.

    With n numbers x in a row, it is the ratio of ``n x - sum(x)`` to the root of ``n sum(x^2) - sum(x)^2``, both exact
    sums, rounded to 16 bits after the point. I-BERT (S. Kim et al., ICML 2021) divides by a root without a fraction;
    here 31 leading bits of the root count, so that rows that hardly vary are as exact as others.
    """

    name = "integer.normalize"
    operands = ("data", "gamma", "beta")
    axis: int = -1
    centred: bool = True
    """Else by the mean of the squares, as RMS normalization does."""
    zero_point: int = 0
    epsilon: int = 0
    """In units of the integers' square over that of their number."""

    def infer(self, data: TensorType, gamma: TensorType, beta: TensorType) -> TensorType:
        shape = data.shape[axis_within(self, self.axis, data.rank) :]
        require(data.dtype in ("int8", "uint8", "int16", "uint16"), f"{self.name} takes 8 or 16 bits, not {data}")
        require(gamma.dtype == "int16", f"{self.name} multiplies by int16, not {gamma}")
        require(beta.dtype == "int32", f"{self.name} adds int32, not {beta}")
        count = numel(shape) if all(isinstance(dim, int) for dim in shape) else 0
        require(0 < count <= MOST, f"{self.name} takes 1 to {MOST} numbers in a row, not {shape}")
        for name, one in (("gamma", gamma), ("beta", beta)):
            need_equal(self, f"the shape of {name}", one.shape, shape)
        return data.with_dtype("int32")

    def compute(self, data: Array, gamma: Array, beta: Array) -> Array:
        axes = tuple(range(self.axis % data.ndim, data.ndim))
        x, count = data.astype(np.int64) - self.zero_point, gamma.size
        total = x.sum(axis=axes, keepdims=True) if self.centred else np.int64(0)
        squares = count * (x * x).sum(axis=axes, keepdims=True) - total * total
        inverse, right = inverse_root(squares + self.epsilon)
        normal = ((count * x - total) * inverse + (np.int64(1) << (right - 1))) >> right
        return (((normal * gamma + (1 << (SHIFT - 1))) >> SHIFT) + beta).astype(np.int32)


UNIT = 2.0 ** (SHIFT - NORMAL_BITS)
"""Of what comes out, in units of gamma's scale."""
