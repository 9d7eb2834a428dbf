"""Which pixels under a depthwise window are multiplied together, by twos or fours, for several outputs at once."""

from dataclasses import dataclass
from functools import cached_property

Pixels = tuple[tuple[int, int], ...]
"""Pixels (row, column) of the input patch that are woven together; what is missing counts as zero."""


@dataclass(frozen=True)
class Use:
    """One output's need of pixels that are woven together."""

    slot: int
    """Which ones of the patch's: they lie in this order."""
    column: int
    pattern: int
    """Index in `Sweep.patterns`."""


@dataclass(frozen=True)
class Sweep:
    """A block of outputs that is made at once while it moves along the rows, and the patch of input that it needs.

    Each input column is cut into as many rows as are woven together; of the rows that are left over, several columns
    are, unless columns come one by one.
    """

    kernel: tuple[int, int]
    strides: tuple[int, int]
    rows: int
    """Output rows of a block."""
    columns: int
    """Output columns of a block: so many that the next block's patch begins with a group of columns; or one."""
    taps: int = 4
    """How many are multiplied together (`Lanes.taps`)."""

    def __str__(self) -> str:
        return ".".join(f"{y}x{x}" for y, x in (self.kernel, self.strides, (self.rows, self.columns)))

    @property
    def input_rows(self) -> int:
        """Rows of the input patch."""
        return self.kernel[0] + (self.rows - 1) * self.strides[0]

    @property
    def group_columns(self) -> int:
        """Input columns that are woven together."""
        left = self.input_rows % self.taps
        return self.taps // left if left and self.columns > 1 else 1

    @cached_property
    def group(self) -> tuple[Pixels, ...]:
        """What is woven together in one group of columns."""
        taps, columns = self.taps, range(self.group_columns)
        whole, left = divmod(self.input_rows, taps)
        together = [tuple((taps * part + i, x) for i in range(taps)) for x in columns for part in range(whole)]
        rest = tuple((taps * whole + i, x) for x in columns for i in range(left))
        return (*together, rest) if rest else tuple(together)

    @property
    def step(self) -> int:
        """Groups of columns from block to block."""
        return self.columns * self.strides[1] // self.group_columns

    def groups(self, outputs: int) -> int:
        """Groups of columns that a row of outputs needs."""
        blocks = -(-outputs // self.columns)
        return -(-((blocks * self.columns - 1) * self.strides[1] + self.kernel[1]) // self.group_columns)

    @cached_property
    def patterns(self) -> tuple[tuple[int, ...], ...]:
        """Which taps of the kernel meet pixels woven together; -1 for none: each is one vector of weights."""
        return tuple(sorted({pattern for row in range(self.rows) for _, _, pattern in self._meetings(row)}))

    def uses(self, row: int) -> list[Use]:
        """What the outputs of one row of a block need, in the order of the slots."""
        return [Use(slot, column, self.patterns.index(pattern)) for slot, column, pattern in self._meetings(row)]

    def _meetings(self, row: int) -> list[tuple[int, int, tuple[int, ...]]]:
        meetings: list[tuple[int, int, tuple[int, ...]]] = []
        for slot in range(self.groups(self.columns) * len(self.group)):
            group, index = divmod(slot, len(self.group))
            for column in range(self.columns):
                taps = [self._tap(y, x + group * self.group_columns, row, column) for y, x in self.group[index]]
                if max(taps) >= 0:
                    meetings.append((slot, column, (*taps, *[-1] * (self.taps - len(taps)))))
        return meetings

    def _tap(self, y: int, x: int, row: int, column: int) -> int:
        """The tap with which an output meets a pixel, or -1."""
        y, x = y - row * self.strides[0], x - column * self.strides[1]
        inside = 0 <= y < self.kernel[0] and 0 <= x < self.kernel[1]
        return y * self.kernel[1] + x if inside else -1
