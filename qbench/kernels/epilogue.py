"""What a tile does with its accumulators: rescale them to codes, or store them as they are."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from qbench.kernels.isa.base import Isa
from qbench.kernels.isa.emit import F32, I8, I16, I32, I64, at, call, load, pointer, splat, store, vector
from qbench.kernels.rescale import RESCALES, Rescale
from qbench.quant.rounding import Rounding

VectorCodes = Literal["float", "fixed", "fixed_left", "fixed_float", "fixed_double"]
EpilogueName = VectorCodes | Literal["exact", "accumulators"]
"""How a kernel ends.

``float``
    ``fp32_rne``, in vectors.
``fixed``, ``fixed_left``
    Fixed point with ties up, in vectors: multipliers between 2^-24 and 1/4, or any for which accumulators leave room.
``fixed_float``
    The same as fast as floats, for small accumulators.
``fixed_double``
    ``tflite_double`` in vectors: accumulators up to 2^28, less where the multiplier is above one.
``exact``
    Every mode, one number after the other, with 64-bit biases.
``accumulators``
    The int32 sums themselves.
"""

Result = Literal["u1", "i2", "f4"]
"""What a kernel's results are: codes, 16-bit integers, or the real numbers that those stand for."""

_HALF_UP = frozenset({"tflite_single", "tvm_upward", "pow2_half_up"})


def choose_epilogue(
    rounding: Rounding,
    bound: NDArray[np.int64],
    mantissa: NDArray[np.int32],
    shift: NDArray[np.int32],
    multiplier: NDArray[np.float32],
    rounds_down: bool = False,
) -> EpilogueName:
    """The fastest epilogue that gives the mode's bits.

    Parameters
    ----------
    bound
        The largest magnitude that each channel's accumulator, bias included, can have.
    mantissa, shift, multiplier
        Of each channel, as `kernels.rounding.rescale_one` takes them.
    rounds_down
        Whether the kernel has ``fixed_float``.

    Notes
    -----
    Results are clamped to 8 bits, so that the fast forms only have to stay inside int32 until then:

    - ``float``: the magnitude of a product grows with that of the accumulator, so it is enough to look at the bound's.
    - ``fixed``: an accumulator below 2^31 times a mantissa below 2^31, shifted right by at least 33, is below 2^30: the
      saturation of ``tflite_single`` cannot happen. Where it is shifted by 54 at most, the zero point can be added
      before: the upper half of the product is below 2^30, that of the zero point at most 255 * 2^22.
    - ``fixed_left``: the same after a left shift of the accumulator that does not overflow.
    - ``fixed_double``: the product's upper half is below 2^29, what is added at most 2^21 + 1 and 255 * 2^22.
    - Without a zero point, the same holds for results that are clamped to 16 bits; not for ``fixed_float``.
    - ``fixed_float``: see `rescale.FixedFloat`; twice an accumulator of 2^24 times a multiplier of 2^4 is below 2^31,
      and a float of 2^-121 is a normal one.
    """
    bound, shift = np.broadcast_arrays(bound, shift)
    if np.any(bound >= 2**31):
        return "exact"
    if rounding == "fp32_rne":
        return "float" if np.all(bound.astype(np.float32) * multiplier < np.float32(2**31)) else "exact"
    if rounding == "tflite_double":
        left = np.clip(shift.astype(np.int64) + 2, 2, 32)
        fits = np.all((bound << left < 2**30) & (shift >= -21) & (mantissa >= 0))
        return "fixed_double" if fits else "exact"
    if rounding not in _HALF_UP or np.any(mantissa < 0):
        return "exact"
    if rounds_down and np.all((bound <= 2**24) & (shift >= -90) & (shift <= 4)):
        return "fixed_float"
    if np.all((shift >= -23) & (shift <= -2)):
        return "fixed"
    left = np.clip(shift.astype(np.int64) + 2, 0, 32)
    return "fixed_left" if np.all(bound << left < 2**31) else "exact"


@dataclass(frozen=True)
class Piece:
    """Results that lie side by side in one row of output."""

    row: int
    first: int
    """The first one's channel in the tile."""
    size: int
    """Bytes of an element."""
    values: Any


