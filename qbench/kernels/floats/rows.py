"""Passes over a row of float32 in vectors of 16 lanes on every processor, so that the order of sums is one."""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir

from qbench.kernels.floats.functions import EXP_TERMS, LOG2_E, LOG_2, LOW, ROUNDS
from qbench.kernels.isa.emit import F32, I8, I32, I64, call, load, splat, vector
from qbench.kernels.jit import arrays, cgutils, intrinsic, overload, register_jitable, types

LANES = 16
_KIND, _WHOLE, _BITS = ir.VectorType(F32, LANES), ir.VectorType(I32, LANES), ir.IntType(LANES)
_WIDE = ir.VectorType(ir.DoubleType(), LANES)
_BLOCK = 32 * LANES  # elements among which one is looked for at a time
_Pass = Callable[[ir.IRBuilder, Any, Any], None]


def largest(x: Any) -> Any:
    """The largest of the elements, NaN left out."""
    return np.fmax.reduce(x, initial=np.float32(-np.inf))


def smallest(x: Any) -> Any:
    """The smallest of the elements, NaN left out."""
    return np.fmin.reduce(x, initial=np.float32(np.inf))


def powers(x: Any, above: Any, y: Any) -> Any:
    """``y = exp(x - above)``, and the sum of that; `above` is as large as each x."""
    y[:] = np.exp(x - above)
    return y.sum(dtype=np.float32)


def total(x: Any) -> Any:
    """The sum, in double precision."""
    return x.sum(dtype=np.float64)


def squares(x: Any, mean: Any) -> Any:
    """The sum, in double precision, of the squares of what is left without a mean."""
    return np.square(x - mean).sum(dtype=np.float64)


def first_greatest(x: Any) -> Any:
    """The index of the first of the greatest elements, or of the first NaN if there is any."""
    return np.argmax(x)


def first_least(x: Any) -> Any:
    """The index of the first of the smallest elements, or of the first NaN if there is any."""
    return np.argmin(x)


def _sweep(b: ir.IRBuilder, count: Any, whole: _Pass) -> None:
    """Call `whole` with the offset of each vector in bytes and a mask of the lanes that exist: None for all of them."""
    full = b.and_(count, I64(-LANES))
    with cgutils.for_range_slice(b, I64(0), full, I64(LANES), intp=I64) as (i, _):
        whole(b, b.mul(i, I64(4)), None)
    rest = b.sub(count, full)
    with b.if_then(b.icmp_signed("!=", rest, I64(0))):
        lanes = ir.Constant(_WHOLE, list(range(LANES)))
        whole(b, b.mul(full, I64(4)), b.icmp_signed("<", lanes, vector(b, _WHOLE, b.trunc(rest, I32))))


def _load(b: ir.IRBuilder, start: Any, offset: Any, mask: Any, missing: float) -> Any:
    if mask is None:
        return load(b, start, _KIND, offset)
    place = b.bitcast(b.gep(start, [offset]), _KIND.as_pointer())
    return call(b, "llvm.masked.load.v16f32.p0", _KIND, [place, I32(1), mask, splat(_KIND, missing)])


def _store(b: ir.IRBuilder, value: Any, start: Any, offset: Any, mask: Any) -> None:
    place = b.bitcast(b.gep(start, [offset]), _KIND.as_pointer())
    if mask is None:
        b.store(value, place, align=1)
    else:
        call(b, "llvm.masked.store.v16f32.p0", ir.VoidType(), [value, place, I32(1), mask])


def _folded(b: ir.IRBuilder, lanes: Any, join: Callable[[Any, Any], Any]) -> Any:
    """All lanes as one, half of them with the other half."""
    size = LANES
    while size > 1:
        size //= 2
        halves = [ir.Constant(ir.VectorType(I32, size), list(range(first, first + size))) for first in (0, size)]
        lanes = join(*(b.shuffle_vector(lanes, lanes, half) for half in halves))
    return b.extract_element(lanes, I32(0))


def _exp(b: ir.IRBuilder, x: Any) -> Any:
    """`exp_below` of each lane."""

    def number(value: Any) -> Any:
        return splat(_KIND, float(value))

    def fma(x: Any, y: Any, z: Any) -> Any:
        return call(b, "llvm.fma.v16f32", _KIND, [x, y, z])

    shifted = fma(x, number(LOG2_E), number(ROUNDS))
    n = b.fsub(shifted, number(ROUNDS))
    r = fma(n, number(-LOG_2[1]), fma(n, number(-LOG_2[0]), x))
    p = number(EXP_TERMS[0])
    for term in EXP_TERMS[1:]:
        p = fma(p, r, number(term))
    p = b.fadd(fma(p, b.fmul(r, r), r), number(1))
    power = b.shl(b.bitcast(shifted, _WHOLE), splat(_WHOLE, 23))
    scaled = b.bitcast(b.add(b.bitcast(p, _WHOLE), power), _KIND)
    return b.select(b.fcmp_ordered("<", x, number(LOW)), number(0), scaled)


def _place(context: Any, b: ir.IRBuilder, kind: Any, array: Any) -> Any:
    """A byte pointer to the first element, and how many there are."""
    given = arrays.make_array(kind)(context, b, array)
    return b.bitcast(given.data, I8.as_pointer()), given.nitems


