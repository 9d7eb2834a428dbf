"""Matrices of activations, less their zero points, as 16-bit integers in the order in which tiles read them."""

from typing import Any

import numpy as np

from qbench.kernels.isa import Element
from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view
from qbench.kernels.split import at, share

_FIELDS = ("x", "out", "starts", "batch", "lines", "depth", "line_step", "depth_step", "zero", "width")


@register_jitable
def _pair(even: Any, odd: Any) -> Any:
    return np.int32((even & np.int32(0xFFFF)) | (odd << np.int32(16)))


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
    def put(out, place, even, odd):
        """Two neighbours at once: numbers of 32 bits are stored in half as many steps."""
        if halves:
            low_even, low_odd = ((even + 128) & 255) - 128, ((odd + 128) & 255) - 128
            out[at(place)] = _pair((even - low_even) >> 8, (odd - low_odd) >> 8)
            out[at(place + len(out) // 2)] = _pair(low_even, low_odd)
        else:
            out[at(place)] = _pair(even, odd)

    def arrange(args, bases, thread, threads):
        lines, depth, width, zero = args.lines, args.depth, args.width, np.int32(args.zero)
        line_step, depth_step = args.line_step, args.depth_step
        panels, pairs = (lines + width - 1) // width, (depth + 1) // 2
        starts = view(bases, args.starts, args.batch, np.int64)
        for unit in range(*share(args.batch * panels, thread, threads)):
            n, first = unit // panels, unit % panels * width
            count, start = min(width, lines - first), starts[n] + first * line_step
            size = parts * pairs * width
            out = view(bases, args.out + unit * size * 4, size, np.int32)
            x = view(bases, args.x + start * item, (count - 1) * line_step + (depth - 1) * depth_step + 1, element)
            if count < width:
                out[:] = 0
            if width == 1 and depth_step == 1:
                for pair in range(depth // 2):
                    put(out, pair, np.int32(x[at(2 * pair)]) - zero, np.int32(x[at(2 * pair + 1)]) - zero)
            elif line_step == 1:
                for pair in range(depth // 2):
                    even, odd, place = 2 * pair * depth_step, (2 * pair + 1) * depth_step, pair * width
                    for c in range(count):
                        put(out, place + c, np.int32(x[at(even + c)]) - zero, np.int32(x[at(odd + c)]) - zero)
            else:
                for pair in range(depth // 2):
                    even, odd, place = 2 * pair * depth_step, (2 * pair + 1) * depth_step, pair * width
                    for c in range(count):
                        here = np.int32(x[at(even + c * line_step)]) - zero
                        put(out, place + c, here, np.int32(x[at(odd + c * line_step)]) - zero)
            if depth % 2:
                for c in range(count):
                    last = np.int32(x[at((depth - 1) * depth_step + c * line_step)]) - zero
                    put(out, pairs * width - width + c, last, np.int32(0))

    return Kernel(f"arrange.{x}{'.halves' * halves}", record(**dict.fromkeys(_FIELDS, "i8")), arrange)
