"""How kernels divide their work among threads."""

from __future__ import annotations

from typing import Any

from numba.extending import register_jitable

__all__ = ["share"]


@register_jitable
def share(count: Any, thread: Any, threads: Any, block: Any = 1) -> Any:
    """First and last + 1 of the units that one thread does; units come in blocks that are not divided."""
    blocks = (count + block - 1) // block
    return blocks * thread // threads * block, min(blocks * (thread + 1) // threads * block, count)
