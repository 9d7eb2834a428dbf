"""Resizing of channels-last images by tables of neighbours and weights."""

import numpy as np

from qbench.kernels.floats.storage import FloatType, storage
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.levels import Level
from qbench.kernels.memory import view
from qbench.kernels.split import share
from qbench.kernels.stack import stack_array

_CHUNK = 256


@makes_kernels
def resize_kernel(dtype: FloatType, level: Level) -> Kernel:
    """Weighted sums of neighbours in rows and columns.

    Returns
    -------
    Kernel
        Its fields are x and y, the references; images, channels, out_height, out_width; the element strides x_image,
        x_row, x_pitch, y_image, y_row, y_pitch; row_index (int64) and row_weight (float32), references to tables
        [out_height, row_taps]; column_index and column_weight [out_width, column_taps].
    """
    kept = storage(dtype, level)
    element, size, load, store = kept.dtype, kept.size, kept.load, kept.store

    def run(args, bases, thread, threads):
        pixels = args.out_height * args.out_width
        begin, end = share(args.images * pixels, thread, threads)
        rows = view(bases, args.row_index, args.out_height * args.row_taps, np.int64)
        row_weights = view(bases, args.row_weight, args.out_height * args.row_taps, np.float32)
        columns = view(bases, args.column_index, args.out_width * args.column_taps, np.int64)
        column_weights = view(bases, args.column_weight, args.out_width * args.column_taps, np.float32)
        result = stack_array(_CHUNK, np.float32)
        for pixel in range(begin, end):
            image, row, column = pixel // pixels, pixel % pixels // args.out_width, pixel % args.out_width
            target = image * args.y_image + row * args.y_row + column * args.y_pitch
            for first in range(0, args.channels, _CHUNK):
                count = min(_CHUNK, args.channels - first)
                for c in range(count):
                    result[c] = np.float32(0)
                for i in range(row * args.row_taps, (row + 1) * args.row_taps):
                    for j in range(column * args.column_taps, (column + 1) * args.column_taps):
                        at = image * args.x_image + rows[i] * args.x_row + columns[j] * args.x_pitch + first
                        x = view(bases, args.x + at * size, count, element)
                        weight = row_weights[i] * column_weights[j]
                        for c in range(count):
                            result[c] += load(x, c) * weight
                y = view(bases, args.y + (target + first) * size, count, element)
                for c in range(count):
                    store(y, c, result[c])

    names = (
        "x y images channels out_height out_width x_image x_row x_pitch y_image y_row y_pitch "
        "row_index row_weight row_taps column_index column_weight column_taps"
    )
    return Kernel(f"float.resize.{kept.name}", record(**dict.fromkeys(names.split(), "i8")), run)
