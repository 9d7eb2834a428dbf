"""A chain of instructions a few rows at a time, so that what passes from one to the next stays in the cache."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qbench.runtime.step import Instruction, Rows

BUDGET = 1 << 20
"""Bytes of all that passes on at a time."""


class _Strips(NamedTuple):
    group: NDArray[np.int64]
    first: NDArray[np.int64]
    here: NDArray[np.int64]
    """How many rows of its group, from the first on."""


def strips(chain: Sequence[Instruction]) -> list[Instruction]:
    """The instructions of a chain, again and again, each time for the next rows.

    Parameters
    ----------
    chain
        Each has `rows`, and reads those that the last one has made; what makes none only looks at them.
    """
    making = [instruction for instruction in chain if _rows(instruction).makes]
    groups = max(_rows(instruction).groups for instruction in chain)
    count = _rows(chain[0]).groups * _rows(chain[0]).count // groups
    passed = sum(_rows(instruction).pitches[_rows(instruction).makes] for instruction in making[:-1])
    height = min(max(BUDGET // passed, 1), count)
    tiles = [_rows(instruction).together for instruction in chain]
    even = math.lcm(*tiles) if math.lcm(*tiles) <= height else max(tiles)
    height -= height % even if height > even else 0
    group, first = (axis.reshape(-1) for axis in np.mgrid[:groups, 0:count:height])
    strip = _Strips(group, first, np.minimum(height, count - first))
    columns = list[list[Instruction]]()
    last: Instruction | None = None
    for one in chain:
        still = {_rows(one).makes} if one is not making[-1] else set[str]()
        if last is not None and last is not making[-1] and (read := one.reads_rows_of(last)):
            still |= {read, *_rows(one).reads[read]}
        columns.append(_parts(one, strip, count, still))
        last = one if _rows(one).makes else last
    return [part for at in zip(*columns, strict=True) for part in at]


def _rows(instruction: Instruction) -> Rows:
    assert instruction.rows is not None
    return instruction.rows


def _parts(instruction: Instruction, strip: _Strips, count: int, still: set[str]) -> list[Instruction]:
    """One instruction's part of each strip; some fields stand still: what is passed on lies at one place every time."""
    rows, records = _rows(instruction), np.recarray(len(strip.first), instruction.kernel.arguments)
    records[:] = instruction.arguments
    flat = np.zeros_like(strip.group), strip.group * count + strip.first
    group, first = flat if rows.groups == 1 else (strip.group, strip.first)
    for steps, by in ((first, rows.pitches), (group, rows.jumps)):
        for field in by.keys() - still:
            records[field] += steps * by[field]
    for field, each in rows.counts.items():
        records[field] = strip.here * each
    for field, value in rows.single.items():
        records[field] = value
    return [replace(instruction, arguments=records[i : i + 1]) for i in range(len(records))]
