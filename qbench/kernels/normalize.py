"""Layer and RMS normalization of integers along rows."""

from typing import Any

import numpy as np

from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view
from qbench.kernels.split import share

_LEAST = 2**60


@makes_kernels
def normalize_kernel(dtype: str, centred: bool, normal_bits: int, shift: int) -> Kernel:
    """Each row as `ops.integer.normalize` says.

    Parameters
    ----------
    dtype
        Of x: uint8 (int8 as codes), int16 or uint16.
    centred
        Whether the mean is taken away.
    normal_bits, shift
        What the normalized numbers have after the point, and what is left out behind gamma.

    Returns
    -------
    Kernel
        Its fields are x and y, the references; gamma and beta, of int16 and int32 rows; rows and count, the sizes;
        zero_point and epsilon.
    """
    element = np.dtype(dtype)
    size, half = element.itemsize, 1 << (shift - 1)

    def run(args, bases, thread, threads):
        first, end = share(args.rows, thread, threads)
        count, zero_point = args.count, args.zero_point
        gamma = view(bases, args.gamma, count, np.int16)
        beta = view(bases, args.beta, count, np.int32)
        for row in range(first, end):
            x = view(bases, args.x + row * count * size, count, element)
            y = view(bases, args.y + row * count * 4, count, np.int32)
            total = squares = np.int64(0)
            for i in range(count):
                number = np.int64(x[i]) - zero_point
                total += number
                squares += number * number
            total = total if centred else np.int64(0)
            inverse, right = _inverse_root(count * squares - total * total + args.epsilon, normal_bits)
            up = np.int64(1) << (right - 1)
            for i in range(count):
                normal = ((count * (np.int64(x[i]) - zero_point) - total) * inverse + up) >> right
                y[i] = ((normal * gamma[i] + half) >> shift) + beta[i]

    names = ("x", "y", "gamma", "beta", "rows", "count", "zero_point", "epsilon")
    return Kernel(f"normalize.{dtype}.{'layer' if centred else 'rms'}", record(**dict.fromkeys(names, "i8")), run)


@register_jitable
def _inverse_root(squares: Any, normal_bits: Any) -> Any:
    """The numbers of `quant.inverse_root`."""
    wide, doubled = max(squares, np.int64(1)), 0
    while wide < _LEAST:
        wide <<= 2
        doubled += 1
    root = np.int64(np.sqrt(np.float64(wide)))
    if root * root > wide:
        root -= 1
    if (root + 1) * (root + 1) <= wide:
        root += 1
    return (np.int64(1) << 61) // root, 61 - normal_bits - doubled
