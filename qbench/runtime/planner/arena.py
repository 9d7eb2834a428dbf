"""One block of memory for all buffers of a run: those that are not needed at the same time share their bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["ALIGNMENT", "Lifetime", "arrange"]

ALIGNMENT = 64
"""Bytes: a cache line, and the widest vector."""
SLACK = 128
"""Readable bytes behind each buffer: vector loads may read on, they never write there."""


@dataclass(frozen=True)
class Lifetime:
    """A buffer's size in bytes, and the first and last step that it is needed in."""

    size: int
    first: int
    last: int

    def meets(self, other: Lifetime) -> bool:
        """Whether both are needed at the same time."""
        return self.first <= other.last and other.first <= self.last


def arrange(buffers: Sequence[Lifetime]) -> tuple[list[int], int]:
    """Byte offsets of the buffers, and the size of the whole.

    Greedy by size, each at the lowest place that is free during its lifetime (Pisarchyk and Lee, "Efficient Memory
    Management for Deep Neural Net Inference", 2020).
    """
    offsets = [0] * len(buffers)
    placed: list[int] = []
    for number in sorted(range(len(buffers)), key=lambda n: -buffers[n].size):
        wanted = _padded(buffers[number].size)
        offset = 0
        for start, end in sorted(
            (offsets[other], offsets[other] + _padded(buffers[other].size))
            for other in placed
            if buffers[other].meets(buffers[number])
        ):
            if offset + wanted <= start:
                break
            offset = max(offset, end)
        offsets[number] = offset
        placed.append(number)
    total = max((offsets[n] + _padded(buffers[n].size) for n in placed), default=0)
    return offsets, total


def _padded(size: int) -> int:
    return -(-(size + SLACK) // ALIGNMENT) * ALIGNMENT if size else 0
