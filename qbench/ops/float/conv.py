"""Convolutions, NCHW data and OIHW weights."""

from functools import lru_cache

from qbench.ir.op import Array, Op, QuantRule, register
from qbench.ir.sizes import size_of
from qbench.ir.types import Dim, TensorType
from qbench.ops.numeric.convolution import convolve, convolve_transposed
from qbench.ops.numeric.windows import Window
from qbench.ops.products import Convolution, TransposedConvolution
from qbench.ops.rules import FloatOp, fixed, need_equal, need_float, need_rank, require


def need_window(op: Op, window: Window) -> None:
    """The attributes of a sliding window make sense."""
    require(min(window.size) >= 1, f"{op.name}: the window {window.size} must be at least (1, 1)")
    require(min(window.strides) >= 1, f"{op.name}: strides={window.strides} must be at least (1, 1)")
    require(min(window.dilation) >= 1, f"{op.name}: dilation={window.dilation} must be at least (1, 1)")
    require(min(window.padding) >= 0, f"{op.name}: padding={window.padding} must not be negative; slice the input")


def spatial(op: Op, data: TensorType) -> tuple[Dim, Dim]:
    """Height and width of NCHW data."""
    need_rank(op, "data", data, 4)
    return data.shape[2], data.shape[3]


def swept(op: Op, data: TensorType, window: Window) -> tuple[Dim, Dim]:
    """Height and width of what a window makes of NCHW data; an open size gives another open size."""
    height, width = spatial(op, data)
    return _swept(op, data, window, 0, height), _swept(op, data, window, 1, width)


def _swept(op: Op, data: TensorType, window: Window, axis: int, size: Dim) -> Dim:
    if isinstance(size, int):
        count = window.counts((size, size))[axis]
        told = f"{op.name}: a window of {window.reach} does not fit into {data} padded by {window.padding}"
        require(count >= 1, told)
        return count
    reach, stride, after = window.reach[axis], window.strides[axis], window.padding[axis + 2]
    # a last window that begins behind the data would not count, which hangs on the size
    told = f"{op.name}: {size} must be a number in ceil_mode; fix the size of that input"
    require(not window.ceil_mode or after + stride <= reach, told)
    return _open_count(size, window.padding[axis] + after - reach, stride, window.ceil_mode)


@lru_cache(maxsize=4096)
def _open_count(size: str, more: int, stride: int, ceil_mode: bool) -> Dim:
    """Windows over an open size: worked out once, though every pass asks again."""
    free = size_of(size) + more
    return (((free / stride).ceil() if ceil_mode else free // stride) + 1).dim


@register
class Conv2d(Convolution, FloatOp):
    """2-D convolution of data (n, channels, height, width) with weight (out, channels / groups, kh, kw)."""

    name = "nn.conv2d"
    rule = QuantRule.MAC

    def infer(self, data: TensorType, weight: TensorType) -> TensorType:
        need_float(self, data, weight)
        need_rank(self, "weight", weight, 4)
        out, per_group, kh, kw = (fixed(self, f"size {i} of weight", dim) for i, dim in enumerate(weight.shape))
        window = Window((kh, kw), self.strides, self.padding, self.dilation)
        need_window(self, window)
        require(out >= 1, f"{self.name}: a weight of shape {weight.shape} has no outputs")
        splits = self.groups >= 1 and out % self.groups == 0
        require(splits, f"{self.name}: {out} outputs do not split into groups={self.groups}")
        need_equal(self, "the number of channels of data", data.shape[1], per_group * self.groups)
        return TensorType((data.shape[0], out, *swept(self, data, window)), data.dtype)

    def compute(self, data: Array, weight: Array) -> Array:
        return convolve(data, weight, self.strides, self.padding, self.dilation, self.groups)


@register
class Conv2dTranspose(TransposedConvolution, FloatOp):
    """The transpose of 2-D convolution (also: deconvolution), with weight (channels, out / groups, kh, kw)."""

    name = "nn.conv2d_transpose"
    rule = QuantRule.MAC

    def infer(self, data: TensorType, weight: TensorType) -> TensorType:
        need_float(self, data, weight)
        shape = spatial(self, data)
        need_rank(self, "weight", weight, 4)
        channels, per_group, kh, kw = (fixed(self, f"size {i} of weight", dim) for i, dim in enumerate(weight.shape))
        window = Window((kh, kw), self.strides, self.padding, self.dilation)
        need_window(self, window)
        splits = self.groups >= 1 and channels % self.groups == 0
        require(splits, f"{self.name}: {channels} channels do not split into groups={self.groups}")
        need_equal(self, "the number of channels of data", data.shape[1], channels)
        require(min(self.output_padding) >= 0, f"{self.name}: output_padding={self.output_padding} is negative")
        sizes = tuple(
            (
                (size_of(shape[axis]) - 1) * self.strides[axis]
                + window.reach[axis]
                + (self.output_padding[axis] - self.padding[axis] - self.padding[axis + 2])
            ).dim
            for axis in (0, 1)
        )
        least = min((size for size in sizes if isinstance(size, int)), default=1)
        require(least >= 1, f"{self.name}: padding={self.padding} leaves nothing of the result: {sizes}")
        return TensorType((data.shape[0], per_group * self.groups, *sizes), data.dtype)

    def compute(self, data: Array, weight: Array) -> Array:
        return convolve_transposed(
            data, weight, self.strides, self.padding, self.output_padding, self.dilation, self.groups
        )
