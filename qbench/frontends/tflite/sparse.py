"""Sparse constants, which keep only some of their elements: where each stands in the whole array.

A path of levels leads to each stored element, as in TACO's formats (Kjolstad and others, 2017), which TFLite takes
over: at a dense level it has every place, at a sparse one those that a list names. The levels are the tensor's axes in
some order, then those of the blocks into which some axes are cut.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qbench.errors import ModelError
from qbench.frontends.tflite.source import Array

MOST_ELEMENTS = 2**26
"""Of the whole array: a few bytes of a damaged file could ask for any number."""


@dataclass(frozen=True)
class Level:
    """One step of the way: how many places there are, or which: `indices` from each of `segments` to the next."""

    size: int
    segments: Array | None = None
    indices: Array | None = None


@dataclass(frozen=True)
class Sparsity:
    """The way to the elements.

    Parameters
    ----------
    order
        By level: the axis, or (from the tensor's rank on) the number of the block.
    blocks
        By block: the axis that is cut.
    levels
        In order.
    """

    order: Sequence[int]
    blocks: Sequence[int]
    levels: Sequence[Level]

    def dense(self, stored: Array, shape: tuple[int, ...]) -> Array:
        """The whole array, zeros between the stored elements; ModelError where they do not fit together."""
        rank = len(shape)
        fits = len(self.levels) == len(self.order) == rank + len(self.blocks)
        if not fits or sorted(self.order) != [*range(len(self.order))] or not {*self.blocks} <= {*range(rank)}:
            raise ModelError(f"its levels {[*self.order]} and blocks {[*self.blocks]} do not make {rank} axes")
        if min(shape, default=0) < 0 or math.prod(shape) > MOST_ELEMENTS:
            raise ModelError(f"shape {shape} is open, or has more than {MOST_ELEMENTS} elements")
        places = self._places(stored.size)
        at = [places[[*self.order].index(axis)] for axis in range(rank)]
        for number, axis in enumerate(self.blocks):
            level = [*self.order].index(rank + number)
            at[axis] = at[axis] * self.levels[level].size + places[level]
        for axis, size in enumerate(shape):
            if at[axis].size and not 0 <= at[axis].min() <= at[axis].max() < size:
                raise ModelError(f"an element stands beyond axis {axis} of size {size}")
        whole = np.zeros(shape, stored.dtype)
        whole[tuple(at)] = stored
        return whole

    def _places(self, count: int) -> list[Array]:
        """By level: the place of each of the stored elements."""
        found: list[Array] = []
        ways = 1
        for level in self.levels:
            if level.segments is None or level.indices is None:
                if not 0 <= ways * level.size <= count:
                    raise ModelError(f"its levels lead to more than the {count} elements that are stored")
                steps, place = np.full(ways, level.size), np.tile(np.arange(level.size), ways)
            else:
                steps, place = np.diff(level.segments.astype(np.int64)), level.indices.astype(np.int64)
                if len(steps) != ways or steps.min(initial=0) < 0 or not steps.sum() == len(place) <= count:
                    raise ModelError(f"{len(place)} indices do not go with {ways} segments")
            ways = int(steps.sum())
            found = [np.repeat(before, steps) for before in found] + [place]
        if ways != count:
            raise ModelError(f"its levels lead to {ways} elements, but {count} are stored")
        return found
