"""Packing the right operand of a matrix product as tiles read it, while a network runs."""

import numpy as np

from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view
from qbench.kernels.split import share


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
        panels = -(-args.channels // width)
        begin, end = share(args.groups * panels * args.depth, thread, threads)
        for line in range(begin, end):
            group, panel, k = line // (panels * args.depth), line // args.depth % panels, line % args.depth
            count, step = min(args.channels - panel * width, width), args.x_channel
            at = group * args.x_group + k * args.x_depth + panel * width * step
            x = view(bases, args.x + at * 4, (count - 1) * step + 1, np.float32)
            out = view(bases, args.out + line * width * 4, width, np.float32)
            if step == 1:
                for c in range(count):
                    out[c] = x[c]
            else:
                for c in range(count):
                    out[c] = x[c * step]
            for c in range(count, width):
                out[c] = np.float32(0)

    names = ("x", "out", "groups", "depth", "channels", "x_group", "x_depth", "x_channel")
    return Kernel(f"float.pack.{width}", record(**dict.fromkeys(names, "i8")), pack)
