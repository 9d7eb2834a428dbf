"""Sums of two rescaled tensors, with broadcasting: exact for every type and mode, and in vectors where 32 bits do."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
from llvmlite import ir

from qbench.kernels.fma import fma
from qbench.kernels.isa import ISAS, Element, Isa
from qbench.kernels.isa.emit import I8, I16, I32, call, vector
from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.levels import Level
from qbench.kernels.memory import view
from qbench.kernels.rounding import rescale_one, rescale_plain, round_shift
from qbench.kernels.rows import Elementwise, Operand, walk_pairs
from qbench.kernels.split import at, share
from qbench.kernels.stack import stack_array
from qbench.kernels.walk import extent, extents, index_of, onward, stretch
from qbench.quant.rounding import ROUNDINGS, Rounding

SumKind = Literal["once", "each", "float32", "fused", "tflite"]
"""``once``: the exact sum is rounded once, ``each``: each operand before the sum (QNN), ``float32``: mode fp32_rne,
``fused``: two multiply-adds in float32, a last (`integer.add_fused`), ``tflite``: each operand shifted `left` and
rounded, then the sum."""

Stored = Literal["u1", "i2"]
"""Integers as they lie in memory, 8-bit ones as codes."""

_WALK = extents("a", "b", "y")
_PARAMETERS = {
    "zero_a": "i4", "zero_b": "i4", "mantissa_a": "i8", "mantissa_b": "i8", "shift_a": "i8", "shift_b": "i8",
    "multiplier_a": "f4", "multiplier_b": "f4", "offset": "f4", "zero_point": "i8", "low": "i8", "high": "i8",
    "left": "i8", "mantissa_y": "i8", "shift_y": "i8",
}  # fmt: skip


@makes_kernels
def add_kernel(kind: SumKind, a: Stored, b: Stored, y: Stored, rounding: Rounding, plain: bool = False) -> Kernel:
    """``y = clamp(rescaled(a - zero_a) + rescaled(b - zero_b) + zero_point)``, over axes as `walk.strided` has them.

    Fields are those of `integer.add`, one per operand: mantissas with their sign, `shift_a` alone where the sum is
    rounded once; for ``float32`` only the multipliers, for ``fused`` these and the offset, and what the stored values
    have too much as zero points. `plain` says that `kernels.rounding.is_plain` holds for all
    shifts, where each operand is rounded.
    """
    add_row = {"float32": _float32, "fused": _fused}.get(kind)
    if add_row is None:
        add_row = _once(rounding) if kind == "once" else _each(rounding, plain, kind == "tflite")
    a_type, b_type, y_type = (np.dtype(stored).type for stored in (a, b, y))

    def add(args, bases, thread, threads):
        sizes = args.n0, args.n1, args.n2, args.n3
        first, end = share(args.n0 * args.n1 * args.n2 * args.n3, thread, threads, 64)
        if first >= end:
            return
        of_a, of_b = (args.a0, args.a1, args.a2, args.a3), (args.b0, args.b1, args.b2, args.b3)
        of_y = args.y0, args.y1, args.y2, 1
        a = view(bases, args.a, extent(sizes, of_a), a_type)
        b = view(bases, args.b, extent(sizes, of_b), b_type)
        y = view(bases, args.y, extent(sizes, of_y), y_type)
        one, other = stack_array(1, b_type), stack_array(1, a_type)
        place, count = stretch(sizes, first, end)
        while first < end:
            start_a, start_b, start_y = index_of(place, of_a), index_of(place, of_b), index_of(place, of_y)
            if args.a3 == 1 and args.b3 == 1:  # the steps are constants for the compiler, so it makes vectors
                add_row(args, a, b, y, start_a, 1, start_b, 1, start_y, count)
            elif args.a3 == 1 and args.b3 == 0:
                one[0] = b[at(start_b)]
                add_row(args, a, one, y, start_a, 1, 0, 0, start_y, count)
            elif args.a3 == 0 and args.b3 == 1:
                other[0] = a[at(start_a)]
                add_row(args, other, b, y, 0, 0, start_b, 1, start_y, count)
            else:
                add_row(args, a, b, y, start_a, args.a3, start_b, args.b3, start_y, count)
            first += count
            place, count = onward(sizes, place, end - first)

    name = f"add.{kind}.{a}.{b}.{y}.{rounding}{'.plain' if plain else ''}"
    return Kernel(name, record(a="i8", b="i8", y="i8", **_WALK, **_PARAMETERS), add)


@cache
def _once(rounding: Rounding) -> Any:
    to_even = rounding == "pow2_half_even"

    @register_jitable
    def add_row(args, a, b, y, start_a, step_a, start_b, step_b, start_y, count):
        zero_point, low, high = args.zero_point, args.low, args.high
        mantissa_a, mantissa_b, right = args.mantissa_a, args.mantissa_b, 31 - args.shift_a
        start = -args.zero_a * mantissa_a - args.zero_b * mantissa_b
        if right >= 1 and not to_even:
            right = min(right, 63)
            start += np.int64(1) << (right - 1)
            for i in range(count):
                total = np.int64(a[at(start_a + i * step_a)]) * mantissa_a
                total += np.int64(b[at(start_b + i * step_b)]) * mantissa_b + start
                y[at(start_y + i)] = min(max((total >> right) + zero_point, low), high)
        else:
            for i in range(count):
                total = np.int64(a[at(start_a + i * step_a)]) * mantissa_a
                total += np.int64(b[at(start_b + i * step_b)]) * mantissa_b + start
                y[at(start_y + i)] = min(max(round_shift(total, right, to_even) + zero_point, low), high)

    return add_row


@cache
def _each(rounding: Rounding, plain: bool, twice: bool) -> Any:
    rescale, mode = rescale_plain if plain else rescale_one, ROUNDINGS.index(rounding)

    @register_jitable
    def add_row(args, a, b, y, start_a, step_a, start_b, step_b, start_y, count):
        zero_a, zero_b, zero_point, low, high = args.zero_a, args.zero_b, args.zero_point, args.low, args.high
        mantissa_a, mantissa_b, shift_a, shift_b = (
            abs(args.mantissa_a),
            abs(args.mantissa_b),
            args.shift_a,
            args.shift_b,
        )
        sign_a, sign_b = 1 if args.mantissa_a >= 0 else -1, 1 if args.mantissa_b >= 0 else -1
        left, mantissa_y, shift_y = args.left, args.mantissa_y, args.shift_y
        for i in range(count):
            one = (np.int64(a[at(start_a + i * step_a)]) - zero_a) << left
            other = (np.int64(b[at(start_b + i * step_b)]) - zero_b) << left
            total = sign_a * rescale(one, mantissa_a, shift_a, np.float32(0), mode)
            total += sign_b * rescale(other, mantissa_b, shift_b, np.float32(0), mode)
            if twice:
                total = rescale(total, mantissa_y, shift_y, np.float32(0), mode)
            y[at(start_y + i)] = min(max(total + zero_point, low), high)

    return add_row


@register_jitable
def _float32(args, a, b, y, start_a, step_a, start_b, step_b, start_y, count):
    zero_a, zero_b, zero_point = np.int32(args.zero_a), np.int32(args.zero_b), np.int32(args.zero_point)
    low, high = np.float32(args.low - args.zero_point), np.float32(args.high - args.zero_point)
    multiplier_a, multiplier_b = args.multiplier_a, args.multiplier_b
    for i in range(count):
        total = np.float32(np.int32(a[at(start_a + i * step_a)]) - zero_a) * multiplier_a
        total += np.float32(np.int32(b[at(start_b + i * step_b)]) - zero_b) * multiplier_b
        y[at(start_y + i)] = np.int32(min(max(np.rint(total), low), high)) + zero_point


@register_jitable
def _fused(args, a, b, y, start_a, step_a, start_b, step_b, start_y, count):
    zero_a, zero_b, zero_point = np.int32(args.zero_a), np.int32(args.zero_b), np.int32(args.zero_point)
    low, high = np.float32(args.low - args.zero_point), np.float32(args.high - args.zero_point)
    multiplier_a, multiplier_b, offset = args.multiplier_a, args.multiplier_b, args.offset
    for i in range(count):
        total = fma(np.float32(np.int32(b[at(start_b + i * step_b)]) - zero_b), multiplier_b, offset)
        total = fma(np.float32(np.int32(a[at(start_a + i * step_a)]) - zero_a), multiplier_a, total)
        y[at(start_y + i)] = np.int32(min(max(np.rint(total), low), high)) + zero_point


@makes_kernels
def add_codes_kernel(level: Level, a: Element, b: Element, y: Element) -> Kernel:
    """The sum rounded once, ties up, in 32-bit arithmetic; see `code_weights`. Last axes have steps of 1 or 0."""
    walk = walk_pairs(ISAS[level], _Sum((a, b), y))

    def add(args, bases, thread, threads):
        operands = args.high_pair, args.low_pair, args.high_start, args.low_start, args.right, args.low, args.high
        walk(args, bases, thread, threads, operands)

    weights = dict.fromkeys(("high_pair", "low_pair", "high_start", "low_start", "right", "low", "high"), "i8")
    return Kernel(f"add.codes.{level}.{a}.{b}.{y}", record(a="i8", b="i8", y="i8", **_WALK, **weights), add)


def code_weights(
    mantissa: tuple[int, int],
    shift: int,
    zeros: tuple[int, int],
    zero_point: int,
    low: int,
    high: int,
    elements: tuple[Element, Element] = ("u1", "u1"),
) -> dict[str, int] | None:
    """The parameters of :func:`add_codes_kernel`; None where 32 bits cannot hold a sum.

    Parameters
    ----------
    mantissa, shift
        Of `integer.add`, rounding once.
    zeros, zero_point, low, high
        Zero points and clamp, as they are stored.
    elements
        What is added.

    Notes
    -----
    A mantissa is ``2^16 h + l``. Both halves fit 16 bits, so that ``a h0 + b h1`` and ``a l0 + b l1`` are one
    instruction each, and ``floor((2^16 H + L) / 2^t) = floor((H + floor(L / 2^16)) / 2^(t - 16))``.
    """
    right = 31 - shift
    if not 17 <= right <= 47:
        return None
    lower = [((m + 2**15) & 0xFFFF) - 2**15 for m in mantissa]
    upper = [(m - part) >> 16 for m, part in zip(mantissa, lower, strict=True)]
    start = (1 << (right - 1)) + (zero_point << right) - sum(m * z for m, z in zip(mantissa, zeros, strict=True))
    if any(not -(2**15) <= part < 2**15 for part in upper):
        return None
    most = [255 if element == "u1" else 2**15 for element in elements]
    below, above = (sum(n * abs(part) for n, part in zip(most, parts, strict=True)) for parts in (lower, upper))
    if below + 2**16 >= 2**31 or above + abs(start >> 16) + (below >> 16) + 2 >= 2**31:
        return None
    pairs = {"high_pair": upper, "low_pair": lower}
    return {
        **{name: (first & 0xFFFF) | (second & 0xFFFF) << 16 for name, (first, second) in pairs.items()},
        "high_start": start >> 16, "low_start": start & 0xFFFF, "right": right - 16, "low": low, "high": high,
    }  # fmt: skip


@dataclass(frozen=True)
class _Sum(Elementwise):
    """Both operands side by side as 16-bit pairs, one multiply-add of pairs for each half of the mantissas.

    Interleaving and packing both stay within 128 bits, so the order of the elements is right in the end.
    """

    inputs: tuple[Operand, ...]
    output: Element

    def prepare(self, b: ir.IRBuilder, isa: Isa, operands: Sequence[Any]) -> Any:
        ints, numbers = ir.VectorType(I32, isa.lanes), list[Any]()
        for number in operands[:5]:
            numbers.append(vector(b, ints, b.trunc(number, I32)))
        bounds = ir.VectorType(I8, 4 * isa.lanes) if self._codes else ir.VectorType(I16, 2 * isa.lanes)
        return *numbers, *(vector(b, bounds, b.trunc(bound, bounds.element)) for bound in operands[5:])

    @property
    def _codes(self) -> bool:
        return {*self.inputs, self.output} == {"u1"}

    def apply(self, b: ir.IRBuilder, isa: Isa, prepared: Any, vectors: Sequence[Any]) -> Any:
        *numbers, low, high = prepared
        shorts, pack_ints = ir.VectorType(I16, 2 * isa.lanes), _NAMES[isa.lanes][1]
        if self._codes:
            nothing = ir.Constant(vectors[0].type, None)
            pairs = [wide for both in _interleave(b, *vectors) for wide in _interleave(b, both, nothing)]
        else:
            halves = [_halves(b, values, shorts) for values in vectors]
            pairs = [both for one, other in zip(*halves, strict=True) for both in _interleave(b, one, other)]
        sums = [_sum(b, isa, both, numbers) for both in pairs]
        packed = [call(b, pack_ints, shorts, sums[i : i + 2]) for i in (0, 2)]
        if self._codes:
            codes = call(b, _NAMES[isa.lanes][2], low.type, packed)
            codes = call(b, f"llvm.umax.v{4 * isa.lanes}i8", codes.type, [codes, low])
            return call(b, f"llvm.umin.v{4 * isa.lanes}i8", codes.type, [codes, high])
        name = f"v{2 * isa.lanes}i16"
        packed = [call(b, f"llvm.smax.{name}", shorts, [half, low]) for half in packed]
        lower, upper = (call(b, f"llvm.smin.{name}", shorts, [half, high]) for half in packed)
        order = ir.Constant(ir.VectorType(I32, 4 * isa.lanes), list(range(4 * isa.lanes)))
        words = b.shuffle_vector(lower, upper, order)
        return words if self.output == "i2" else b.trunc(words, ir.VectorType(I8, 4 * isa.lanes))


_NAMES = {
    8: ("llvm.x86.avx2.pmadd.wd", "llvm.x86.avx2.packssdw", "llvm.x86.avx2.packuswb"),
    16: ("llvm.x86.avx512.pmaddw.d.512", "llvm.x86.avx512.packssdw.512", "llvm.x86.avx512.packuswb.512"),
}
"""Multiply-add of pairs, and the packs, by 32-bit lanes of a vector."""


def _sum(b: ir.IRBuilder, isa: Isa, pairs: Any, numbers: Sequence[Any]) -> Any:
    """The rescaled sums of a vector of 16-bit pairs."""
    high_pair, low_pair, high_start, low_start, right = numbers
    shorts, ints, multiply_add = ir.VectorType(I16, 2 * isa.lanes), right.type, _NAMES[isa.lanes][0]
    both = b.bitcast(pairs, shorts)
    lower = call(b, multiply_add, ints, [both, b.bitcast(low_pair, shorts)])
    carry = b.ashr(b.add(lower, low_start), ir.Constant(ints, [16] * isa.lanes))
    upper = call(b, multiply_add, ints, [both, b.bitcast(high_pair, shorts)])
    return b.ashr(b.add(b.add(upper, high_start), carry), right)


def _halves(b: ir.IRBuilder, values: Any, shorts: ir.VectorType) -> list[Any]:
    """A vector of codes or of 16-bit integers as two of 16-bit integers."""
    halves: list[Any] = []
    for first in (0, shorts.count):
        order = ir.Constant(ir.VectorType(I32, shorts.count), [first + i for i in range(shorts.count)])
        half = b.shuffle_vector(values, values, order)
        halves.append(half if values.type.element == I16 else b.zext(half, shorts))
    return halves


def _interleave(b: ir.IRBuilder, x: Any, y: Any) -> list[Any]:
    """Elements of x and y by turns: of the lower halves of each 128 bits, then of the upper ones."""
    count, per = x.type.count, 128 // x.type.element.width
    return [
        b.shuffle_vector(
            x,
            y,
            ir.Constant(
                ir.VectorType(I32, count),
                [lane + half + i // 2 + i % 2 * count for lane in range(0, count, per) for i in range(per)],
            ),
        )
        for half in (0, per // 2)
    ]