@dataclass(frozen=True)
class Output:
    """Where a tile's results go (values of LLVM IR)."""

    start: Any
    """Pointer to the first element."""
    pitch: Any
    """Bytes from row to row (i64)."""
    rows: Any
    """How many of the tile's rows exist (i64, at least 1); the others are copies of the last one."""
    channels: Any
    """How many of the tile's channels exist (i64)."""

    def store(self, b: ir.IRBuilder, isa: Isa, pieces: Sequence[Piece], rows: int, width: int) -> None:
        """Store all pieces of a tile: whole, or only as far as rows and channels exist."""
        whole = b.and_(b.icmp_signed(">=", self.rows, I64(rows)), b.icmp_signed(">=", self.channels, I64(width)))
        with b.if_else(whole, likely=True) as (complete, partial):
            with complete:
                for piece in pieces:
                    store(b, piece.values, self._row(b, I64(piece.row)), piece.first * piece.size)
            with partial:
                last, channels = b.sub(self.rows, I64(1)), b.trunc(self.channels, I32)
                for piece in pieces:
                    row = self._row(b, call(b, "llvm.smin.i64", I64, [I64(piece.row), last]))
                    place = at(b, row, piece.first * piece.size)
                    isa.store_some(b, piece.values, place, b.sub(channels, I32(piece.first)))

    def _row(self, b: ir.IRBuilder, index: Any) -> Any:
        return at(b, self.start, b.mul(index, self.pitch))


class Epilogue(ABC):
    """Ends a tile: emits what turns accumulators into output."""

    @abstractmethod
    def emit(
        self, b: ir.IRBuilder, isa: Isa, rows: Sequence[Sequence[Any]], operands: Sequence[Any], out: Output
    ) -> None:
        """Store the results of ``rows[row][vector]``; `operands` are 64-bit values, known to the kernel's author."""


class Accumulators(Epilogue):
    """Stores vectors as they are; needs no operands."""

    def emit(
        self, b: ir.IRBuilder, isa: Isa, rows: Sequence[Sequence[Any]], operands: Sequence[Any], out: Output
    ) -> None:
        """See `Epilogue.emit`."""
        pieces = [
            Piece(row, v * isa.lanes, 4, value) for row, values in enumerate(rows) for v, value in enumerate(values)
        ]
        out.store(b, isa, pieces, len(rows), len(rows[0]) * isa.lanes)


@dataclass(frozen=True)
class Codes(Epilogue):
    """Rescales, adds the zero point, clamps and narrows to 8 bits.

    Operands: the address of the tile's constants, ``[vectors, constants, lanes]`` of 32 bits (see `pack_scales`); zero
    point, low, high.
    """

    kind: VectorCodes

    def emit(
        self, b: ir.IRBuilder, isa: Isa, rows: Sequence[Sequence[Any]], operands: Sequence[Any], out: Output
    ) -> None:
        """See `Epilogue.emit`."""
        form, vectors = RESCALES[self.kind], len(rows[0])
        constants = _constants(b, isa, form.constants, operands[0], vectors)
        zero_point = None if form.adds_zero_point else b.trunc(operands[1], I16)
        narrow = isa.narrow_halves if form.halves else isa.narrow
        fours = list(_fours(len(rows), vectors))
        codes: list[Any] = []
        for places in fours:
            four = [form.emit(b, isa, rows[r][v], constants[v]) for r, v in places]
            codes.append(narrow(b, four + [splat(isa.accumulator, 0)] * (4 - len(four)), zero_point))
        codes = _clamped(b, codes, *operands[2:4])
        pieces = [
            piece for places, four in zip(fours, codes, strict=True) for piece in _pieces(b, four, places, isa.lanes)
        ]
        out.store(b, isa, pieces, len(rows), vectors * isa.lanes)


@dataclass(frozen=True)
class Words(Epilogue):
    """Rescales, clamps, adds the zero point and narrows to 16 bits.

    Operands: as those of `Codes`, but the constants are those of zero point 0.
    """

    kind: VectorCodes

    def emit(
        self, b: ir.IRBuilder, isa: Isa, rows: Sequence[Sequence[Any]], operands: Sequence[Any], out: Output
    ) -> None:
        """See `Epilogue.emit`."""
        form, vectors, kind = RESCALES[self.kind], len(rows[0]), isa.accumulator
        constants = _constants(b, isa, form.constants, operands[0], vectors)
        zero_points = vector(b, kind, b.trunc(operands[1], I32))
        centred = _centred(b, form, operands[1:4])
        pieces: list[Piece] = []
        for row, values in enumerate(rows):
            for v, sums in enumerate(values):
                scaled = centred(isa, sums, constants[v])
                words = b.trunc(b.add(scaled, zero_points), ir.VectorType(I16, kind.count))
                pieces.append(Piece(row, v * isa.lanes, 2, words))
        out.store(b, isa, pieces, len(rows), vectors * isa.lanes)


