"""Quantization parameters: how the integers of a tensor stand for real numbers."""

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from qbench.errors import QParamsError
from qbench.ir.dtypes import DType, integer_range, is_integer
from qbench.ir.types import Dim

Number = TypeVar("Number", bound=np.generic)

EXACT_SCALES: tuple[DType, ...] = ("int32", "int64")  # accumulators: the product of two scales, not rounded to float32


@dataclass(frozen=True, slots=True)
class QParams:
    """``real = scale * (integer - zero_point)``, for a whole tensor or for each index along one axis.

    Parameters
    ----------
    scale
        Positive and finite. Rounded to float32, which is what every file format stores, unless the dtype is int32 or
        int64: an accumulator's scale is the product of two others and is kept exactly. A tuple where `axis` is given.
    zero_point
        The integer that stands for 0.0; within the range of `dtype`. A tuple where `axis` is given.
    dtype
        Integer element type.
    axis
        Axis that scale and zero_point run along, counted from the front; None means per tensor.
    block
        Of a matrix with an `axis`: each index there has a scale for every so many elements along the other axis, one
        after the other in `scale`; None means one for all of them.

    Raises
    ------
    QParamsError
        Scale not positive and finite, zero point out of range, lengths that differ, dtype not an integer type, blocks
        without an axis.
    """

    scale: float | tuple[float, ...]
    zero_point: int | tuple[int, ...]
    dtype: DType
    axis: int | None = None
    block: int | None = None

    def __post_init__(self) -> None:
        if not is_integer(self.dtype):
            raise QParamsError(f"quantized tensors hold integers, not {self.dtype}")
        per_axis = isinstance(self.scale, tuple)
        if per_axis != isinstance(self.zero_point, tuple) or per_axis != (self.axis is not None):
            raise QParamsError("scale and zero_point are tuples exactly where an axis is given")
        if self.axis is not None and self.axis < 0:
            raise QParamsError(f"axis {self.axis} must be counted from the front")
        if self.block is not None and (self.axis not in (0, 1) or self.block < 1):
            raise QParamsError(f"blocks of {self.block} go along an axis of a matrix, not of axis {self.axis}")
        exact = self.dtype in EXACT_SCALES
        with np.errstate(over="ignore"):  # what overflows is refused below
            scales: list[float] = np.asarray(self.scales, np.float64 if exact else np.float32).tolist()
        if len(scales) != len(self.zero_points):
            raise QParamsError(f"{len(scales)} scales but {len(self.zero_points)} zero points")
        low, high = integer_range(self.dtype)
        for index, (scale, zero_point) in enumerate(zip(scales, self.zero_points, strict=True)):
            if 0 < scale < math.inf and low <= zero_point <= high:
                continue
            where = f" at index {index} of axis {self.axis}" if per_axis else ""
            if not 0 < scale < math.inf:
                raise QParamsError(f"scale {scale}{where} must be positive and finite")
            raise QParamsError(f"zero point {zero_point}{where} is outside {self.dtype} [{low}, {high}]")
        object.__setattr__(self, "scale", tuple(scales) if per_axis else scales[0])

    @property
    def scales(self) -> tuple[float, ...]:
        """The scales, one per index of the axis; one in all where per tensor."""
        return self.scale if isinstance(self.scale, tuple) else (self.scale,)

    @property
    def zero_points(self) -> tuple[int, ...]:
        """The zero points, as many as scales."""
        return self.zero_point if isinstance(self.zero_point, tuple) else (self.zero_point,)

    @property
    def ranges(self) -> tuple[tuple[float, float], ...]:
        """What the smallest and the largest integer stand for, at each scale."""
        pairs = zip(self.scales, self.zero_points, strict=True)
        return tuple((scale * (self.qmin - zero), scale * (self.qmax - zero)) for scale, zero in pairs)

    @property
    def qmin(self) -> int:
        """Smallest integer of the dtype."""
        return integer_range(self.dtype)[0]

    @property
    def qmax(self) -> int:
        """Largest integer of the dtype."""
        return integer_range(self.dtype)[1]

    def scale_array(self, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """The scales as float32, shaped to broadcast against a tensor of that shape."""
        return self._spread(np.asarray(self.scales, np.float32), shape)

    def zero_point_array(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """The zero points as int64, shaped to broadcast against a tensor of that shape."""
        return self._spread(np.asarray(self.zero_points, np.int64), shape)

    def blocks(self, values: NDArray[Number], channels: int) -> NDArray[Number]:
        """Scales or zero points of a matrix by axes of the matrix, with one element for each block."""
        table = values.reshape(channels, -1)
        return table if self.axis == 0 else table.T

    def fits(self, shape: tuple[Dim, ...]) -> bool:
        """Whether there are as many scales as a tensor of that shape needs."""
        if self.axis is None:
            return True
        if self.axis >= len(shape) or (self.block is not None and len(shape) != 2):
            return False
        if self.block is None:
            return shape[self.axis] == len(self.scales)
        sizes = [size for size in shape if isinstance(size, int)]
        whole = len(sizes) == 2 and sizes[1 - self.axis] % self.block == 0
        return whole and math.prod(sizes) == len(self.scales) * self.block

    def _spread(self, values: NDArray[Number], shape: tuple[int, ...]) -> NDArray[Number]:
        if self.axis is None:
            return values.reshape((1,) * len(shape))
        if self.axis >= len(shape):
            raise QParamsError(f"axis {self.axis} is outside a tensor of rank {len(shape)}")
        if self.block is None:
            return values.reshape([-1 if i == self.axis else 1 for i in range(len(shape))])
        if not self.fits(shape):
            raise QParamsError(f"{len(values)} scales for blocks of {self.block} do not suit a tensor of {list(shape)}")
        return np.repeat(self.blocks(values, shape[self.axis]), self.block, 1 - self.axis)
