"""How values lie in memory: the order of their axes, and a border of padding where a convolution wants one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from qbench.ir.graph import Graph

Border = tuple[int, int, int, int]
"""Rows on top, columns at the left, rows at the bottom, columns at the right."""


@dataclass(frozen=True)
class Layout:
    """Order and border of a value in memory.

    Parameters
    ----------
    axes
        The axis of the value at each place in memory, outermost first.
    border
        Rows and columns of padding that lie around each image, for channels-last values.
    fill
        What the border is filled with, as it is stored (8-bit integers as codes).
    """

    axes: tuple[int, ...]
    border: Border = (0, 0, 0, 0)
    fill: float = 0

    def order(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The axes whose size is not 1, in memory order: layouts that agree in this and the border are the same."""
        return tuple(axis for axis in self.axes if shape[axis] != 1)

    def same(self, other: Layout, shape: tuple[int, ...]) -> bool:
        """Whether a value of this shape lies alike in both."""
        return (self.order(shape), self.border) == (other.order(shape), other.border) and (
            not any(self.border) or self.fill == other.fill
        )

    def __str__(self) -> str:
        named = "".join("NCHW"[axis] for axis in self.axes) if len(self.axes) == 4 else "row-major"
        return named + (f", border {self.border}" if any(self.border) else "")


CHANNELS_LAST = Layout((0, 2, 3, 1))


def row_major(rank: int) -> Layout:
    """The order of NumPy and of model files."""
    return Layout(tuple(range(rank)))


def kept_first(rank: int, reduced: Collection[int]) -> Layout:
    """The axes that a reduction keeps in their order, those that it reduces behind them."""
    kept = (axis for axis in range(rank) if axis not in reduced)
    return Layout((*kept, *sorted(reduced)))


def natural(rank: int) -> Layout:
    """What a value gets where nothing else is asked for: images channels-last, others row-major."""
    return CHANNELS_LAST if rank == 4 else row_major(rank)


def shape_of(graph: Graph, value: str) -> tuple[int, ...]:
    """The shape of a value of a graph whose sizes are known."""
    return tuple(int(dim) for dim in graph.types[value].shape)
