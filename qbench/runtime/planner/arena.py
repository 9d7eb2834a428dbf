"""One block of memory for all buffers of a run: those that are not needed at the same time share their bytes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from qbench.runtime.guard import PAGE
from qbench.runtime.memory import SLACK

ALIGNMENT = 64
"""Bytes: a cache line, and the widest vector."""


@dataclass(frozen=True)
class Lifetime:
    """A buffer's size in bytes, and the first and last step that it is needed in."""

    size: int
    first: int
    last: int


def arrange(buffers: Sequence[Lifetime]) -> tuple[list[int], int]:
    """Byte offsets of the buffers, and the size of the whole.

    Greedy by size, each at the lowest place that is free during its lifetime (Pisarchyk and Lee, "Efficient Memory
    Management for Deep Neural Net Inference", 2020).
    """
    offsets, total = [0] * len(buffers), 0
    taken: defaultdict[int, set[tuple[int, int]]] = defaultdict(set)  # by step
    for number in sorted(range(len(buffers)), key=lambda n: -buffers[n].size):
        buffer, offset = buffers[number], 0
        steps, wanted = range(buffer.first, buffer.last + 1), _padded(buffer.size)
        for start, end in sorted(set[tuple[int, int]]().union(*(taken[step] for step in steps))):
            if offset + wanted <= start:
                break
            offset = max(offset, end)
        offsets[number], total = offset, max(total, offset + wanted)
        for step in steps:
            taken[step].add((offset, offset + wanted))
    return offsets, total


def spread(buffers: Sequence[Lifetime]) -> tuple[list[int], int, tuple[tuple[int, int], ...]]:
    """Byte offsets of the buffers and the size of the whole, where memory is guarded: no byte has two uses.

    The third result is what lies between buffers, from the end of one to the start of the next: at least a page behind
    the bytes that may be read.
    """
    offsets, gaps, used, page = [0] * len(buffers), list[tuple[int, int]](), 0, 0
    for number, buffer in enumerate(buffers):
        if buffer.size:
            page += PAGE + -(-(buffer.size + SLACK) // PAGE) * PAGE
            offsets[number] = (page - SLACK - buffer.size) // ALIGNMENT * ALIGNMENT
            gaps.append((used, offsets[number]))
            used = offsets[number] + buffer.size
    return offsets, used, tuple(gaps)


def _padded(size: int) -> int:
    return -(-(size + SLACK) // ALIGNMENT) * ALIGNMENT if size else 0
