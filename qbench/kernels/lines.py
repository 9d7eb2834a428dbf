"""A line for each channel, or two, rounded and cut off: what a table of 8-bit codes often holds, in vectors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from qbench.kernels.isa import ISAS, Isa
from qbench.kernels.isa.emit import F32, I8, I32, call, splat, vector
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.levels import Level
from qbench.kernels.memory import address_of
from qbench.kernels.rows import Elementwise, Operand, make_rows
from qbench.kernels.split import share

_FIELDS = ("x", "out", "slopes", "starts", "rows", "channels", "x_pitch", "out_pitch", "low", "high", "kink", "apart")
_WIDEST = 64  # codes of a vector
_MAGIC = 1.5 * 2**23  # what is added to a float32 to have it rounded to an integer, in its last bits
_MARGIN = 1e-4  # from ties; float32 errs by 2e-5 there
_CUTS = 24  # tangents that are tried
_STEEPEST = 512.0  # of slopes: it leaps over all codes between two neighbours


@dataclass(frozen=True, eq=False)
class Lines:
    """``min(max(rint(slope * code + start), low), high)`` for each channel.

    Parameters
    ----------
    slopes, starts
        float32[lines, channels]: of the codes from `kink` on, then of those below, where that is another line.
    low, high
        Codes.
    kink
        The first code of the first line.
    """

    slopes: NDArray[np.float32]
    starts: NDArray[np.float32]
    low: int
    high: int
    kink: int

    def as_read(self, times: int = 1) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Slopes and starts of channels so many times over, and zeros behind them, since vectors read on there."""
        behind = (0, 0), (0, -self.slopes.shape[1] * times % _WIDEST + _WIDEST)
        slopes, starts = (np.pad(np.tile(numbers, times), behind) for numbers in (self.slopes, self.starts))
        return slopes, starts


def lines_through(table: NDArray[np.uint8]) -> Lines | None:
    """The lines that give what a table [channels, 256] of codes holds, each and every one of them, or None.

    A second line begins below the codes of which all channels make the same, as PReLU has it.
    """
    low, high, codes = int(table.min()), int(table.max()), np.arange(table.shape[1], dtype=np.float64)
    if (line := _line_through(table, codes, low, high)) is not None:
        return Lines(line[0][None], line[1][None], low, high, 0)
    unlike = np.flatnonzero((table != table[0]).any(axis=0))
    kink = int(unlike[-1]) + 1 if unlike.size else 0
    if not 0 < kink < len(codes):
        return None
    above, below = (_line_through(table[:, part], codes[part], low, high) for part in (slice(kink, None), slice(kink)))
    if above is None or below is None:
        return None
    return Lines(np.stack([above[0], below[0]]), np.stack([above[1], below[1]]), low, high, kink)


_Line = tuple[NDArray[np.float32], NDArray[np.float32]]


