"""Exact integer products at the speed of floating-point matrix multiplication.

A float type holds every integer up to 2^(bits of its significand). As long as the sum of the absolute products stays
below that, no order of summation rounds, so BLAS gives the exact integer.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from qbench.errors import GraphError
from qbench.ir.op import Array

Accumulator = Literal["int32", "int64"]
"""Type of sums; chosen by realize so that no sum can leave it."""


def centred(array: Array, zero_point: int | tuple[int, ...], axis: int = 0) -> NDArray[np.int64]:
    """``array - zero_point`` as int64, the zero point per index of `axis` where it is a tuple."""
    wide = array.astype(np.int64)
    if isinstance(zero_point, int):
        return wide - zero_point if zero_point else wide
    shape = [1] * array.ndim
    shape[axis] = len(zero_point)
    return wide - np.asarray(zero_point, np.int64).reshape(shape)


def largest_sum(weight: NDArray[np.int64], axis: int) -> int:
    """The largest sum of absolute weights that one output along `axis` has."""
    others = tuple(i for i in range(weight.ndim) if i != axis)
    return int(np.abs(weight).sum(axis=others).max(initial=0))


def exact_dtype(data: NDArray[np.int64], sum_of_weights: int) -> type[np.floating[Any]]:
    """The narrowest float type in which products of `data` with weights of that absolute sum are exact.

    Raises
    ------
    GraphError
        The sums may reach 2^53, where even float64 rounds.
    """
    bound = int(np.abs(data).max(initial=0)) * sum_of_weights
    if bound < 2**24:
        return np.float32
    if bound < 2**53:
        return np.float64
    raise GraphError(f"an accumulator may reach {bound}, beyond the 2^53 that can be summed exactly")


def to_accumulator(sums: Array, dtype: Accumulator) -> Array:
    """Exact sums as integers of that type; GraphError rather than wrapping around."""
    info = np.iinfo(dtype)
    if sums.size and (sums.max() > info.max or sums.min() < info.min):
        raise GraphError(f"an accumulator of {sums.min():.0f}..{sums.max():.0f} does not fit in {dtype}")
    return sums.astype(dtype)
