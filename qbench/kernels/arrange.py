"""Matrices of activations, less their zero points, as 16-bit integers in the order in which tiles read them."""

import numpy as np

from qbench.kernels.isa import Element
from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view
from qbench.kernels.split import at, share

_FIELDS = ("x", "out", "starts", "batch", "lines", "depth", "line_step", "depth_step", "zero", "width")


@makes_kernels
def arrange_kernel(x: Element, halves: bool = False) -> Kernel:
    """``out[n, panel, pair, line, side] = x[n, panel * width + line, 2 * pair + side] - zero``, and zeros beyond x.

    `starts` (int64[batch]) says where the matrices of x begin, `line_step` and `depth_step` where its next elements
    are. For `width` of a tile these are the weights that `pack.pack_weights` makes; for 1 it is a row-major matrix of
    even rows. With `halves` each panel is there twice, first with the upper bytes of its elements and then with the
    lower ones, from -128 to 127: ``x - zero = 256 * upper + lower``.
    """
    element, item, parts = np.dtype(x).type, np.dtype(x).itemsize, 1 + halves

    @register_jitable
    def put(out, place, value):
        if halves:
            low = ((value + 128) & 255) - 128
            out[at(place)] = (value - low) >> 8
            out[at(place + len(out) // 2)] = low
        else:
            out[at(place)] = value

    def arrange(args, bases, thread, threads):
        lines, depth, width, zero = args.lines, args.depth, args.width, args.zero
        line_step, depth_step = args.line_step, args.depth_step
        panels, size = (lines + width - 1) // width, (depth + 1) // 2 * 2 * width
        starts = view(bases, args.starts, args.batch, np.int64)
        for unit in range(*share(args.batch * panels, thread, threads)):
            n, first = unit // panels, unit % panels * width
            count, start = min(width, lines - first), starts[n] + first * line_step
            out = view(bases, args.out + unit * parts * size * 2, parts * size, np.int16)
            if count < width or depth % 2:
                out[:] = 0
            if width == 1 and depth_step == 1:
                x = view(bases, args.x + start * item, depth, element)
                for k in range(depth):
                    put(out, k, np.int64(x[at(k)]) - zero)
            elif line_step == 1:
                for k in range(depth):
                    x = view(bases, args.x + (start + k * depth_step) * item, count, element)
                    place = k // 2 * 2 * width + k % 2
                    for c in range(count):
                        put(out, place + 2 * c, np.int64(x[at(c)]) - zero)
            else:
                for c in range(count):
                    place = args.x + (start + c * line_step) * item
                    x = view(bases, place, (depth - 1) * depth_step + 1, element)
                    for k in range(depth):
                        put(out, k // 2 * 2 * width + 2 * c + k % 2, np.int64(x[at(k * depth_step)]) - zero)

    return Kernel(f"arrange.{x}{'.halves' * halves}", record(**dict.fromkeys(_FIELDS, "i8")), arrange)
