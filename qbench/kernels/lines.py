"""A line for each channel, rounded and cut off: what a table of 8-bit codes often holds, in vectors."""

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
from qbench.kernels.rows import Elementwise, make_rows
from qbench.kernels.split import share

_FIELDS = ("x", "out", "slopes", "starts", "rows", "channels", "x_pitch", "out_pitch", "low", "high")
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
        float32[channels], and zeros behind them as vectors read them.
    low, high
        Codes.
    """

    slopes: NDArray[np.float32]
    starts: NDArray[np.float32]
    low: int
    high: int


def lines_through(table: NDArray[np.uint8]) -> Lines | None:
    """The lines that give what a table [channels, 256] of codes holds, each and every one of them, or None.

    A line suits if it passes through all intervals of half a code around the table's; how much room it has is a concave
    function of its slope, whose maximum lies where tangents meet (Kelley's cutting planes, 1960).
    """
    low, high = int(table.min()), int(table.max())
    values, codes = table.astype(np.float64), np.arange(table.shape[1], dtype=np.float64)
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
    slopes_32, starts_32 = (np.pad(values, (0, -len(values) % _WIDEST + _WIDEST)) for values in single)
    return Lines(slopes_32, starts_32, low, high)


class _Line(Elementwise):
    """Operands: the bits of the float32 bounds."""

    inputs = ("u1", "f4", "f4")
    output = "u1"

    def prepare(self, b: ir.IRBuilder, isa: Isa, operands: Sequence[Any]) -> Any:
        kind = ir.VectorType(F32, 4 * isa.lanes)
        return [vector(b, kind, b.bitcast(b.trunc(bits, I32), F32)) for bits in operands]

    def apply(self, b: ir.IRBuilder, isa: Isa, prepared: Any, vectors: Sequence[Any]) -> Any:
        low, high = prepared
        kind = low.type
        codes, slopes, starts = vectors
        words = ir.VectorType(I32, kind.count)
        x = b.uitofp(b.zext(codes, words), kind)
        slopes, starts = b.bitcast(slopes, kind), b.bitcast(starts, kind)
        y = call(b, f"llvm.fma.v{kind.count}f32", kind, [x, slopes, starts])
        y = b.select(b.fcmp_ordered(">", low, y), low, y)
        y = b.select(b.fcmp_ordered("<", high, y), high, y)
        rounded = b.bitcast(b.fadd(y, splat(kind, _MAGIC)), words)
        return b.trunc(rounded, ir.VectorType(I8, kind.count))


@makes_kernels
def lines_kernel(level: Level) -> Kernel:
    """:class:`Lines` over codes [rows, channels], channels last, at a level with vectors.

    `x_pitch` and `out_pitch` elements lie between one row and the next; `low` and `high` are the bits of float32.
    """
    rows = make_rows(ISAS[level], _Line())

    def function(args: Any, bases: Any, thread: int, threads: int) -> None:
        first, end = share(args.rows, thread, threads)
        x, out = address_of(bases, args.x) + first * args.x_pitch, address_of(bases, args.out) + first * args.out_pitch
        inputs = x, address_of(bases, args.slopes), address_of(bases, args.starts)
        pitches, steps, bounds = (args.x_pitch, 0, 0), (1, 1, 1), (args.low, args.high)
        rows(inputs, pitches, steps, out, args.out_pitch, end - first, args.channels, bounds)

    return Kernel(f"lines.{level}", record(**dict.fromkeys(_FIELDS, "i8")), function)
