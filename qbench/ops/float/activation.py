"""Functions of one element that bound or bend it: what stands between the layers."""

import math
from typing import Literal

import numpy as np

from qbench.ir.dtypes import integer_range, is_dtype, is_integer
from qbench.ir.op import Array, Channels, Epilogue, Op, QuantRule, register
from qbench.ir.types import TensorType
from qbench.ops.float.dense import channelwise
from qbench.ops.numeric.special import erf, sigmoid
from qbench.ops.rules import NEVER_NEGATIVE, FloatOp, axis_within, need_equal, need_float, need_number, require

_FLOAT_MAX = float(np.finfo(np.float32).max)
"""Exporters write this, or infinity, for a bound that does not bound."""


class Unary(FloatOp):
    """A float function of one element; in integers, a table with an entry for each of them."""

    rule = QuantRule.TABLE
    elementwise = True

    def infer(self, data: TensorType) -> TensorType:
        need_float(self, data)
        return data


@register
class Relu(Op):
    """``max(data, 0)``."""

    name = "nn.relu"
    rule = QuantRule.CLAMP
    epilogue = Epilogue.CLAMP
    elementwise = True

    @property
    def bounds(self) -> tuple[float, float]:
        return 0.0, math.inf

    def infer(self, data: TensorType) -> TensorType:
        need_number(self, data)
        return data

    def compute(self, data: Array) -> Array:
        return np.maximum(data, data.dtype.type(0))


@register
class Clip(FloatOp):
    """``min(max(data, a_min), a_max)``; of an integer tensor the bounds are integers."""

    name = "clip"
    rule = QuantRule.CLAMP
    epilogue = Epilogue.CLAMP
    elementwise = True
    a_min: float
    a_max: float

    @property
    def bounds(self) -> tuple[float, float]:
        return self.a_min, self.a_max

    @property
    def identity(self) -> bool:
        return self.a_min <= -_FLOAT_MAX and self.a_max >= _FLOAT_MAX

    def infer(self, data: TensorType) -> TensorType:
        need_number(self, data)
        require(self.a_min <= self.a_max, f"{self.name}: a_min={self.a_min} must not exceed a_max={self.a_max}")
        return data

    def compute(self, data: Array) -> Array:
        low, high, name = self.a_min, self.a_max, data.dtype.name
        if is_dtype(name) and is_integer(name):  # bounds beyond the type (or infinite) bound nothing
            least, most = integer_range(name)
            low, high = (int(min(max(bound, least), most)) for bound in (low, high))
        return np.clip(data, data.dtype.type(low), data.dtype.type(high))


@register
class LeakyRelu(Unary):
    """``data`` where positive, else ``alpha * data``."""

    name = "nn.leaky_relu"
    alpha: float = 0.01

    def compute(self, data: Array) -> Array:
        return np.where(data > 0, data, data * data.dtype.type(self.alpha))


@register
class PRelu(FloatOp):
    """``data`` where positive, else ``alpha * data``: one alpha for each index of `axis`, as a vector or broadcast."""

    name = "nn.prelu"
    operands = ("data", "alpha")
    rule = QuantRule.TABLE
    elementwise = True
    axis: int = 1

    @property
    def channels(self) -> Channels:
        return Channels(data=self.axis, output=self.axis)

    def infer(self, data: TensorType, alpha: TensorType) -> TensorType:
        need_float(self, data, alpha)
        axis = axis_within(self, self.axis, data.rank)
        at = 0 if alpha.rank == 1 else axis + alpha.rank - data.rank
        others = [size for place, size in enumerate(alpha.shape) if place != at]
        require(
            0 <= at < alpha.rank and others == [1] * len(others), f"{self.name}: alpha {alpha} is no number by axis"
        )
        need_equal(self, "the length of alpha", alpha.shape[at], data.shape[axis])
        return data

    def compute(self, data: Array, alpha: Array) -> Array:
        return np.where(data > 0, data, data * channelwise(alpha.reshape(-1), self.axis % data.ndim, data.ndim))


@register
class Sigmoid(Unary):
    """``1 / (1 + exp(-data))``, without overflow at either end."""

    name = "sigmoid"
    ends = (0.0, 1.0)

    def compute(self, data: Array) -> Array:
        return sigmoid(data)


@register
class HardSigmoid(Unary):
    """``min(max(alpha * data + beta, 0), 1)``."""

    name = "nn.hard_sigmoid"
    ends = (0.0, 1.0)
    alpha: float = 0.2
    beta: float = 0.5

    def compute(self, data: Array) -> Array:
        real = data.dtype.type
        return np.clip(data * real(self.alpha) + real(self.beta), real(0), real(1))


@register
class HardSwish(Unary):
    """``data * min(max(data / 6 + 1/2, 0), 1)``."""

    name = "nn.hard_swish"

    def compute(self, data: Array) -> Array:
        real = data.dtype.type
        return data * np.clip(data * real(1 / 6) + real(0.5), real(0), real(1))


@register
class Gelu(Unary):
    """``data`` times the normal distribution's probability below it, exactly or by the usual tanh formula."""

    name = "nn.gelu"
    approximate: Literal["none", "tanh"] = "none"

    def compute(self, data: Array) -> Array:
        real = data.dtype.type
        if self.approximate == "none":
            return data * real(0.5) * (real(1) + erf(data * real(np.sqrt(0.5))))
        inner = real(np.sqrt(2 / np.pi)) * (data + real(0.044715) * data * data * data)
        return data * real(0.5) * (real(1) + np.tanh(inner))


@register
class Elu(Unary):
    """``data`` where positive, else ``alpha * (exp(data) - 1)``."""

    name = "nn.elu"
    alpha: float = 1.0

    def compute(self, data: Array) -> Array:
        return np.where(data > 0, data, data.dtype.type(self.alpha) * np.expm1(np.minimum(data, data.dtype.type(0))))


@register
class Silu(Unary):
    """``data * sigmoid(data)``, also called swish."""

    name = "nn.silu"

    def compute(self, data: Array) -> Array:
        return data * sigmoid(data)


@register
class Softplus(Unary):
    """``log(1 + exp(data))``, without overflow."""

    name = "nn.softplus"
    ends = NEVER_NEGATIVE

    def compute(self, data: Array) -> Array:
        return np.logaddexp(data, data.dtype.type(0))
