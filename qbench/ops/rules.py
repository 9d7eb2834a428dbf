"""What the float declarations share: what operands must be, how shapes combine, and how floats behave."""

import math
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

import numpy as np

from qbench.errors import GraphError
from qbench.ir.dtypes import is_float
from qbench.ir.op import Array, Op, QuantRule, register
from qbench.ir.types import Dim, TensorType, dim_factors

Kind = TypeVar("Kind", bound=Op)

OPEN_SIZE = "a size that the model leaves open; load it with shapes="
"""What an op stumbles over that has no integer form until all sizes are known."""


class InternalOp(Op):
    """An op that stands for others in graphs on their way to a program: nobody asks how it is quantized."""

    rule = QuantRule.INTERNAL


class FloatOp(Op):
    """An op on real numbers.

    float16 and bfloat16 operands are computed in float32 and rounded to their own type once, at the op's end. Results
    follow IEEE 754 and raise no warning: overflow gives infinity, 0/0 gives NaN, as in every runtime.
    """

    def compute_all(self, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
        """`compute`, in float32 where an operand is of half precision."""
        half = next((array.dtype for array in arrays if array.dtype.itemsize == 2 and is_real(array)), None)
        with np.errstate(all="ignore"):
            if half is None:
                return super().compute_all(arrays)
            wide = tuple(array.astype(np.float32) if array.dtype == half else array for array in arrays)
            return tuple(
                result.astype(half) if result.dtype == np.float32 else result for result in super().compute_all(wide)
            )


class Mover(Op):
    """An op whose result has elements of its data, elsewhere; of any dtype."""

    rule = QuantRule.SAME
    moves = keeps_sign = True


def is_real(array: Array) -> bool:
    """Whether the array holds floats (bfloat16 has a kind of its own in NumPy)."""
    return array.dtype.kind == "f" or array.dtype.name == "bfloat16"


NEVER_NEGATIVE = 0.0, math.inf
"""The ends of what ops give that may be zero."""


def declare(
    base: type[Kind],
    name: str,
    function: Callable[[Array], Array] | Callable[[Array, Array], Array],
    doc: str,
    **facts: object,
) -> type[Kind]:
    """Register an op of a family whose members are one function of arrays each: `base` computes by its `function`."""
    computed = staticmethod(cast("Callable[..., Array]", function))
    fields = {"name": name, "function": computed, "__doc__": doc, "__module__": base.__module__, **facts}
    return cast("type[Kind]", register(type(name.title().replace("_", ""), (base,), fields)))


class Unequal(GraphError):
    """Two sizes that must be the same and are not, as far as can be told."""

    def __init__(self, message: str, *sizes: Dim) -> None:
        super().__init__(message)
        self.sizes = sizes


def require(condition: bool, message: str) -> None:
    """Raise GraphError with `message` unless `condition` holds."""
    if not condition:
        raise GraphError(message)


def need_float(op: Op, *types: TensorType) -> None:
    """The operands hold floats, all of one dtype."""
    need_same_dtype(op, *types)
    require(is_float(types[0].dtype), f"{op.name} wants float operands, not {types[0].dtype}")


def need_number(op: Op, given: TensorType) -> None:
    """The operand holds floats or integers."""
    require(given.dtype != "bool", f"{op.name} wants numbers, not bool")


def need_same_dtype(op: Op, *types: TensorType) -> None:
    """The operands share one dtype."""
    given = [t.dtype for t in types]
    require(len(set(given)) <= 1, f"{op.name} wants operands of one dtype, not {', '.join(given)}; insert a cast")


def need_rank(op: Op, operand: str, given: TensorType, rank: int) -> None:
    """The operand has that many dimensions."""
    require(given.rank == rank, f"{op.name}: {operand} must have {rank} dimensions, not {given.rank}: {given}")


def need_equal(op: Op, what: str, given: Dim | tuple[Dim, ...], wanted: Dim | tuple[Dim, ...]) -> None:
    """A size, or a shape, is the one that the other operands ask for."""
    if given == wanted:
        return
    message = f"{op.name}: {what} is {given}, but must be {wanted}"
    left, right = (part if isinstance(part, tuple) else (part,) for part in (given, wanted))
    for pair in zip(left, right, strict=False):
        if pair[0] != pair[1]:
            raise Unequal(message, *pair)
    raise GraphError(message)


def axis_within(op: Op, axis: int, rank: int) -> int:
    """The axis, counted from the front; -1 and the like only where the op's default is so."""
    require(-rank <= axis < rank, f"{op.name}: axis {axis} is outside a tensor of {rank} dimensions")
    return axis % rank if rank else 0


def fixed(op: Op, what: str, dim: Dim) -> int:
    """A size that must be known before the data is there."""
    number, symbol = dim_factors(dim)
    require(symbol is None, f"{op.name}: {what} is {dim}, but must be a number; fix the size of that input")
    return number


def replaced(shape: Sequence[Dim], axis: int, dim: Dim) -> tuple[Dim, ...]:
    """The shape with one size changed."""
    return (*shape[:axis], dim, *shape[axis + 1 :])


def broadcast(op: Op, *shapes: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """NumPy's broadcasting of shapes; a symbol fits itself and 1."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    result: list[Dim] = []
    for dims in zip(*padded, strict=True):
        sizes = [dim for dim in dict.fromkeys(dims) if dim != 1]
        if len(sizes) > 1:
            raise Unequal(f"{op.name}: shapes {', '.join(map(str, shapes))} do not broadcast", *sizes[:2])
        result.append(sizes[0] if sizes else 1)
    return tuple(result)
