"""Depthwise convolution of 8-bit codes, channels last: each channel with its own window, requantized at once."""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.kernels.depthwise_portable import depthwise_portable
from qbench.kernels.depthwise_spot import spot_tile
from qbench.kernels.depthwise_sweep import Sweep
from qbench.kernels.depthwise_tiles import DepthwiseTile, sweep_tile
from qbench.kernels.epilogue import EpilogueName
from qbench.kernels.isa.lanes import Lanes
from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.levels import Level
from qbench.kernels.memory import address_of, view
from qbench.kernels.rescale import RESCALES
from qbench.kernels.rounding import rescale_one
from qbench.kernels.split import share
from qbench.kernels.stack import stack

MOST_TAPS = 4096
"""Taps of the largest window: the kernels keep their addresses on the stack."""

_WIDTHS = {Level.AVX512VNNI: (64, 32, 16), Level.AVXVNNI: (32, 16), Level.AVX2: (32,)}
"""Bytes of the registers, widest first."""

_BATCH = {Level.AVX512VNNI: 16, Level.AVXVNNI: 2, Level.AVX2: 1}

_SEGMENT = 28
"""Outputs of a row that are made in one go: what is woven for them stays in the first cache."""

_ARGUMENTS = record(
    x="i8",
    zeros="i8",
    weights="i8",
    blocks="i8",
    bias="i8",
    mantissa="i8",
    shift="i8",
    multiplier="i8",
    out="i8",
    count="i8",
    images="i8",
    height="i8",
    width="i8",
    channels="i8",
    out_height="i8",
    out_width="i8",
    kernel_y="i8",
    kernel_x="i8",
    stride_y="i8",
    stride_x="i8",
    dilation_y="i8",
    dilation_x="i8",
    top="i8",
    left="i8",
    pitch="i8",
    row="i8",
    image="i8",
    out_pitch="i8",
    out_row="i8",
    out_image="i8",
    rounding="i8",
    zero_point="i8",
    low="i8",
    high="i8",
)
"""Places: `x` u8 (images, height, width, channels), `zeros` 64 zero points of x, `weights` and `blocks` from
`pack_depthwise`, `bias` int64[channels] (data zero point folded in), `mantissa`, `shift`, `multiplier`, `out`.
Numbers: `count` blocks; shapes; the window; strides in memory of x (`pitch` between pixels, `row`, `image`) and of out;
the rounding's index, zero point and clamps in codes."""


def _all_lanes(level: Level, wide: bool = False) -> list[Lanes]:
    """Those of each kind of block, largest first."""
    return [Lanes(level, width, wide) for width in _WIDTHS[level]]


@cache
def choose_sweep(
    level: Level,
    kernel: tuple[int, int],
    strides: tuple[int, int],
    dilation: tuple[int, int],
    output: tuple[int, int],
) -> Sweep | None:
    """The sliding window that suits a convolution, or None: any window at all then works pixel by pixel."""
    dense, largest = dilation == (1, 1) or strides == (1, 1), kernel == (7, 7) and strides == (1, 1)
    usual = largest or (kernel in ((3, 3), (5, 5)) and strides in ((1, 1), (2, 2)) and dense)
    if level is Level.PORTABLE or not usual or min(output) < 1:
        return None
    taps = _all_lanes(level)[0].taps
    if kernel == (3, 3):  # few enough sums to keep those of all open outputs in registers
        rows = 2 if strides == (1, 1) and level in (Level.AVX512VNNI, Level.AVX2) else 1
        return Sweep(kernel, strides, rows, columns=1, taps=taps)
    columns = 7 if largest and level is Level.AVX512VNNI else 4
    return Sweep(kernel, strides, rows=1, columns=columns, taps=taps)


