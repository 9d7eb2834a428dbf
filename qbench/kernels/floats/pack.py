"""Packing the right operand of a matrix product as tiles read it, while a network runs."""

import numpy as np

from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view
from qbench.kernels.split import at, share


@makes_kernels
def pack_kernel(width: int) -> Kernel:
    """Panels of `width` columns, filled up with zeros.

    Returns
    -------
    Kernel
        Its fields are x and out, the references; the sizes groups, depth and channels of x; its element strides
        x_group, x_depth and x_channel. It writes float32 ``[groups, panels, depth, width]``.
    """

    def pack(args, bases, thread, threads):
        depth, step, down = args.depth, args.x_channel, args.x_depth
        panels = -(-args.channels // width)
        line, end = share(args.groups * panels * depth, thread, threads)
        while line < end:
            k, panel, group = line % depth, line // depth % panels, line // depth // panels
            lines, count = min(depth - k, end - line), min(args.channels - panel * width, width)
            start = group * args.x_group + k * down + panel * width * step
            x = view(bases, args.x + start * 4, (lines - 1) * down + (count - 1) * step + 1, np.float32)
            out = view(bases, args.out + line * width * 4, lines * width, np.float32)
            if count == width and step == 1:
                for i in range(lines):
                    for c in range(width):
                        out[at(i * width + c)] = x[at(i * down + c)]
            elif count == width:
                for i in range(lines):
                    for c in range(width):
                        out[at(i * width + c)] = x[at(i * down + c * step)]
            else:
                for i in range(lines):
                    for c in range(width):
                        out[at(i * width + c)] = x[at(i * down + c * step)] if c < count else np.float32(0)
            line += lines

    names = ("x", "out", "groups", "depth", "channels", "x_group", "x_depth", "x_channel")
    return Kernel(f"float.pack.{width}", record(**dict.fromkeys(names, "i8")), pack)
