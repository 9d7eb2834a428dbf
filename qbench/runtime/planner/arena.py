"""One block of memory for all buffers of a run: those that are not needed at the same time share their bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

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
    firsts, lasts = (np.array([getattr(one, name) for one in buffers], np.int64) for name in ("first", "last"))
    offsets, ends, total = np.zeros(len(buffers), np.int64), np.zeros(len(buffers), np.int64), 0
    largest = sorted(range(len(buffers)), key=lambda n: -buffers[n].size)
    order = np.array(largest, np.int64)
    for count, number in enumerate(largest):
        buffer, others = buffers[number], order[:count]
        wanted = _padded(buffer.size)
        beside = others[(firsts[others] <= buffer.last) & (lasts[others] >= buffer.first)]
        beside = beside[np.argsort(offsets[beside])]
        taken = np.maximum.accumulate(np.concatenate([[0], ends[beside]]))  # up to here by those that begin before
        (free,) = np.nonzero(taken[:-1] + wanted <= offsets[beside])
        offsets[number] = taken[free[0] if len(free) else -1]
        ends[number] = offsets[number] + wanted
        total = max(total, int(ends[number]))
    return offsets.tolist(), total


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
