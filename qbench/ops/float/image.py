"""Resizing images, and moving elements between channels and pixels; NCHW."""

from typing import Literal

from qbench.ir.op import Array, QuantRule, register
from qbench.ir.sizes import size_of
from qbench.ir.types import Dim, TensorType, dim_product
from qbench.ops.float.conv import spatial
from qbench.ops.numeric.interpolation import Coordinates, Method, NearestMode, interpolate, interpolation
from qbench.ops.rules import FloatOp, Mover, Unequal, fixed, need_float, require

_MOST = 2**20
"""No image is higher or wider; each row and column takes an entry of a table."""


@register
class Resize2d(FloatOp):
    """An image of another height and width; attributes and coordinates as ONNX's Resize has them.

    `scales` are those of the coordinates where they are not exactly the ratios of the sizes.
    """

    name = "image.resize2d"
    only_shaped = True
    rule = QuantRule.SAME
    size: tuple[Dim, Dim]
    method: Method = "nearest"
    coordinate_transformation_mode: Coordinates = "half_pixel"
    nearest_mode: NearestMode = "round_prefer_floor"
    cubic_coeff_a: float = -0.75
    scales: tuple[float, float] | None = None
    antialias: bool = False
    exclude_outside: bool = False

    def infer(self, data: TensorType) -> TensorType:
        if self.method != "nearest":
            need_float(self, data)
        require(0 not in spatial(self, data), f"{self.name}: {data} is empty")
        known = [size for size in self.size if isinstance(size, int)]
        require(min(known, default=1) >= 1, f"{self.name}: size={self.size} must be at least (1, 1)")
        require(min(self.scales or (1, 1)) > 0, f"{self.name}: scales={self.scales} must be positive")
        return TensorType((*data.shape[:2], *self.size), data.dtype)

    def compute(self, data: Array) -> Array:
        for axis in (0, 1):
            data = interpolate(data, *self.neighbours(axis, data.shape[axis + 2]), axis + 2)
        return data

    @property
    def identity(self) -> bool:
        # The other modes shift the pixels even where the size stays: tf_half_pixel_for_nn, tf_crop_and_resize.
        exact = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric")
        return self.coordinate_transformation_mode in exact and self.scales in (None, (1.0, 1.0))

    @property
    def bilinear(self) -> bool:
        """Whether it is made of the two nearest rows and columns."""
        return self.method == "linear" and not self.antialias

    def obstacle(self, *types: TensorType) -> str:
        if self.method == "cubic":
            return "unsupported: cubic resizing has no integer form"
        if self.method == "linear" and not self.bilinear:
            return "unsupported: antialiased resizing has no integer form"
        return ""

    def neighbours(self, axis: int, size: int) -> tuple[Array, Array]:
        """Indices and weights, each (out, k), of the input elements that make each output element along one axis."""
        made = fixed(self, f"size {axis} of the result", self.size[axis])
        require(made <= _MOST, f"{self.name}: size={self.size} is more than {_MOST} along an axis")
        scale = made / size if self.scales is None else self.scales[axis]
        mode = self.coordinate_transformation_mode
        bounds = {"antialias": self.antialias, "exclude_outside": self.exclude_outside}
        return interpolation(self.method, size, made, scale, mode, self.nearest_mode, self.cubic_coeff_a, **bounds)


@register
class DepthToSpace(Mover):
    """Channels laid out as blocks of pixels; the place in a block is the slow part of a channel (DCR) or the fast."""

    name = "nn.depth_to_space"
    block_size: int
    mode: Literal["DCR", "CRD"] = "DCR"

    def infer(self, data: TensorType) -> TensorType:
        height, width = spatial(self, data)
        channels, block = fixed(self, "the channels of data", data.shape[1]), self.block_size
        fits = block >= 1 and channels % block**2 == 0
        require(fits, f"{self.name}: {channels} channels do not split into blocks of {block} x {block}")
        sizes = dim_product((height, block)), dim_product((width, block))
        return TensorType((data.shape[0], channels // block**2, *sizes), data.dtype)

    def compute(self, data: Array) -> Array:
        n, channels, height, width = data.shape
        block, depth = self.block_size, channels // self.block_size**2
        if self.mode == "DCR":
            parts = data.reshape(n, block, block, depth, height, width).transpose(0, 3, 4, 1, 5, 2)
        else:
            parts = data.reshape(n, depth, block, block, height, width).transpose(0, 1, 4, 2, 5, 3)
        return parts.reshape(n, depth, height * block, width * block)


@register
class SpaceToDepth(Mover):
    """Blocks of pixels laid out as channels, the block being the slow part: undoes depth_to_space's DCR."""

    name = "nn.space_to_depth"
    block_size: int

    def infer(self, data: TensorType) -> TensorType:
        height, width = spatial(self, data)
        channels, block = fixed(self, "the channels of data", data.shape[1]), self.block_size
        told = f"{self.name}: {data} does not split into blocks of {block} x {block}"
        require(block >= 1, told)
        blocks = [(size_of(size) // block).dim for size in (height, width)]
        for size, count in zip((height, width), blocks, strict=True):
            if dim_product((count, block)) != size:
                raise Unequal(told, dim_product((count, block)), size)
        return TensorType((data.shape[0], channels * block**2, *blocks), data.dtype)

    def compute(self, data: Array) -> Array:
        n, channels, height, width = data.shape
        block = self.block_size
        parts = data.reshape(n, channels, height // block, block, width // block, block)
        return parts.transpose(0, 3, 5, 1, 2, 4).reshape(n, channels * block**2, height // block, width // block)
