"""Reductions over axes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from qbench.ir.op import Array, Epilogue, QuantRule, register
from qbench.ir.types import Dim, TensorType
from qbench.ops.rules import FloatOp, axis_within, declare, need_float, need_number, require


@dataclass(frozen=True, kw_only=True)
class Reduction(FloatOp):
    """Many elements to one, along some axes."""

    function: ClassVar[Callable[..., Any]]
    of_nothing: ClassVar[bool] = False
    """Whether no elements have a result too."""
    axes: tuple[int, ...]
    keepdims: bool = True

    def infer(self, data: TensorType) -> TensorType:
        need_number(self, data)
        axes = {axis_within(self, axis, data.rank) for axis in self.axes}
        require(len(axes) == len(self.axes) > 0, f"{self.name}: axes={self.axes} must be different, and at least one")
        if not self.of_nothing:
            require(all(data.shape[axis] != 0 for axis in axes), f"{self.name} of {data}: an axis has no elements")
        return TensorType(_reduced(data.shape, axes, self.keepdims), data.dtype)

    def compute(self, data: Array) -> Array:
        return type(self).function(data, axis=self.axes, keepdims=self.keepdims)


def _reduced(shape: tuple[Dim, ...], axes: set[int], keepdims: bool) -> tuple[Dim, ...]:
    return tuple(1 if axis in axes else dim for axis, dim in enumerate(shape) if keepdims or axis not in axes)


@register
class Mean(Reduction):
    """The mean along some axes."""

    name = "mean"
    rule = QuantRule.AVERAGE
    absorbs = (Epilogue.CLAMP,)
    keeps_sign = True
    function = np.mean

    def infer(self, data: TensorType) -> TensorType:
        need_float(self, data)
        return super().infer(data)


@register
class Sum(Reduction):
    """The sum along some axes, in the dtype of the data."""

    name = "sum"
    of_nothing = True

    def compute(self, data: Array) -> Array:
        return np.sum(data, axis=self.axes, keepdims=self.keepdims, dtype=data.dtype)


@register
class Prod(Reduction):
    """The product along some axes, in the dtype of the data."""

    name = "prod"
    of_nothing = True

    def compute(self, data: Array) -> Array:
        return np.prod(data, axis=self.axes, keepdims=self.keepdims, dtype=data.dtype)


Max = declare(Reduction, "max", np.max, "The largest element along some axes.", rule=QuantRule.SAME)
Min = declare(Reduction, "min", np.min, "The smallest element along some axes.", rule=QuantRule.SAME)


@dataclass(frozen=True, kw_only=True)
class _Arg(FloatOp):
    picks = True
    float_reason = "unsupported: indices are not quantized"
    function: ClassVar[Callable[..., Any]]
    axis: int
    keepdims: bool = True

    def infer(self, data: TensorType) -> TensorType:
        need_number(self, data)
        return TensorType(_reduced(data.shape, {axis_within(self, self.axis, data.rank)}, self.keepdims), "int64")

    def compute(self, data: Array) -> Array:
        return type(self).function(data, axis=self.axis, keepdims=self.keepdims)


@register
class ArgMax(_Arg):
    """The index of the largest element along one axis, the first where several are."""

    name = "argmax"
    function = np.argmax


@register
class ArgMin(_Arg):
    """The index of the smallest element along one axis, the first where several are."""

    name = "argmin"
    function = np.argmin
