"""Matrix products and the bias that follows them."""

import numpy as np

from qbench.ir.op import Array, Channels, Epilogue, QuantRule, register
from qbench.ir.types import TensorType
from qbench.ops.products import DenseProduct, MatrixProduct
from qbench.ops.rules import (
    FloatOp,
    axis_within,
    broadcast,
    need_equal,
    need_float,
    need_rank,
    need_same_dtype,
    require,
)


def dense(data: Array, weight: Array) -> Array:
    """``data @ weight.T`` over the last axis, as one matrix product (float32, or float64 for exact integers).

    Parameters
    ----------
    data
        Shape (..., in).
    weight
        Shape (units, in).

    Returns
    -------
    Array
        Shape (..., units).
    """
    rows = data.reshape(-1, data.shape[-1]) if data.size else data.reshape(0, data.shape[-1])
    return (rows @ weight.T).reshape(*data.shape[:-1], weight.shape[0])


def channelwise(vector: Array, axis: int, rank: int) -> Array:
    """A vector, shaped to broadcast along one axis of a tensor."""
    return vector.reshape([-1 if i == axis else 1 for i in range(rank)])


@register
class Dense(DenseProduct, FloatOp):
    """Fully connected layer: ``data @ weight.T`` with data (..., in) and weight (units, in)."""

    name = "nn.dense"
    rule = QuantRule.MAC

    def infer(self, data: TensorType, weight: TensorType) -> TensorType:
        need_float(self, data, weight)
        need_rank(self, "weight", weight, 2)
        require(data.rank >= 1, f"{self.name}: data must have at least one dimension: {data}")
        need_equal(self, "the last size of data", data.shape[-1], weight.shape[1])
        return TensorType((*data.shape[:-1], weight.shape[0]), data.dtype)

    def compute(self, data: Array, weight: Array) -> Array:
        return dense(data, weight)


@register
class BatchMatmul(MatrixProduct, FloatOp):
    """``lhs @ rhs`` over the last two axes, each transposed first where asked; the other axes broadcast."""

    name = "nn.batch_matmul"
    rule = QuantRule.MAC

    def infer(self, lhs: TensorType, rhs: TensorType) -> TensorType:
        need_float(self, lhs, rhs)
        require(min(lhs.rank, rhs.rank) >= 2, f"{self.name}: operands need two dimensions or more: {lhs}, {rhs}")
        rows, inner = lhs.shape[-2:][::-1] if self.transpose_lhs else lhs.shape[-2:]
        other, columns = rhs.shape[-2:][::-1] if self.transpose_rhs else rhs.shape[-2:]
        need_equal(self, "the inner size of rhs", other, inner)
        return TensorType((*broadcast(self, lhs.shape[:-2], rhs.shape[:-2]), rows, columns), lhs.dtype)

    def compute(self, lhs: Array, rhs: Array) -> Array:
        left = np.swapaxes(lhs, -1, -2) if self.transpose_lhs else lhs
        return np.matmul(left, np.swapaxes(rhs, -1, -2) if self.transpose_rhs else rhs)


@register
class BiasAdd(FloatOp):
    """Adds a vector along one axis."""

    name = "nn.bias_add"
    operands = ("data", "bias")
    rule = QuantRule.BIAS
    epilogue = Epilogue.BIAS
    absorbs = (Epilogue.CLAMP,)
    axis: int = 1

    @property
    def channels(self) -> Channels:
        return Channels(data=self.axis, weight=0, output=self.axis)

    def infer(self, data: TensorType, bias: TensorType) -> TensorType:
        need_same_dtype(self, data, bias)
        need_rank(self, "bias", bias, 1)
        axis = axis_within(self, self.axis, data.rank)
        need_equal(self, "the length of bias", bias.shape[0], data.shape[axis])
        return data

    def compute(self, data: Array, bias: Array) -> Array:
        return data + channelwise(bias, self.axis % data.ndim, data.ndim)
