"""onnxruntime's softmax of 8-bit codes: a table of powers, sums in float32 one element after the other."""

from typing import Any

import numpy as np

from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view
from qbench.kernels.split import at, share
from qbench.kernels.stack import stack_array

_HIGHEST = np.float32(255)
_ROWS = 4  # at a time: each sum waits for itself
_MANY = 64
"""Codes of a row that are worth a table of what becomes of each."""


@makes_kernels
def onnx_softmax_kernel() -> Kernel:
    """Softmax of `rows` rows of `count` codes each: bits of `qbench.ops.onnx.softmax`.

    `powers` holds 256 float32, the last one for the largest code of a row; a result is ``power * steps / sum`` rounded
    to the nearest code from `zero_point`. A long row has at most 256 different results, each of which is computed once.
    """

    def softmax(args, bases, thread, threads):
        first, end = share(args.rows, thread, threads, _ROWS)
        powers, count = view(bases, args.powers, 256, np.float32), args.count
        results = stack_array(256, np.uint8)
        steps, zero_point = args.steps, args.zero_point
        for row in range(first, end, _ROWS):
            last = min(_ROWS, end - row) - 1
            x = view(bases, args.x + row * count, (last + 1) * count, np.uint8)
            y = view(bases, args.y + row * count, (last + 1) * count, np.uint8)
            b, c, d = min(1, last) * count, min(2, last) * count, min(3, last) * count
            shift_a, shift_b, shift_c, shift_d = (
                _shift(x, 0, count), _shift(x, b, count), _shift(x, c, count), _shift(x, d, count)
            )  # fmt: skip
            total_a = total_b = total_c = total_d = np.float32(0)
            for i in range(count):
                total_a += powers[at(shift_a + x[at(i)])]
                total_b += powers[at(shift_b + x[at(b + i)])]
                total_c += powers[at(shift_c + x[at(c + i)])]
                total_d += powers[at(shift_d + x[at(d + i)])]
            totals, shifts = (total_a, total_b, total_c, total_d), (shift_a, shift_b, shift_c, shift_d)
            for k in range(last + 1):
                shift, total = shifts[k], totals[k]
                if count < _MANY:
                    for i in range(k * count, (k + 1) * count):
                        ideal = np.rint(powers[at(shift + x[at(i)])] * steps / total) + zero_point
                        y[at(i)] = np.uint8(min(ideal, _HIGHEST))
                    continue
                for code in range(256 - shift):
                    ideal = np.rint(powers[at(shift + code)] * steps / total) + zero_point
                    results[at(code)] = np.uint8(min(ideal, _HIGHEST))
                for i in range(k * count, (k + 1) * count):
                    y[at(i)] = results[at(x[at(i)])]

    sizes = record(**dict.fromkeys(("x", "y", "powers", "rows", "count"), "i8"), steps="f4", zero_point="f4")
    return Kernel("onnx_softmax", sizes, softmax)


@register_jitable
def _shift(x: Any, first: Any, count: Any) -> Any:
    """What is added to a row's codes so that its largest one becomes the last of 256."""
    most = np.uint8(0)
    for i in range(first, first + count):
        most = max(most, x[at(i)])
    return 255 - np.int64(most)
