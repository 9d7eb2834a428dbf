"""Resizing of channels-last images by tables of neighbours and weights."""

import numpy as np

from qbench.kernels.floats.storage import FloatType, storage
from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.levels import Level
from qbench.kernels.memory import view
from qbench.kernels.split import at, share
from qbench.kernels.stack import stack_array

_CHUNK = 256


@makes_kernels
def resize_kernel(dtype: FloatType, level: Level) -> Kernel:
    """Weighted sums of neighbours in rows and columns.

    Returns
    -------
    Kernel
        Its fields are x and y, the references; images, channels, height, width, out_height, out_width; the element
        strides x_image, x_row, x_pitch, y_image, y_row, y_pitch; row_index (int64) and row_weight (float32), references
        to tables [out_height, row_taps]; column_index and column_weight [out_width, column_taps].
    """
    kept = storage(dtype, level)
    element, size, load, store = kept.dtype, kept.size, kept.load, kept.store

    @register_jitable
    def mix_four(x, corners, weights, y, target, channels):
        (a, b, c, d), (wa, wb, wc, wd) = corners, weights
        for k in range(channels):
            above = load(x, at(a + k)) * wa + load(x, at(b + k)) * wb
            store(y, at(target + k), above + (load(x, at(c + k)) * wc + load(x, at(d + k)) * wd))

    @register_jitable
    def mix_any(x, rows, x_row, row_weights, columns, x_pitch, column_weights, y, target, channels):
        result = stack_array(_CHUNK, np.float32)
        for first in range(0, channels, _CHUNK):
            count = min(_CHUNK, channels - first)
            for k in range(count):
                result[k] = np.float32(0)
            for i in range(len(rows)):
                for j in range(len(columns)):
                    source, weight = rows[i] * x_row + columns[j] * x_pitch + first, row_weights[i] * column_weights[j]
                    for k in range(count):
                        result[k] += load(x, at(source + k)) * weight
            for k in range(count):
                store(y, at(target + first + k), result[k])

    def run(args, bases, thread, threads):
        down, across, channels, pitch = args.row_taps, args.column_taps, args.channels, args.y_pitch
        rows = view(bases, args.row_index, args.out_height * down, np.int64)
        row_weights = view(bases, args.row_weight, args.out_height * down, np.float32)
        columns = view(bases, args.column_index, args.out_width * across, np.int64)
        column_weights = view(bases, args.column_weight, args.out_width * across, np.float32)
        extent = (args.height - 1) * args.x_row + (args.width - 1) * args.x_pitch + channels
        for line in range(*share(args.images * args.out_height, thread, threads)):
            image, row = line // args.out_height, line % args.out_height
            x = view(bases, args.x + image * args.x_image * size, extent, element)
            place = args.y + (image * args.y_image + row * args.y_row) * size
            y = view(bases, place, (args.out_width - 1) * pitch + channels, element)
            if (down, across) == (2, 2):
                upper, lower = rows[2 * row] * args.x_row, rows[2 * row + 1] * args.x_row
                wu, wl = row_weights[2 * row], row_weights[2 * row + 1]
                for column in range(args.out_width):
                    left, right = columns[2 * column] * args.x_pitch, columns[2 * column + 1] * args.x_pitch
                    ul, ur = column_weights[2 * column], column_weights[2 * column + 1]
                    corners = upper + left, upper + right, lower + left, lower + right
                    mix_four(x, corners, (wu * ul, wu * ur, wl * ul, wl * ur), y, column * pitch, channels)
                continue
            here = slice(row * down, (row + 1) * down)
            for column in range(args.out_width):
                there = slice(column * across, (column + 1) * across)
                mix_any(
                    x, rows[here], args.x_row, row_weights[here], columns[there], args.x_pitch, column_weights[there],
                    y, column * pitch, channels,
                )  # fmt: skip

    names = (
        "x y images channels height width out_height out_width x_image x_row x_pitch y_image y_row y_pitch "
        "row_index row_weight row_taps column_index column_weight column_taps"
    )
    return Kernel(f"float.resize.{kept.name}", record(**dict.fromkeys(names.split(), "i8")), run)
