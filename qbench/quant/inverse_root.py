"""One over the square root of an integer, as an integer and a shift to the right."""

import numpy as np

from qbench.ir.op import Array

NORMAL_BITS = 16
_LEAST = 1 << 60


def inverse_root(squares: Array) -> tuple[Array, Array]:
    """Integers m and shifts s with ``m / 2^(s - 16)`` the inverse roots, exact to 30 bits.

    Parameters
    ----------
    squares
        int64, from 0 (for which 1 is taken) to 2^62 - 1.

    Returns
    -------
    tuple[Array, Array]
        int64 from 2^30 to 2^31, and from 15 to 45.
    """
    wide, doubled = np.maximum(squares, 1), np.zeros_like(squares)
    for _ in range(30):
        small = wide < _LEAST
        wide, doubled = np.where(small, wide << 2, wide), doubled + small
    root = np.sqrt(wide.astype(np.float64)).astype(np.int64)
    root -= root * root > wide
    root += (root + 1) * (root + 1) <= wide
    return (np.int64(1) << 61) // root, 61 - NORMAL_BITS - doubled
