"""What loops over memory share: the division of work among threads, and indices that compile to plain addresses."""

from typing import Any

import numpy as np

from qbench.kernels.jit import register_jitable


@register_jitable
def share(count: Any, thread: Any, threads: Any, block: Any = 1) -> Any:
    """First and last + 1 of the units that one thread does; units come in blocks that are not divided."""
    blocks = (count + block - 1) // block
    return blocks * thread // threads * block, min(blocks * (thread + 1) // threads * block, count)


@register_jitable
def at(index: Any) -> Any:
    """An index that is known not to be negative: Numba needs no test for counting from the end, and loops get fast."""
    return np.uint64(index)
