"""How convolutions walk their results: blocks of pixels by panels of output channels, a share of them for each thread.

Kernels have the arguments x, zeros, table, weights, out, pixels, taps, depth, groups, channels, pitch, out_pitch,
group_pitch, group_out and chunk, whose meaning is said at `qbench.kernels.conv.ARGUMENTS`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import KernelFunction
from qbench.kernels.memory import address_of, view
from qbench.kernels.split import share
from qbench.kernels.stack import stack


@register_jitable
def shares(blocks: Any, panels: Any, thread: Any, threads: Any) -> Any:
    """A thread's blocks and panels: what splits more evenly is split, panels where both do alike."""
    if -(-panels // threads) * blocks <= -(-blocks // threads) * panels:
        first, last = share(panels, thread, threads)
        return 0, blocks, first, last
    first, last = share(blocks, thread, threads)
    return first, last, 0, panels


def by_tiles(
    rows: int,
    width: int,
    step: tuple[int, int],
    sizes: tuple[int, int],
    run_tile: Callable[..., None],
    each: bool = False,
) -> KernelFunction:
    """A kernel that walks tiles in machine code.

    Parameters
    ----------
    rows, width
        Pixels and channels of a tile.
    step
        Input elements of a step, and bytes of its weights in a panel.
    sizes
        Bytes of an input element and of a result.
    run_tile
        Takes args, bases, the addresses of input, zeros and offsets, bytes of the offsets of a tap, steps, the address
        of the weights, the number of the first channel, the address of the result, and how many pixels and channels
        there are.
    each
        Whether every channel has a window of its own; offsets then are of pairs of taps.
    """
    (group, panel_bytes), (item, size) = step, sizes
    offset_bytes, each_item = 4 * rows * (1 + each), item * each

    def conv(args: Any, bases: Any, thread: int, threads: int) -> None:
        x, table, weights = address_of(bases, args.x), address_of(bases, args.table), address_of(bases, args.weights)
        zeros, out = address_of(bases, args.zeros), address_of(bases, args.out)
        line = stack(offset_bytes)
        line_of_offsets = view(bases, line, rows, np.int32)
        blocks, panels = -(-args.pixels // rows), -(-args.channels // width)
        steps = 1 if each else -(-args.depth // group)
        first_block, last_block, first_panel, last_panel = shares(blocks, panels * args.groups, thread, threads)
        for chunk in range(first_block, last_block, args.chunk):
            for panel in range(first_panel, last_panel):
                in_group, first = panel // panels, panel % panels * width
                panel_weights = weights + panel * args.taps * steps * panel_bytes
                panel_out = out + (in_group * args.group_out + first) * size
                channels = min(args.channels - first, width)
                for block in range(chunk, min(chunk + args.chunk, last_block)):
                    pixel = block * rows
                    here = min(args.pixels - pixel, rows)
                    source, offsets = x + in_group * args.group_pitch * item, table + block * args.taps * offset_bytes
                    source += first * each_item
                    if args.table == 0:
                        source, offsets = source + pixel * args.pitch * item, line
                        for r in range(rows):
                            line_of_offsets[r] = min(r, here - 1) * args.pitch * item
                    target = panel_out + pixel * args.out_pitch * size
                    run_tile(
                        args, bases, source, zeros, offsets, offset_bytes, steps, panel_weights, panel * width, target,
                        here, channels,
                    )  # fmt: skip

    return conv


def by_pixels(
    rows: int, width: int, sizes: tuple[int, int], run_pixel: Callable[..., None], each: bool = False
) -> KernelFunction:
    """A kernel that walks single pixels in plain loops, in the order of memory that `by_tiles` has.

    Parameters
    ----------
    rows, width, sizes, each
        As for `by_tiles`.
    run_pixel
        Takes args, bases, the place of the group's input, the number of the pixel, its first offset in the table, the
        number of the panel, the place of the result, and how many channels there are.
    """
    (item, size), lines, each_item = sizes, 1 + each, sizes[0] * each

    def conv(args: Any, bases: Any, thread: int, threads: int) -> None:
        panels = -(-args.channels // width)
        first_pixel, last_pixel, first_panel, last_panel = shares(args.pixels, panels * args.groups, thread, threads)
        for pixel in range(first_pixel, last_pixel):
            line = pixel // rows * args.taps * lines * rows + pixel % rows
            for panel in range(first_panel, last_panel):
                in_group, first = panel // panels, panel % panels * width
                source = args.x + in_group * args.group_pitch * item + first * each_item
                out = args.out + (pixel * args.out_pitch + in_group * args.group_out + first) * size
                run_pixel(args, bases, source, pixel, line, panel, out, min(args.channels - first, width))

    return conv


@register_jitable
def input_of(args: Any, bases: Any, source: Any, pixel: Any, offset: Any, item: Any) -> Any:
    """Where the elements lie that a tap of a pixel reads; `offset` is their place in the table."""
    if args.table == 0:
        return source + pixel * args.pitch * item
    offset = view(bases, args.table + offset * 4, 1, np.int32)[0]
    return args.zeros if offset < 0 else source + offset
