"""Maxima and means over windows of channels-last images."""

from typing import Any, Literal

import numpy as np

from qbench.kernels.floats.slide import IMAGES, inside, slide
from qbench.kernels.floats.storage import FloatType, Storage, storage
from qbench.kernels.floats.vectors import VECTORS
from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, KernelFunction, makes_kernels, record
from qbench.kernels.levels import Level
from qbench.kernels.memory import view
from qbench.kernels.split import share
from qbench.kernels.stack import stack_array

_CHUNK = 256  # channels at a time: their results stay in the L1 cache while the window is walked


ARGUMENTS = record(
    **dict.fromkeys((*IMAGES, "before_rows", "before_columns", "after_rows", "after_columns"), "i8"),
)
"""Arguments of every kernel here: `slide.IMAGES`, and what a mean's divisor counts: the taps from -before_rows to
height + after_rows, and likewise in columns. All four are 0 where padding does not count.
"""


@makes_kernels
def pool_kernel(kind: Literal["max", "average"], dtype: FloatType, level: Level) -> Kernel:
    """Pooling: float32 in vectors where the level has them."""
    if dtype == "float32" and level in VECTORS:
        run = slide(level, "max" if kind == "max" else "add", _no_operands, _no_numbers if kind == "max" else _divisor)
        return Kernel(f"float.pool.{kind}.{level}", ARGUMENTS, run)
    kept = storage(dtype, level)
    return Kernel(f"float.pool.{kind}.{kept.name}", ARGUMENTS, _plain(kept, kind == "max"))


@register_jitable
def _divisor(args: Any, row: Any, column: Any) -> Any:
    """How many taps count, of a window that starts at a row and column of the input, and 0."""
    i0, i1 = inside(row, args.dh, args.kh, -args.before_rows, args.height + args.after_rows)
    j0, j1 = inside(column, args.dw, args.kw, -args.before_columns, args.width + args.after_columns)
    return np.float32(max((i1 - i0) * (j1 - j0), 1)), np.float32(0)


@register_jitable
def _no_numbers(args: Any, row: Any, column: Any) -> Any:
    return np.float32(0), np.float32(0)


@register_jitable
def _no_operands(args: Any, bases: Any, channel: Any) -> Any:
    return 0, 0


def _plain(kept: Storage, largest: bool) -> KernelFunction:
    element, size, load, store = kept.dtype, kept.size, kept.load, kept.store
    lowest = np.float32(-np.inf)

    def run(args, bases, thread, threads):
        pixels = args.out_height * args.out_width
        begin, end = share(args.images * pixels, thread, threads)
        result = stack_array(_CHUNK, np.float32)
        for pixel in range(begin, end):
            image, row, column = pixel // pixels, pixel % pixels // args.out_width, pixel % args.out_width
            up, left = row * args.sh - args.top, column * args.sw - args.left
            i0, i1 = inside(up, args.dh, args.kh, 0, args.height)
            j0, j1 = inside(left, args.dw, args.kw, 0, args.width)
            divisor, _ = _divisor(args, up, left)
            source = image * args.x_image + up * args.x_row + left * args.x_pitch
            target = image * args.out_image + row * args.out_row + column * args.out_pitch
            for first in range(0, args.channels, _CHUNK):
                count = min(_CHUNK, args.channels - first)
                for c in range(count):
                    result[c] = lowest if largest else np.float32(0)
                for i in range(i0, i1):
                    for j in range(j0, j1):
                        at = source + i * args.dh * args.x_row + j * args.dw * args.x_pitch + first
                        x = view(bases, args.x + at * size, count, element)
                        for c in range(count):
                            value = load(x, c)
                            result[c] = max(result[c], value) if largest else result[c] + value
                y = view(bases, args.out + (target + first) * size, count, element)
                for c in range(count):
                    store(y, c, result[c] if largest else np.divide(result[c], divisor))

    return run
