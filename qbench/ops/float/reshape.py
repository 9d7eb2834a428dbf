"""Ops that give the same elements another shape or order."""

import numpy as np

from qbench.ir.op import Array, register
from qbench.ir.sizes import size_of
from qbench.ir.types import Dim, TensorType, dim_product
from qbench.ops.rules import Mover, Unequal, require


class Reshaping(Mover):
    """All elements of the input in the same row-major order."""

    keeps_order = True


@register
class Reshape(Reshaping):
    """The elements in row-major order, in another shape.

    One size may be -1, and is then what the others leave.
    """

    name = "reshape"
    only_shaped = True
    newshape: tuple[Dim, ...]

    def infer(self, data: TensorType) -> TensorType:
        newshape, total = self.newshape, dim_product(data.shape)
        if -1 in newshape:
            require(newshape.count(-1) == 1, f"{self.name}: newshape={newshape} has more than one -1")
            rest = _quotient(total, dim_product(dim for dim in newshape if dim != -1))
            require(rest is not None, f"{self.name}: the {total} elements of {data} do not fill newshape={newshape}")
            newshape = tuple(rest if dim == -1 and rest is not None else dim for dim in newshape)
        wanted = dim_product(newshape)
        if wanted != total:
            told = f"{self.name}: {data} has {total} elements, newshape={newshape} {wanted}"
            raise Unequal(told, total, wanted)
        return TensorType(newshape, data.dtype)

    def compute(self, data: Array) -> Array:
        return data.reshape([-1 if isinstance(dim, str) else dim for dim in self.newshape])


def _quotient(total: Dim, part: Dim) -> Dim | None:
    """The size that times `part` gives `total`; None where there is none."""
    whole, divisor = size_of(total), size_of(part)
    if not divisor.terms:
        return None
    result = whole // divisor
    return result.dim if result * divisor == whole else None


@register
class BatchFlatten(Reshaping):
    """A matrix: the sizes before `axis` multiplied into rows, the others into columns."""

    name = "nn.batch_flatten"
    axis: int = 1

    def infer(self, data: TensorType) -> TensorType:
        require(0 <= self.axis <= data.rank, f"{self.name}: axis {self.axis} is outside 0..{data.rank}")
        return TensorType((dim_product(data.shape[: self.axis]), dim_product(data.shape[self.axis :])), data.dtype)

    def compute(self, data: Array) -> Array:
        return data.reshape(int(np.prod(data.shape[: self.axis])), int(np.prod(data.shape[self.axis :])))


@register
class Transpose(Mover):
    """Axis i of the result is axis ``axes[i]`` of the input."""

    name = "transpose"
    axes: tuple[int, ...]

    @property
    def identity(self) -> bool:
        return self.axes == tuple(range(len(self.axes)))

    def infer(self, data: TensorType) -> TensorType:
        fits = sorted(self.axes) == list(range(data.rank))
        require(fits, f"{self.name}: axes={self.axes} is no permutation of the {data.rank} axes of {data}")
        return TensorType(tuple(data.shape[axis] for axis in self.axes), data.dtype)

    def compute(self, data: Array) -> Array:
        return data.transpose(self.axes)


@register
class Squeeze(Reshaping):
    """Without these axes, which must be of size 1; of what is a quotient of open sizes, the run must show it."""

    name = "squeeze"
    axes: tuple[int, ...]

    def infer(self, data: TensorType) -> TensorType:
        for axis in self.axes:
            require(0 <= axis < data.rank, f"{self.name}: axis {axis} is outside 0..{data.rank - 1} of {data}")
            size = size_of(data.shape[axis])
            if size != size_of(1) and not (size.quotients and size.least == 1):
                raise Unequal(f"{self.name}: axis {axis} of {data} has size {size}, not 1", data.shape[axis], 1)
        shape = tuple(dim for axis, dim in enumerate(data.shape) if axis not in self.axes)
        return TensorType(shape, data.dtype)

    def compute(self, data: Array) -> Array:
        return data.squeeze(self.axes)


@register
class ExpandDims(Reshaping):
    """With new axes of size 1, at these positions of the result."""

    name = "expand_dims"
    axes: tuple[int, ...]

    def infer(self, data: TensorType) -> TensorType:
        rank = data.rank + len(self.axes)
        fits = len(set(self.axes)) == len(self.axes) and all(0 <= axis < rank for axis in self.axes)
        require(fits, f"{self.name}: axes={self.axes} must be different positions in 0..{rank - 1}")
        dims = iter(data.shape)
        return TensorType(tuple(1 if axis in self.axes else next(dims) for axis in range(rank)), data.dtype)

    def compute(self, data: Array) -> Array:
        return np.expand_dims(data, self.axes)