@dataclass(frozen=True)
class Reals(Epilogue):
    """Rescales and clamps, or takes the sums as they are, and multiplies by a scale in float32.

    Operands: as those of `Words`; the constants have one number more, the scale.
    """

    kind: VectorCodes | Literal["accumulators"]

    def emit(
        self, b: ir.IRBuilder, isa: Isa, rows: Sequence[Sequence[Any]], operands: Sequence[Any], out: Output
    ) -> None:
        """See `Epilogue.emit`."""
        form, vectors, reals = RESCALES.get(self.kind), len(rows[0]), ir.VectorType(F32, isa.lanes)
        constants = _constants(b, isa, 1 + (form.constants if form else 0), operands[0], vectors)
        centred = _centred(b, form, operands[1:4]) if form else None
        pieces: list[Piece] = []
        for row, values in enumerate(rows):
            for v, sums in enumerate(values):
                *numbers, scale = constants[v]
                integers = centred(isa, sums, numbers) if centred else sums
                real = b.fmul(b.sitofp(integers, reals), b.bitcast(scale, reals))
                pieces.append(Piece(row, v * isa.lanes, 4, b.bitcast(real, isa.accumulator)))
        out.store(b, isa, pieces, len(rows), vectors * isa.lanes)


def _constants(b: ir.IRBuilder, isa: Isa, count: int, scales: Any, vectors: int) -> list[list[Any]]:
    """What is read for each vector of channels: so many numbers for each channel."""
    start, each = pointer(b, scales), 4 * isa.lanes
    return [[load(b, start, isa.accumulator, each * (v * count + i)) for i in range(count)] for v in range(vectors)]


def _centred(b: ir.IRBuilder, form: type[Rescale], operands: Sequence[Any]) -> Callable[[Isa, Any, Sequence[Any]], Any]:
    """What rescales a vector of sums to integers less their zero point, between bounds; `operands` as for `Words`."""
    zero_point, *bounds = operands

    def emit(isa: Isa, sums: Any, constants: Sequence[Any]) -> Any:
        kind = isa.accumulator
        low, high = (vector(b, kind, b.trunc(b.sub(bound, zero_point), I32)) for bound in bounds)
        scaled = call(b, f"llvm.smax.v{kind.count}i32", kind, [form.emit(b, isa, sums, constants), low])
        return call(b, f"llvm.smin.v{kind.count}i32", kind, [scaled, high])

    return emit


def _clamped(b: ir.IRBuilder, codes: Sequence[Any], low: Any, high: Any) -> list[Any]:
    """Vectors of codes between bounds; often the bounds are those of the type, and there is nothing to do."""
    before, clamp, done = b.block, b.append_basic_block("clamp"), b.append_basic_block("clamped")
    b.cbranch(b.and_(b.icmp_signed("==", low, I64(0)), b.icmp_signed("==", high, I64(255))), done, clamp)
    b.position_at_end(clamp)
    kind = codes[0].type
    low, high = (vector(b, kind, b.trunc(bound, I8)) for bound in (low, high))
    clamped = [call(b, f"llvm.umax.v{kind.count}i8", kind, [four, low]) for four in codes]
    clamped = [call(b, f"llvm.umin.v{kind.count}i8", kind, [four, high]) for four in clamped]
    b.branch(done)
    b.position_at_end(done)
    results: list[Any] = []
    for four, after in zip(codes, clamped, strict=True):
        results.append(b.phi(kind))
        results[-1].add_incoming(four, before)
        results[-1].add_incoming(after, clamp)
    return results


def _fours(rows: int, vectors: int) -> Iterator[list[tuple[int, int]]]:
    """Up to four (row, vector) at a time: as many whole rows as fit, or parts of one."""
    if vectors > 4:
        for row in range(rows):
            for first in range(0, vectors, 4):
                yield [(row, v) for v in range(first, min(first + 4, vectors))]
        return
    step = 4 // vectors
    for first in range(0, rows, step):
        yield [(row, v) for row in range(first, min(first + step, rows)) for v in range(vectors)]


def _pieces(b: ir.IRBuilder, codes: Any, places: Sequence[tuple[int, int]], lanes: int) -> Iterator[Piece]:
    """Cut four vectors' codes into the runs that lie side by side in one row of output."""
    for row in dict.fromkeys(row for row, _ in places):
        mine = [i for i, (r, _) in enumerate(places) if r == row]
        start, count = mine[0] * lanes, len(mine) * lanes
        order = ir.Constant(ir.VectorType(I32, count), list(range(start, start + count)))
        run = codes if count == codes.type.count else b.shuffle_vector(codes, codes, order)
        yield Piece(row, places[mine[0]][1] * lanes, 1, run)
