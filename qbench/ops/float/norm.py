"""Normalizations."""

import numpy as np

from qbench.ir.op import Array, Channels, register
from qbench.ir.types import TensorType
from qbench.ops.float.dense import channelwise
from qbench.ops.float.softmax import AlongAxis
from qbench.ops.rules import FloatOp, axis_within, need_equal, need_float, need_rank, require

_KEEPS_FLOAT = "default for this op: normalization keeps float32 inside"


@register
class BatchNorm(FloatOp):
    """``(data - mean) / sqrt(variance + epsilon) * gamma + beta``, with one of each per index of `axis`."""

    name = "nn.batch_norm"
    operands = ("data", "gamma", "beta", "mean", "variance")
    float_reason = "unsupported: a batch norm that follows no convolution or dense layer"
    axis: int = 1
    epsilon: float = 1e-5

    @property
    def channels(self) -> Channels:
        return Channels(data=self.axis, output=self.axis)

    def infer(
        self, data: TensorType, gamma: TensorType, beta: TensorType, mean: TensorType, variance: TensorType
    ) -> TensorType:
        vectors = {"gamma": gamma, "beta": beta, "mean": mean, "variance": variance}
        need_float(self, data, *vectors.values())
        axis = axis_within(self, self.axis, data.rank)
        for name, vector in vectors.items():
            need_rank(self, name, vector, 1)
            need_equal(self, f"the length of {name}", vector.shape[0], data.shape[axis])
        return data

    def compute(self, data: Array, gamma: Array, beta: Array, mean: Array, variance: Array) -> Array:
        scale = gamma / np.sqrt(variance + data.dtype.type(self.epsilon))
        axis = self.axis % data.ndim
        shift = beta - mean * scale
        return data * channelwise(scale, axis, data.ndim) + channelwise(shift, axis, data.ndim)


@register
class InstanceNorm(FloatOp):
    """Each channel of each sample normalized by its own mean and variance, then ``* gamma + beta``."""

    name = "nn.instance_norm"
    operands = ("data", "gamma", "beta")
    float_reason = _KEEPS_FLOAT
    epsilon: float = 1e-5

    @property
    def channels(self) -> Channels:
        return Channels(data=1, output=1)

    def infer(self, data: TensorType, gamma: TensorType, beta: TensorType) -> TensorType:
        need_float(self, data, gamma, beta)
        require(data.rank >= 3, f"{self.name}: data needs three dimensions or more: {data}")
        for name, vector in (("gamma", gamma), ("beta", beta)):
            need_rank(self, name, vector, 1)
            need_equal(self, f"the length of {name}", vector.shape[0], data.shape[1])
        return data

    def compute(self, data: Array, gamma: Array, beta: Array) -> Array:
        normal = _normalized(data, tuple(range(2, data.ndim)), self.epsilon)
        return normal * channelwise(gamma, 1, data.ndim) + channelwise(beta, 1, data.ndim)


@register
class LayerNorm(FloatOp):
    """Normalized by mean and variance over `axis` and all axes after it, then ``* gamma + beta``."""

    name = "nn.layer_norm"
    operands = ("data", "gamma", "beta")
    float_reason = _KEEPS_FLOAT
    by_choice = True
    axis: int = -1
    epsilon: float = 1e-5

    def infer(self, data: TensorType, gamma: TensorType, beta: TensorType) -> TensorType:
        need_float(self, data, gamma, beta)
        shape = data.shape[axis_within(self, self.axis, data.rank) :]
        need_equal(self, "the shape of gamma", gamma.shape, shape)
        need_equal(self, "the shape of beta", beta.shape, shape)
        return data

    def compute(self, data: Array, gamma: Array, beta: Array) -> Array:
        axes = tuple(range(self.axis % data.ndim, data.ndim))
        return _normalized(data, axes, self.epsilon) * gamma + beta


@register
class RMSNorm(FloatOp):
    """``data / sqrt(mean(data ** 2) + epsilon) * gamma``, the mean over `axis` and all axes after it."""

    name = "nn.rms_norm"
    operands = ("data", "gamma")
    float_reason = _KEEPS_FLOAT
    by_choice = True
    axis: int = -1
    epsilon: float = 1e-5

    def infer(self, data: TensorType, gamma: TensorType) -> TensorType:
        need_float(self, data, gamma)
        need_equal(self, "the shape of gamma", gamma.shape, data.shape[axis_within(self, self.axis, data.rank) :])
        return data

    def compute(self, data: Array, gamma: Array) -> Array:
        axes = tuple(range(self.axis % data.ndim, data.ndim))
        square = np.square(data).mean(axis=axes, keepdims=True)
        return data / np.sqrt(square + data.dtype.type(self.epsilon)) * gamma


@register
class L2Normalize(AlongAxis):
    """Each vector along an axis divided by its Euclidean norm, or by `epsilon` where that is larger."""

    name = "nn.l2_normalize"
    float_reason = _KEEPS_FLOAT
    epsilon: float = 1e-12

    def compute(self, data: Array) -> Array:
        norm = np.sqrt(np.square(data).sum(axis=self.axis, keepdims=True))
        return data / np.maximum(norm, data.dtype.type(self.epsilon))


def _normalized(data: Array, axes: tuple[int, ...], epsilon: float) -> Array:
    centred = data - data.mean(axis=axes, keepdims=True)
    variance = np.square(centred).mean(axis=axes, keepdims=True)
    return centred / np.sqrt(variance + data.dtype.type(epsilon))


@register
class LocalResponseNorm(FloatOp):
    """``data / (bias + alpha / size * s) ** beta``, s the sum of squares over `size` neighbouring channels."""

    name = "nn.lrn"
    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    bias: float = 1.0

    @property
    def channels(self) -> Channels:
        return Channels(data=1, output=1)

    @property
    def neighbours(self) -> tuple[int, int]:
        """How many channels before and after each one count beside it."""
        before = (self.size - 1) // 2
        return before, self.size - 1 - before

    def infer(self, data: TensorType) -> TensorType:
        need_float(self, data)
        require(data.rank >= 2 and self.size >= 1, f"{self.name}: size={self.size} of {data}")
        return data

    def compute(self, data: Array) -> Array:
        edges = [(0, 0), self.neighbours, *[(0, 0)] * (data.ndim - 2)]
        squares = np.pad(np.square(data), edges)
        sums = sum((squares[:, i : i + data.shape[1]] for i in range(self.size)), start=np.zeros_like(data))
        real = data.dtype.type
        return data / (real(self.bias) + real(self.alpha / self.size) * sums) ** real(self.beta)
