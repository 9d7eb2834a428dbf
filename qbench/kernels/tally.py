"""Statistics of values as they are made: extremes, zeros, a histogram that widens, and exact sums of channel means.

A tally is an array of int64 that grows by the values of one array after the other; see `TALLY` for what is where. Bins
have a power of two as their width and are anchored at zero, so that widening merges neighbours and loses nothing. What
is left of the histogram after any number of arrays does not depend on their order.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view
from qbench.kernels.stack import stack_array

BINS = 2048
"""N: bins on each side of zero."""

OF_ZEROS = -160
"""Exponent of a tally of zeros: one less than that of the smallest number of float32."""

_FIELDS = ("low", "high", "zeros", "count", "exponent", "bad", "floor")
TALLY = np.dtype([*((name, "i8") for name in _FIELDS), ("counts", "i8", (2 * BINS,))])
"""Least and greatest key; number of zeros and of all values; e, the smallest with ``max(abs(x)) < BINS * 2**e``; arrays
that were refused, since they hold NaN; the greatest key that is left out; ``counts[BINS + k]`` values with
``floor(x * 2**-e) == k``.

Keys are integers in the order of the numbers: the bits, below zero with all but the sign flipped.
"""

LIMBS = 9
"""64-bit words of 32 bits each, and room to carry, that hold a sum of float32 numbers in units of 2^-149."""

_MAGNITUDE = np.int32(0x7FFFFFFF)
_INFINITY = 0x7F800000
_TABLES = 4 * 2 * BINS
_CHANNELS = 64  # whose sums are made at a time
_BLOCK = 2048  # places found at a time, by vector instructions, before they are counted one by one
_LANES = 8  # sums side by side, as vector instructions have them: part of the result, since additions round


@register_jitable
def _tally(values: NDArray[np.float32], found: NDArray[np.int64]) -> None:
    bits, counts, floor = values.view(np.int32), found[7:], found[6]
    low, high, zeros = _extremes(bits)
    seen, largest = bits.size, np.int64(max(high, ~low))  # the bits of the largest magnitude
    if largest > _INFINITY:
        found[5] += 1
        return
    hidden = largest == _INFINITY or low <= floor
    if hidden:
        low, high, seen = _extremes_shown(bits, floor)
        if seen == 0:
            return
        largest = np.int64(max(high, ~low))
    exponent = _exponent(largest)
    if found[3]:
        _widen(counts, min(exponent - found[4], 12))  # by 12 all is in the bins beside zero
    found[0], found[1] = min(found[0], np.int64(low)), max(found[1], np.int64(high))
    found[2] += zeros
    found[3] += seen
    found[4] = max(found[4], exponent)
    if hidden:
        _count_shown(values, counts, floor, found[4])
    else:
        _count(values, counts, found[4])


@register_jitable
def _key(bits: Any) -> Any:
    """An integer in the order of the numbers."""
    return bits ^ ((bits >> 31) & _MAGNITUDE)


@register_jitable
def _extremes(bits: Any) -> Any:
    """The least and the greatest key, and how many numbers are zero."""
    low, high, zeros = _MAGNITUDE, ~_MAGNITUDE, 0
    for i in range(bits.size):
        key = _key(bits[i])
        low = min(low, key)
        high = max(high, key)
        zeros += (bits[i] & _MAGNITUDE) == 0
    return low, high, zeros


@register_jitable
def _extremes_shown(bits: Any, floor: Any) -> Any:
    """The least and the greatest key of what no mask hides, and how many those are."""
    low, high, seen = _MAGNITUDE, ~_MAGNITUDE, 0
    for i in range(bits.size):
        key = _key(bits[i])
        if floor < key < _INFINITY:
            low, high, seen = min(low, key), max(high, key), seen + 1
    return low, high, seen


@register_jitable
def _exponent(largest: Any) -> Any:
    """The least e so that 2^e times the number of bins is beyond the number of these bits."""
    exponent = (largest >> 23) - 137
    if largest < 0x00800000:
        exponent = np.int64(-160)
        while largest >> (exponent + 160):
            exponent += 1
    return exponent


@register_jitable
def _widen(counts: Any, doublings: Any) -> None:
    """Bins of twice the width, so many times."""
    middle = counts.size // 2
    for _ in range(doublings):
        for i in range(middle // 2):
            counts[middle + i] = counts[middle + 2 * i] + counts[middle + 2 * i + 1]
            counts[middle - 1 - i] = counts[middle - 1 - 2 * i] + counts[middle - 2 - 2 * i]
        counts[: middle // 2] = 0
        counts[middle + middle // 2 :] = 0


@register_jitable
def _count_shown(values: Any, counts: Any, floor: Any, exponent: Any) -> None:
    """Count what no mask hides."""
    bits, middle, factor = values.view(np.int32), counts.size // 2, 2.0 ** np.float64(-exponent)
    for i in range(bits.size):
        if floor < _key(bits[i]) < _INFINITY:
            counts[np.int64(np.floor(values[i] * factor)) + middle] += 1


@register_jitable
def _count(values: Any, counts: Any, exponent: Any) -> None:
    """Count all, into four tables in turn: increments of one place wait for each other."""
    middle, factor = counts.size // 2, 2.0 ** np.float64(-exponent)
    tables = stack_array(_TABLES, np.uint32)
    tables[:] = 0
    one, two = tables[: counts.size], tables[counts.size : 2 * counts.size]
    three, four = tables[2 * counts.size : 3 * counts.size], tables[3 * counts.size :]
    places = stack_array(_BLOCK, np.uint32)  # unsigned: what may count from the end costs a comparison per use
    in_float32, factor32 = -127 <= exponent <= 0, np.float32(factor if exponent >= -127 else 0.0)
    for start in range(0, values.size, _BLOCK):
        block = values[start : start + _BLOCK]
        if in_float32:  # exact where it scales up; where it scales down, a tiny negative number would become zero
            for i in range(block.size):
                places[i] = np.int32(np.floor(block[i] * factor32)) + np.int32(middle)
        else:
            for i in range(block.size):
                places[i] = np.int32(np.floor(block[i] * factor)) + np.int32(middle)
        whole = block.size // 4 * 4
        for i in range(0, whole, 4):
            one[places[i]] += np.uint32(1)
            two[places[i + 1]] += np.uint32(1)
            three[places[i + 2]] += np.uint32(1)
            four[places[i + 3]] += np.uint32(1)
        for i in range(whole, block.size):
            one[places[i]] += np.uint32(1)
    for place in range(counts.size):
        counts[place] += np.int64(one[place]) + np.int64(two[place]) + np.int64(three[place]) + np.int64(four[place])


@register_jitable
def _add_means(values: NDArray[np.float32], totals: NDArray[np.int64]) -> None:
    outer, channels, inner = values.shape
    sums, lanes = stack_array(_CHANNELS, np.float64), stack_array(_LANES, np.float64)
    means = stack_array(_CHANNELS, np.float32)
    bits, whole = means.view(np.int32), inner // _LANES * _LANES
    for first in range(0, channels, _CHANNELS):
        count = min(_CHANNELS, channels - first)
        sums[:] = 0.0
        for i in range(outer):
            if inner < _LANES:
                for j in range(inner):
                    for c in range(count):
                        sums[c] += values[i, first + c, j]
                continue
            for c in range(count):
                row = values[i, first + c]
                lanes[:] = 0.0
                for j in range(0, whole, _LANES):
                    for k in range(_LANES):
                        lanes[k] += row[j + k]
                for j in range(whole, inner):
                    lanes[0] += row[j]
                for k in range(_LANES):
                    sums[c] += lanes[k]
        for c in range(count):
            means[c] = np.divide(sums[c], outer * inner)
            exponent = np.int64(bits[c] >> 23) & 255
            significand = np.int64(bits[c] & 0x7FFFFF) | (np.int64(exponent > 0) << 23)
            shift = max(exponent - 1, 0)
            place = shift >> 5
            units = significand << (shift & 31)
            sign = np.int64(-1) if bits[c] < 0 else np.int64(1)
            totals[first + c, place] += sign * (units & 0xFFFFFFFF)
            totals[first + c, place + 1] += sign * (units >> 32)


@makes_kernels
def tally_kernel() -> Kernel:
    """Adds `count` float32 numbers at x to the tally at `found`; one thread does it all.

    They are at least one and fewer than 2^32; only `bad` is counted where one is NaN. What masks hide is left out:
    infinity, and all up to the floor.
    """
    entries = TALLY.itemsize // 8

    def run(args: Any, bases: Any, thread: int, threads: int) -> None:
        if thread == 0:
            _tally(view(bases, args.x, args.count, np.float32), view(bases, args.found, entries, np.int64))

    return Kernel("tally", record(x="i8", count="i8", found="i8"), run)


@makes_kernels
def means_kernel() -> Kernel:
    """Adds the means of float32[outer, channels, inner] at x to the totals int64[channels, LIMBS] at `totals`.

    The mean of ``x[:, c, :]`` is summed in double precision and rounded to float32. A total is
    ``sum(totals[c, i] * 2^(32 i))`` in units of 2^-149: exact, so that no order of the arrays changes it. Good for 2^31
    of them.
    """

    def run(args: Any, bases: Any, thread: int, threads: int) -> None:
        if thread == 0:
            outer, channels, inner = args.outer, args.channels, args.inner
            values = view(bases, args.x, outer * channels * inner, np.float32).reshape(outer, channels, inner)
            totals = view(bases, args.totals, channels * LIMBS, np.int64).reshape(channels, LIMBS)
            _add_means(values, totals)

    return Kernel("means", record(x="i8", outer="i8", channels="i8", inner="i8", totals="i8"), run)
