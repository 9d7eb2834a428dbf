"""Pooling over windows and over whole feature maps, NCHW."""

import math
from dataclasses import dataclass

from qbench.ir.op import Array, Channels, Epilogue, Op, QuantRule, register
from qbench.ir.types import TensorType, numel
from qbench.ops.float.conv import need_window, swept
from qbench.ops.numeric.windows import Padding, Pair, Window, pool_counts, pool_max, pool_sum
from qbench.ops.rules import FloatOp, need_float, need_number, need_rank, require


@dataclass(frozen=True, kw_only=True)
class Windowed(Op):
    """How the windows of a pool slide over images, in every dialect."""

    pool_size: Pair
    strides: Pair
    padding: Padding = (0, 0, 0, 0)
    dilation: Pair = (1, 1)
    ceil_mode: bool = False


class Pool2d(Windowed, FloatOp):
    """What max and average pool share: the window and the type rule."""

    keeps_sign = True

    @property
    def window(self) -> Window:
        """The attributes that all pools share."""
        return Window(self.pool_size, self.strides, self.padding, self.dilation, self.ceil_mode)

    def rounded_down(self, data: TensorType) -> Window:
        """The window without ceil mode, where padding says the same: what sticks out changes no count."""
        rows, columns = data.shape[2:]
        if isinstance(rows, str) or isinstance(columns, str):
            return self.window
        down = self.window.rounded_down((rows, columns))
        return self.window if self.counts_padding and down.padding != self.padding else down

    @property
    def counts_padding(self) -> bool:
        """Whether padding is among the elements that a mean is of."""
        return False

    @property
    def channels(self) -> Channels:
        return Channels(data=1, output=1)

    @property
    def identity(self) -> bool:
        return self.pool_size == (1, 1) and self.strides == (1, 1) and not any(self.padding)

    def infer(self, data: TensorType) -> TensorType:
        need_number(self, data)
        window = self.window
        need_window(self, window)
        fits = all(pad < reach for pad, reach in zip(self.padding, window.reach * 2, strict=True))
        require(fits, f"{self.name}: padding={self.padding} must be smaller than the window, {window.reach}")
        return TensorType((*data.shape[:2], *swept(self, data, window)), data.dtype)


@register
class MaxPool2d(Pool2d):
    """The maximum of each window; padding never wins."""

    name = "nn.max_pool2d"
    rule = QuantRule.SAME

    def compute(self, data: Array) -> Array:
        return pool_max(data, self.window)


@register
class AvgPool2d(Pool2d):
    """The mean of each window; the zeros of the padding count only with `count_include_pad`."""

    name = "nn.avg_pool2d"
    rule = QuantRule.AVERAGE
    absorbs = (Epilogue.CLAMP,)
    count_include_pad: bool = False

    @property
    def counts_padding(self) -> bool:
        return self.count_include_pad and any(self.padding)

    def infer(self, data: TensorType) -> TensorType:
        need_float(self, data)
        return super().infer(data)

    def depth(self, *types: TensorType) -> int:
        return math.prod(self.pool_size)

    def compute(self, data: Array) -> Array:
        counts = pool_counts((data.shape[2], data.shape[3]), self.window, self.count_include_pad)
        return pool_sum(data, self.window) / counts.astype(data.dtype)


@register
class GlobalAvgPool2d(FloatOp):
    """The mean of each channel's image, as an image of one pixel."""

    name = "nn.global_avg_pool2d"
    rule = QuantRule.AVERAGE
    absorbs = (Epilogue.CLAMP,)
    keeps_sign = True

    @property
    def channels(self) -> Channels:
        return Channels(data=1, output=1)

    def depth(self, *types: TensorType) -> int:
        return numel(types[0].shape[2:])

    def infer(self, data: TensorType) -> TensorType:
        need_float(self, data)
        need_rank(self, "data", data, 4)
        return TensorType((*data.shape[:2], 1, 1), data.dtype)

    def compute(self, data: Array) -> Array:
        return data.mean(axis=(2, 3), keepdims=True)


@register
class GlobalMaxPool2d(Op):
    """The maximum of each channel's image, as an image of one pixel."""

    name = "nn.global_max_pool2d"
    rule = QuantRule.SAME
    keeps_sign = True

    @property
    def channels(self) -> Channels:
        return Channels(data=1, output=1)

    def infer(self, data: TensorType) -> TensorType:
        need_number(self, data)
        need_rank(self, "data", data, 4)
        return TensorType((*data.shape[:2], 1, 1), data.dtype)

    def compute(self, data: Array) -> Array:
        return data.max(axis=(2, 3), keepdims=True)
