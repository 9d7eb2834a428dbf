"""Depthwise convolutions of channels-last float32 images: each channel has its own window."""

from collections.abc import Mapping
from dataclasses import astuple
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.kernels.floats.denormals import without_denormals
from qbench.kernels.floats.slide import IMAGES, Rows, inside, slide
from qbench.kernels.floats.vectors import VECTORS
from qbench.kernels.floats.window_tile import BLOCK
from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, KernelFunction, makes_kernels, record
from qbench.kernels.levels import Level
from qbench.kernels.memory import address_of, view
from qbench.kernels.split import share
from qbench.kernels.stack import stack_array

_COLUMNS = 3, 5, 7  # of windows that are often met

ARGUMENTS = record(**dict.fromkeys((*IMAGES, "weights", "bias"), "i8"), low="f4", high="f4")
"""Arguments of every kernel here: `slide.IMAGES`, weights and bias from `pack_depthwise` and `pad_channels`, and the
bounds of the results.
"""


def known_rows(level: Level, fields: Mapping[str, int]) -> Rows | None:
    """What a kernel of a level is made for, if it gets faster by that.

    Parameters
    ----------
    level
        What the kernel runs on.
    fields
        `slide.IMAGES` of its arguments.
    """
    channels, columns, stride, left = (fields[name] for name in ("channels", "kw", "sw", "left"))
    right = max((fields["out_width"] - 1) * stride + columns - left - fields["width"], 0)
    apart = max(fields["dh"], fields["dw"]) > 1
    if level not in VECTORS or columns not in _COLUMNS or stride > 2 or apart or max(left, right) > 3:
        return None
    lanes = VECTORS[level].lanes
    several = stride == 1 and fields["x_pitch"] == fields["out_pitch"] == channels and lanes % channels == 0
    return Rows(columns, stride, left, right, lanes // channels if several else 1)


def pack_depthwise(weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """Weights [channels, kh, kw] as [blocks, kh, kw, channels of a block], filled up with zeros."""
    channels, kh, kw = weights.shape
    filled = np.pad(weights, ((0, -channels % BLOCK), (0, 0), (0, 0))).reshape(-1, BLOCK, kh, kw)
    return np.ascontiguousarray(filled.transpose(0, 2, 3, 1))


def pad_channels(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """One number per channel, filled up with zeros to the blocks of `pack_depthwise`."""
    return np.pad(values, (0, -len(values) % BLOCK))


@makes_kernels
def float_depthwise_kernel(level: Level, rows: Rows | None = None) -> Kernel:
    """The kernel of a level, for any windows or for those whose rows are known."""
    function = _portable if level == Level.PORTABLE else _tiled(level, rows)
    about = "" if rows is None else "." + "x".join(map(str, astuple(rows)))
    return Kernel(f"float.depthwise.{level}{about}", ARGUMENTS, function)


def _tiled(level: Level, rows: Rows | None) -> KernelFunction:
    @register_jitable
    def operands(args, bases, channel):
        packed = channel // BLOCK * args.kh * args.kw * BLOCK + channel % BLOCK
        return address_of(bases, args.weights) + packed * 4, address_of(bases, args.bias) + channel * 4

    @register_jitable
    def finish(args, row, column):
        return args.low, args.high

    return without_denormals(slide(level, "weigh", operands, finish, rows))


def _portable(args: Any, bases: Any, thread: int, threads: int) -> None:
    """The same in plain loops over arrays."""
    sums = stack_array(BLOCK, np.float32)
    blocks = -(-args.channels // BLOCK)
    bias = view(bases, args.bias, blocks * BLOCK, np.float32)
    begin, end = share(args.images * args.out_height * blocks, thread, threads)
    for piece in range(begin, end):
        block, line = piece % blocks, piece // blocks
        image, row = line // args.out_height, line % args.out_height
        count = min(args.channels - block * BLOCK, BLOCK)
        up = row * args.sh - args.top
        i0, i1 = inside(up, args.dh, args.kh, 0, args.height)
        for column in range(args.out_width):
            at = column * args.sw - args.left
            j0, j1 = inside(at, args.dw, args.kw, 0, args.width)
            for c in range(BLOCK):
                sums[c] = bias[block * BLOCK + c]
            for i in range(i0, i1):
                for j in range(j0, j1):
                    pixel = (up + i * args.dh) * args.x_row + (at + j * args.dw) * args.x_pitch
                    place = args.x + (image * args.x_image + pixel + block * BLOCK) * 4
                    x = view(bases, place, count, np.float32)
                    tap = (block * args.kh + i) * args.kw + j
                    weights = view(bases, args.weights + tap * BLOCK * 4, count, np.float32)
                    for c in range(count):
                        sums[c] += x[c] * weights[c]
            place = args.out + (image * args.out_image + row * args.out_row + column * args.out_pitch) * 4
            out = view(bases, place + block * BLOCK * 4, count, np.float32)
            for c in range(count):
                out[c] = min(max(sums[c], args.low), args.high)
