"""TFLite's L2 normalization of 8-bit codes."""

import numpy as np

from qbench.kernels.fixed_functions import divide_by_power, high_multiply, reciprocal_square_root, shift_left
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view
from qbench.kernels.split import share


@makes_kernels
def tflite_l2_normalize_kernel() -> Kernel:
    """Each of `rows` rows of `count` codes divided by its length, to codes in units of 2^-7 from 128 on.

    `left` is what data is shifted by before it is multiplied, `more` what the multiplier's shift is more.
    """

    def l2_normalize(args, bases, thread, threads):
        first, end = share(args.rows, thread, threads)
        count, zero = args.count, args.zero_point
        for row in range(first, end):
            x = view(bases, args.x + row * count, count, np.uint8)
            y = view(bases, args.y + row * count, count, np.uint8)
            total = np.int64(0)
            for i in range(count):
                value = np.int64(x[i]) - zero
                total += value * value
            mantissa, shift = reciprocal_square_root(total)
            up, down = max(shift + args.more, 0), max(-shift - args.more, 0)
            for i in range(count):
                value = shift_left((np.int64(x[i]) - zero) << args.left, up)
                y[i] = min(max(divide_by_power(high_multiply(value, mantissa), min(down, 62)) + 128, 0), 255)

    fields = "x", "y", "rows", "count", "zero_point", "left", "more"
    return Kernel("tflite_l2_normalize", record(**dict.fromkeys(fields, "i8")), l2_normalize)