def pack_depthwise(
    level: Level,
    sweep: Sweep | None,
    kind: EpilogueName,
    weights: NDArray[np.int8 | np.int16],
    bias: NDArray[np.int64],
    mantissa: NDArray[np.int32],
    shift: NDArray[np.int32],
    multiplier: NDArray[np.float32],
    zero_point: int,
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Constants in the order in which the kernel of the same level, sweep and epilogue reads them.

    Parameters
    ----------
    weights
        [channels, height, width]: int8, or for the kernel of wide weights int16.
    bias, mantissa, shift, multiplier
        One per channel; the data zero point is folded into the bias.
    zero_point
        Of the output, in codes.

    Returns
    -------
    Bytes, and int64 [blocks, 4]: each block's first channel, how many it has room for and how many it has, with its
    place in the bytes between them.
    """
    if level is Level.PORTABLE:
        taps = np.ascontiguousarray(weights.reshape(len(weights), -1).T, np.int16)
        return taps.view(np.uint8).ravel(), np.zeros((0, 4), np.int64)
    all_lanes = _all_lanes(level, weights.dtype == np.int16)
    by_channels = {lanes.channels: lanes for lanes in all_lanes}
    taps = _sweep_taps(weights, sweep) if sweep else _spot_taps(weights, all_lanes[0].taps)
    constants = [np.zeros_like(bias)]
    if kind != "exact":
        constants = [bias, *RESCALES[kind].pack(mantissa, shift, multiplier, zero_point)]
    bits = [values if values.dtype == np.float32 else values.astype(np.int32) for values in constants]
    numbers = np.stack([values.view(np.int32) for values in bits], axis=1)  # [channels, groups]
    numbers, taps = (np.pad(values, ((0, 64), *[(0, 0)] * (values.ndim - 1))) for values in (numbers, taps))
    parts, blocks, place = [], [], 0
    for room, alike in groupby(_blocks(len(weights), tuple(by_channels)), key=itemgetter(1)):
        lanes, firsts = by_channels[room], [first for first, _ in alike]
        order = lanes.order + np.array(firsts)[:, np.newaxis, np.newaxis]
        constants = np.moveaxis(numbers[order], 3, 1)  # [blocks, groups, woven vectors, elements]
        factors = np.moveaxis(taps[order], 3, 1)  # [blocks, dots, woven vectors, elements, taps]
        if lanes.weight_vectors == 2:  # even taps, then odd ones
            factors = np.stack([factors[..., 0::2], factors[..., 1::2]], axis=3)
        both = (np.ascontiguousarray(values) for values in (constants, factors.astype(lanes.weight_type)))
        part = np.concatenate([values.reshape(len(firsts), -1).view(np.uint8) for values in both], axis=1)
        for first in firsts:
            blocks.append((first, room, place, min(room, len(weights) - first)))
            place += part.shape[1]
        parts.append(part.ravel())
    return _aligned(np.concatenate(parts)), np.array(blocks, np.int64)


def _aligned(values: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A copy that starts a cache line."""
    memory = np.empty(values.size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    memory[start : start + values.size] = values
    return memory[start : start + values.size]


def _blocks(channels: int, widths: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """First channel of each block and how many it has room for; the last one may overlap its neighbour."""
    first = 0
    while first < channels:
        left = channels - first
        width = next((w for w in reversed(widths) if w >= left), widths[0])
        while width > channels and width > widths[-1]:
            width = next(w for w in widths if w < width)
        first = max(0, min(first, channels - width))
        yield first, width
        first += width


def _sweep_taps(weights: NDArray[np.int8 | np.int16], sweep: Sweep) -> NDArray[np.int8 | np.int16]:
    """[channels, patterns, taps]: those of each of the sweep's patterns."""
    taps = np.pad(weights.reshape(len(weights), -1), ((0, 0), (0, 1)))  # a zero where a pattern says -1
    return taps[:, np.array(sweep.patterns)]


def _spot_taps(weights: NDArray[np.int8 | np.int16], together: int) -> NDArray[np.int8 | np.int16]:
    """[channels, dots, together]: the window's taps row by row."""
    taps = weights.reshape(len(weights), -1)
    return np.pad(taps, ((0, 0), (0, -taps.shape[1] % together))).reshape(len(weights), -1, together)


@makes_kernels
def depthwise_kernel(level: Level, sweep: Sweep | None, kind: EpilogueName, wide: bool = False) -> Kernel:
    """The kernel of a level; `sweep` from `choose_sweep`, `kind` from `kernels.epilogue.choose_epilogue`.

    The one of `wide` weights takes 9 bits and more: 8-bit weights less a zero point.
    """
    if level is Level.PORTABLE:
        return Kernel("depthwise.portable", _ARGUMENTS, depthwise_portable)
    name = "spot" if sweep is None else str(sweep)
    all_lanes = _all_lanes(level, wide)
    tile, taps = _dispatch(all_lanes, kind, sweep), all_lanes[0].taps
    return Kernel(
        f"depthwise.{level}.{kind}.{name}{'.wide' if wide else ''}",
        _ARGUMENTS,
        _spots(tile, kind, taps) if sweep is None else _sweeps(tile, kind, sweep),
    )


def _sweeps(tile: Any, kind: EpilogueName, sweep: Sweep) -> Any:
    """A kernel that slides along output rows.

    With a dilation of d by e, each d-th row and e-th column of the output meets each d-th row and e-th column of the
    input: d times e images, each with windows whose taps are neighbours.
    """
    together, depth, taps, exact = sweep.rows, sweep.input_rows, sweep.taps, kind == "exact"
    longest, scratch_bytes, sums_bytes = 1 << 30, 0, 0
    if exact or sweep.columns > 1:
        longest = _SEGMENT // sweep.columns * sweep.columns
    if sweep.columns > 1:
        scratch_bytes = 64 * (4 * sweep.groups(longest) * len(sweep.group) + longest * together)
    if exact:
        sums_bytes = 4 * 64 * longest * together
    line_bytes = 8 * depth

    def function(args: Any, bases: Any, thread: int, threads: int) -> None:
        blocks = view(bases, args.blocks, args.count * 4, np.int64)
        line_addresses, step_addresses = stack(line_bytes), stack(line_bytes)
        lines, steps = view(bases, line_addresses, depth, np.int64), view(bases, step_addresses, depth, np.int64)
        down, across = args.dilation_y, args.dilation_x
        segment = min(longest, (args.out_width + across - 1) // across)
        pieces = across * ((args.out_width + across * segment - 1) // (across * segment))
        scratch, sums_address = stack(scratch_bytes), stack(sums_bytes)
        sums = view(bases, sums_address, sums_bytes // 4, np.int32)
        x, zeros, constants = address_of(bases, args.x), address_of(bases, args.zeros), address_of(bases, args.weights)
        out = address_of(bases, args.out)
        heights = ((args.out_height + down - 1) // down + together - 1) // together
        line, last, first_block, last_block = 0, args.images * down * heights, 0, args.count
        if last >= threads:
            line, last = share(last, thread, threads)
        else:
            first_block, last_block = share(args.count, thread, threads)
        while line < last:
            part, first_group = line // heights, line % heights
            image, phase = part // down, part % down
            groups = min(heights, first_group + last - line)
            line += groups - first_group
            for block in range(4 * first_block, 4 * last_block, 4):
                channel, room, stored = blocks[block], blocks[block + 1], blocks[block + 3]
                # Block by block: the few rows of 64 channels that a window touches stay in the first cache.
                for group in range(first_group, groups):
                    y = phase + group * together * down
                    rows = min(together, (args.out_height - y + down - 1) // down)
                    for piece in range(pieces if rows > 0 else 0):
                        first = piece // across * across * segment + piece % across
                        outputs = min(segment, (args.out_width - first + across - 1) // across)
                        if outputs <= 0:
                            continue
                        row, column = y * args.stride_y - args.top, first * args.stride_x - args.left
                        for i in range(depth):
                            here = row + i * down
                            inside = 0 <= here < args.height
                            place = x + image * args.image + here * args.row + column * args.pitch + channel
                            lines[i] = place if inside else zeros
                            steps[i] = args.pitch * across if inside else 0
                        target = image * args.out_image + y * args.out_row + first * args.out_pitch + channel
                        goal, pitch, apart = out + target, args.out_pitch * across, args.out_row * down
                        if exact:
                            goal, pitch, apart = sums_address, 4 * room, 4 * room * outputs
                        call = (
                            line_addresses, step_addresses, zeros, column // across,
                            (args.width - column % across + across - 1) // across, outputs, rows, scratch,
                            constants + blocks[block + 2], goal, pitch, apart, args.zero_point, args.low, args.high,
                            stored,
                        )  # fmt: skip
                        tile(room, call)
                        if exact:
                            for r in range(rows):
                                place = args.out + target + r * args.out_row * down
                                _finish(
                                    args, bases, taps, sums[r * outputs * room :], channel, room, stored, place, outputs
                                )

    return function


def _spots(tile: Any, kind: EpilogueName, taps: int) -> Any:
    """A kernel that gathers each output pixel's taps: any window of up to MOST_TAPS, stride and dilation."""
    exact, taps_bytes, sums_bytes = kind == "exact", 8 * MOST_TAPS, 4 * 64

    def function(args: Any, bases: Any, thread: int, threads: int) -> None:
        blocks = view(bases, args.blocks, args.count * 4, np.int64)
        dots = (args.kernel_y * args.kernel_x + taps - 1) // taps
        x, zeros, constants = address_of(bases, args.x), address_of(bases, args.zeros), address_of(bases, args.weights)
        tap_addresses, sums_address = stack(taps_bytes), stack(sums_bytes)
        places, sums = view(bases, tap_addresses, taps * dots, np.int64), view(bases, sums_address, 64, np.int32)
        units = args.images * args.out_height * args.out_width
        for unit in range(*share(units, thread, threads)):
            line, ox = unit // args.out_width, unit % args.out_width
            image, oy = line // args.out_height, line % args.out_height
            places[:] = 0
            for ky in range(args.kernel_y):
                for kx in range(args.kernel_x):
                    iy = oy * args.stride_y - args.top + ky * args.dilation_y
                    ix = ox * args.stride_x - args.left + kx * args.dilation_x
                    if 0 <= iy < args.height and 0 <= ix < args.width:
                        places[ky * args.kernel_x + kx] = x + image * args.image + iy * args.row + ix * args.pitch
            out = args.out + image * args.out_image + oy * args.out_row + ox * args.out_pitch
            for block in range(0, 4 * args.count, 4):
                channel, room, stored = blocks[block], blocks[block + 1], blocks[block + 3]
                target = sums_address if exact else address_of(bases, out + channel)
                call = (
                    tap_addresses, dots, channel, zeros, constants + blocks[block + 2], target, args.zero_point,
                    args.low, args.high, stored
                )  # fmt: skip
                tile(room, call)
                if exact:
                    _finish(args, bases, taps, sums, channel, room, stored, out + channel, 1)

    return function


def _dispatch(all_lanes: Sequence[Lanes], kind: EpilogueName, sweep: Sweep | None) -> Any:
    """``function(room, arguments)`` that calls the tile for blocks of so many channels."""
    lanes, *smaller = all_lanes
    made = DepthwiseTile(lanes, kind, _BATCH[lanes.level])
    tile, most = spot_tile(made) if sweep is None else sweep_tile(made, sweep), lanes.channels
    others: Any = _dispatch(smaller, kind, sweep) if smaller else None

    @register_jitable
    def largest(room: int, arguments: Any) -> None:
        if room == most:
            tile(*arguments)
        else:
            others(room, arguments)

    @register_jitable
    def only(room: int, arguments: Any) -> None:
        tile(*arguments)

    return largest if smaller else only


@register_jitable
def _finish(
    args: Any, bases: Any, taps: int, sums: Any, channel: Any, room: Any, stored: Any, out: Any, pixels: Any
) -> None:
    """Rescale sums in the order of `Lanes.order`, one by one."""
    bias = view(bases, args.bias, args.channels, np.int64)
    mantissa = view(bases, args.mantissa, args.channels, np.int32)
    shift = view(bases, args.shift, args.channels, np.int32)
    multiplier = view(bases, args.multiplier, args.channels, np.float32)
    for pixel in range(pixels):
        codes = view(bases, out + pixel * args.out_pitch * args.dilation_x, stored, np.uint8)
        for j in range(stored):
            place = pixel * room + j // 4 % taps * (room // taps) + j // (4 * taps) * 4 + j % 4
            c = channel + j
            value = rescale_one(np.int64(sums[place]) + bias[c], mantissa[c], shift[c], multiplier[c], args.rounding)
            codes[j] = min(max(value + args.zero_point, args.low), args.high)