def _extreme(sign: str, missing: float, tells_nan: bool) -> Any:
    """A Numba function: the greatest element (sign ">") or the smallest ("<"); NaN is left out, or the result."""

    def further(b: ir.IRBuilder, value: Any, most: Any) -> Any:
        return b.select(b.fcmp_ordered(sign, value, most), value, most)

    @intrinsic
    def extreme(context, x):
        def generate(context, b, signature, arguments):
            place, count = _place(context, b, signature.args[0], arguments[0])
            found, odd = (cgutils.alloca_once_value(b, start) for start in (splat(_KIND, missing), _BITS(0)))

            def whole(b: ir.IRBuilder, offset: Any, mask: Any) -> None:
                value = _load(b, place, offset, mask, missing)
                b.store(further(b, value, b.load(found)), found)
                if tells_nan:
                    b.store(b.or_(b.load(odd), b.bitcast(b.fcmp_unordered("uno", value, value), _BITS)), odd)

            _sweep(b, count, whole)
            result = _folded(b, b.load(found), lambda low, high: further(b, low, high))
            return b.select(b.icmp_signed("!=", b.load(odd), _BITS(0)), F32(float("nan")), result)

        return types.float32(x), generate

    return extreme


_largest, _smallest = _extreme(">", -np.inf, False), _extreme("<", np.inf, False)


@intrinsic
def _position(context, x, value):
    """The index of the first element that is a value or NaN; -1 where none is."""

    def generate(context, b, signature, arguments):
        place, count = _place(context, b, signature.args[0], arguments[0])
        wanted = vector(b, _KIND, arguments[1])
        found = cgutils.alloca_once_value(b, I64(-1))

        def whole(b: ir.IRBuilder, offset: Any, mask: Any) -> None:
            here = _load(b, place, offset, mask, 0.0)
            fits = b.or_(b.fcmp_ordered("==", here, wanted), b.fcmp_unordered("uno", here, here))
            fits = b.bitcast(fits if mask is None else b.and_(fits, mask), _BITS)
            first = b.zext(call(b, f"llvm.cttz.i{LANES}", _BITS, [fits, ir.Constant(ir.IntType(1), 0)]), I64)
            known, index = b.load(found), b.add(b.lshr(offset, I64(2)), first)
            new = b.and_(b.icmp_signed("<", known, I64(0)), b.icmp_signed("!=", fits, _BITS(0)))
            b.store(b.select(new, index, known), found)

        _sweep(b, count, whole)
        return b.load(found)

    return types.int64(x, types.float32), generate


def _first(most: Any) -> Any:
    """A Numba function: where the element is that `most` finds, looked for block by block."""

    @register_jitable
    def first(x):
        value = most(x)
        for start in range(0, len(x), _BLOCK):
            found = _position(x[start : start + _BLOCK], value)
            if found >= 0:
                return start + found
        return 0

    return first


_first_greatest, _first_least = _first(_extreme(">", -np.inf, True)), _first(_extreme("<", np.inf, True))


@intrinsic
def _powers(context, x, above, y):
    def generate(context, b, signature, arguments):
        source, count = _place(context, b, signature.args[0], arguments[0])
        result, _ = _place(context, b, signature.args[2], arguments[2])
        most, sums = vector(b, _KIND, arguments[1]), cgutils.alloca_once_value(b, splat(_KIND, 0.0))

        def whole(b: ir.IRBuilder, offset: Any, mask: Any) -> None:
            made = _exp(b, b.fsub(_load(b, source, offset, mask, float("-inf")), most))
            _store(b, made, result, offset, mask)
            b.store(b.fadd(b.load(sums), made), sums)

        _sweep(b, count, whole)
        return _folded(b, b.load(sums), b.fadd)

    return types.float32(x, types.float32, y), generate


def _sum_of(term: Callable[[ir.IRBuilder, Any, Any], Any]) -> Any:
    """A Numba function of a row and a number: the sum of a term of each element and the number."""

    @intrinsic
    def sum_of(context, x, number):
        def generate(context, b, signature, arguments):
            place, count = _place(context, b, signature.args[0], arguments[0])
            given, sums = vector(b, _KIND, arguments[1]), cgutils.alloca_once_value(b, splat(_WIDE, 0.0))

            def whole(b: ir.IRBuilder, offset: Any, mask: Any) -> None:
                made = term(b, _load(b, place, offset, mask, 0.0), given)
                made = made if mask is None else b.select(mask, made, splat(_KIND, 0.0))
                b.store(b.fadd(b.load(sums), b.fpext(made, _WIDE)), sums)

            _sweep(b, count, whole)
            return _folded(b, b.load(sums), b.fadd)

        return types.float64(x, types.float32), generate

    return sum_of


def _square(b: ir.IRBuilder, x: Any, mean: Any) -> Any:
    away = b.fsub(x, mean)
    return b.fmul(away, away)


_total, _squares = _sum_of(lambda b, x, _: x), _sum_of(_square)


overload(total)(lambda x: lambda x: _total(x, np.float32(0)))
overload(squares)(lambda x, mean: lambda x, mean: _squares(x, mean))
overload(largest)(lambda x: lambda x: _largest(x))
overload(smallest)(lambda x: lambda x: _smallest(x))
overload(powers)(lambda x, above, y: lambda x, above, y: _powers(x, above, y))
overload(first_greatest)(lambda x: _first_greatest)
overload(first_least)(lambda x: _first_least)
