"""Multiply and add with one rounding in float32, as processors with FMA instructions do it."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def fused_multiply_add(a: ArrayLike, b: ArrayLike, c: ArrayLike) -> NDArray[np.float32]:
    """``a * b + c`` of finite float32 numbers, rounded once, to even; the operands broadcast.

    Notes
    -----
    In float64 the product is exact, and the error of the sum is known exactly (Knuth's two-sum). Rounding the sum to
    odd before it is rounded to float32 gives what one rounding gives (Boldo and Melquiond, 2008).
    """
    product = np.asarray(a, np.float32).astype(np.float64) * np.asarray(b, np.float32).astype(np.float64)
    addend = np.asarray(c, np.float32).astype(np.float64)
    total = product + addend
    of_addend = total - product
    error = (product - (total - of_addend)) + (addend - of_addend)
    bits = np.asarray(total).view(np.int64)
    outward = np.where((error > 0) == (total > 0), 1, -1)
    odd = np.where((error != 0) & (bits & 1 == 0), bits + outward, bits)
    return odd.view(np.float64).astype(np.float32)