def _line_through(table: NDArray[np.uint8], codes: NDArray[np.float64], low: int, high: int) -> _Line | None:
    """Slopes and starts of lines by which each channel's entries for some codes are reached.

    A line suits if it passes through all intervals of half a code around the table's; how much room it has is a concave
    function of its slope, whose maximum lies where tangents meet (Kelley's cutting planes, 1960).
    """
    values = table.astype(np.float64)
    least = np.where(table == low, -np.inf, values - 0.5)
    most = np.where(table == high, np.inf, values + 0.5)
    rows = np.arange(len(table))

    def room(slopes: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """How much of it there is, how that changes with the slope, and the start in the middle."""
        upper, lower = most - slopes[:, None] * codes, least - slopes[:, None] * codes
        first, last = upper.argmin(axis=1), lower.argmax(axis=1)
        over, under = np.clip(upper[rows, first], -1e9, 1e9), np.clip(lower[rows, last], -1e9, 1e9)
        return over - under, codes[last] - codes[first], (over + under) / 2

    left, right = np.full(len(table), -_STEEPEST), np.full(len(table), _STEEPEST)
    (left_room, left_turn, _), (right_room, right_turn, _) = room(left), room(right)
    slopes = np.where(left_turn <= 0, left, np.where(right_turn >= 0, right, 0.0))  # steps: the steeper the better
    found, turn, starts = room(slopes)
    for _ in range(_CUTS):
        if (found > 2 * _MARGIN).all():
            break
        rises = turn > 0
        left, left_room, left_turn = (
            np.where(rises, new, old) for new, old in ((slopes, left), (found, left_room), (turn, left_turn))
        )
        right, right_room, right_turn = (
            np.where(rises, old, new) for new, old in ((slopes, right), (found, right_room), (turn, right_turn))
        )
        apart = np.where(left_turn > right_turn, left_turn - right_turn, 1.0)
        meet = (right_room - left_room + left_turn * left - right_turn * right) / apart
        better = np.where(left_turn > right_turn, np.clip(meet, left, right), slopes)
        slopes = np.where(found > 2 * _MARGIN, slopes, better)
        found, turn, starts = room(slopes)
    single = slopes.astype(np.float32), starts.astype(np.float32)
    reached = single[0].astype(np.float64)[:, None] * codes + single[1].astype(np.float64)[:, None]
    if not ((reached > least + _MARGIN) & (reached < most - _MARGIN)).all():
        return None
    return single


class _Along(Elementwise):
    """Operands: the bits of the float32 bounds, and of the code where the first line begins if there are two."""

    output = "u1"

    def __init__(self, lines: int) -> None:
        numbers: list[Operand] = ["f4", "f4"]
        self.inputs = ("u1", *numbers * lines)

    def prepare(self, b: ir.IRBuilder, isa: Isa, operands: Sequence[Any]) -> Any:
        kind = ir.VectorType(F32, 4 * isa.lanes)
        return [vector(b, kind, b.bitcast(b.trunc(bits, I32), F32)) for bits in operands]

    def apply(self, b: ir.IRBuilder, isa: Isa, prepared: Any, vectors: Sequence[Any]) -> Any:
        low, high, kink = prepared
        kind = low.type
        codes, *lines = vectors
        words = ir.VectorType(I32, kind.count)
        x = b.uitofp(b.zext(codes, words), kind)
        numbers = [b.bitcast(bits, kind) for bits in lines]
        reached = [
            call(b, f"llvm.fma.v{kind.count}f32", kind, [x, slopes, starts])
            for slopes, starts in zip(numbers[::2], numbers[1::2], strict=True)
        ]
        y = reached[0] if len(reached) == 1 else b.select(b.fcmp_ordered(">=", x, kink), *reached)
        y = b.select(b.fcmp_ordered(">", low, y), low, y)
        y = b.select(b.fcmp_ordered("<", high, y), high, y)
        rounded = b.bitcast(b.fadd(y, splat(kind, _MAGIC)), words)
        return b.trunc(rounded, ir.VectorType(I8, kind.count))


@makes_kernels
def lines_kernel(level: Level, lines: int = 1) -> Kernel:
    """:class:`Lines` over codes [rows, channels], channels last, at a level with vectors.

    `x_pitch` and `out_pitch` elements lie between one row and the next; `low`, `high` and `kink` are the bits of
    float32. `slopes` and `starts` are the addresses of the first line's; `apart` bytes behind lie the second one's.
    """
    rows = make_rows(ISAS[level], _Along(lines))
    two = lines > 1

    def function(args: Any, bases: Any, thread: int, threads: int) -> None:
        first, end = share(args.rows, thread, threads)
        x, out = address_of(bases, args.x) + first * args.x_pitch, address_of(bases, args.out) + first * args.out_pitch
        slopes, starts = address_of(bases, args.slopes), address_of(bases, args.starts)
        bounds = args.low, args.high, args.kink
        if two:
            inputs = x, slopes, starts, slopes + args.apart, starts + args.apart
            rows(
                inputs,
                (args.x_pitch, 0, 0, 0, 0),
                (1, 1, 1, 1, 1),
                out,
                args.out_pitch,
                end - first,
                args.channels,
                bounds,
            )
        else:
            rows(
                (x, slopes, starts),
                (args.x_pitch, 0, 0),
                (1, 1, 1),
                out,
                args.out_pitch,
                end - first,
                args.channels,
                bounds,
            )

    return Kernel(f"lines.{level}{'.two' if two else ''}", record(**dict.fromkeys(_FIELDS, "i8")), function)
