"""TFLite's softmax of 8-bit codes and of 16-bit integers: a table of exponentials, and the reciprocal of their sum."""

from typing import Any

import numpy as np

from qbench.kernels.fixed_functions import divide_by_power, high_multiply, leading_zeros, log_of_q12, one_over_one_plus
from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view
from qbench.kernels.split import share


@makes_kernels
def tflite_softmax_kernel() -> Kernel:
    """Softmax of `rows` rows of `count` codes each, to codes in units of 1/256: bits of `quant.fixed_functions`.

    `table` holds 256 int32: the exponential of each difference from the maximum, as Q0 numbers.
    """

    def softmax(args, bases, thread, threads):
        first, end = share(args.rows, thread, threads)
        table, count = view(bases, args.table, 256, np.int32), args.count
        for row in range(first, end):
            x = view(bases, args.x + row * count, count, np.uint8)
            y = view(bases, args.y + row * count, count, np.uint8)
            most, total = _sum(x, table)
            headroom = leading_zeros(total)
            scale, right = one_over_one_plus((total << headroom) - 2**31), 35 - headroom
            for i in range(count):
                power = np.int64(table[most - np.int64(x[i])])
                y[i] = min(max(divide_by_power(high_multiply(power, scale), right), 0), 255)

    return Kernel("tflite_softmax", record(**dict.fromkeys(("x", "y", "table", "rows", "count"), "i8")), softmax)


@makes_kernels
def tflite_log_softmax_kernel() -> Kernel:
    """The logarithm of softmax of `rows` rows of `count` codes each, to codes in units of 1/16 below 255.

    `exponentials` and `arguments` hold 256 int32 each, by the difference from the maximum. Differences from `limit` on
    give code 0, and those whose logarithm would be below -16: `mantissa` and `right` lead there.
    """

    def log_softmax(args, bases, thread, threads):
        first, end = share(args.rows, thread, threads)
        exponentials = view(bases, args.exponentials, 256, np.int32)
        arguments, count = view(bases, args.arguments, 256, np.int32), args.count
        for row in range(first, end):
            x = view(bases, args.x + row * count, count, np.uint8)
            y = view(bases, args.y + row * count, count, np.uint8)
            most, total = _sum(x, exponentials)
            log = log_of_q12(total)
            least = divide_by_power(high_multiply(log - 2**31, args.mantissa), args.right)
            for i in range(count):
                difference = most - np.int64(x[i])
                code = divide_by_power(np.int64(arguments[difference]) - log, 22) + 255
                y[i] = min(max(code, 0), 255) if -difference > max(-args.limit, least) else 0

    fields = "x", "y", "exponentials", "arguments", "rows", "count", "limit", "mantissa", "right"
    return Kernel("tflite_log_softmax", record(**dict.fromkeys(fields, "i8")), log_softmax)


@makes_kernels
def tflite_softmax_int16_kernel() -> Kernel:
    """Softmax of `rows` rows of `count` int16 each, to units of 2^-15.

    `table` holds 65,536 int16: the exponential of each difference from the maximum in units of 2^-15; `reciprocals`
    what :func:`qbench.ops.tflite.softmax.reciprocals` gives, int32[513].
    """

    def softmax(args, bases, thread, threads):
        first, end = share(args.rows, thread, threads)
        table, count = view(bases, args.table, 2**16, np.int16), args.count
        reciprocals = view(bases, args.reciprocals, 513, np.int32)
        for row in range(first, end):
            x = view(bases, args.x + 2 * row * count, count, np.int16)
            y = view(bases, args.y + 2 * row * count, count, np.int16)
            most = np.int64(-(2**15))
            for i in range(count):
                most = max(most, np.int64(x[i]))
            total = np.int64(0)
            for i in range(count):
                total += np.int64(table[most - np.int64(x[i])])
            headroom = leading_zeros(total)
            place = (((total << headroom >> 1) + 2**13) >> 14) - 2**15 - 2**16
            scale, right = _interpolated(min(max(place, -(2**15)), 2**15 - 1), reciprocals), 31 - headroom
            for i in range(count):
                power = np.int64(table[most - np.int64(x[i])])
                y[i] = min(max((power * scale + (np.int64(1) << (right - 1))) >> right, 0), 2**15 - 1)

    fields = "x", "y", "table", "reciprocals", "rows", "count"
    return Kernel("tflite_softmax.int16", record(**dict.fromkeys(fields, "i8")), softmax)


@register_jitable
def _sum(codes: Any, table: Any) -> Any:
    """The largest code, and the sum of what a table has for the differences from it, as Q12 numbers."""
    most = np.int64(0)
    for i in range(codes.size):
        most = max(most, np.int64(codes[i]))
    total = np.int64(0)
    for i in range(codes.size):
        total += divide_by_power(np.int64(table[most - np.int64(codes[i])]), 12)
    return most, total


@register_jitable
def _interpolated(place: Any, table: Any) -> Any:
    """Between the entries of a table of 16 bits, whose slopes wrap around."""
    index = 256 + (place >> 7)
    base = np.int64(table[index])
    slope = ((np.int64(table[index + 1]) - base + 2**15) & 0xFFFF) - 2**15
    return ((base + ((slope * (place & 127) + 64) >> 7) + 2**15) & 0xFFFF) - 2**15
