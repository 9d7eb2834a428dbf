"""Convolutions and matrix products of 8-bit codes or 16-bit integers: tiles over pixels and output channels.

A dense layer is a convolution of one tap over as many pixels as there are samples.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from qbench.kernels.epilogue import Accumulators, Codes, Epilogue, EpilogueName, Reals, Result, Words
from qbench.kernels.isa import Element, Isa, isa_of
from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, KernelFunction, makes_kernels, record
from qbench.kernels.levels import Level
from qbench.kernels.matrix import MATRIX, by_matrices, make_matrix_tile
from qbench.kernels.memory import address_of, view
from qbench.kernels.pack import packing
from qbench.kernels.panels import by_pixels, by_tiles, input_of
from qbench.kernels.rescale import RESCALES
from qbench.kernels.rounding import rescale_one
from qbench.kernels.stack import stack, stack_array
from qbench.kernels.tile import Tile, make_tile

ARGUMENTS = record(
    x="i8",
    zeros="i8",
    table="i8",
    weights="i8",
    out="i8",
    bias="i8",
    mantissa="i8",
    shift="i8",
    multiplier="i8",
    scales="i8",
    pixels="i8",
    taps="i8",
    depth="i8",
    run_taps="i8",
    run_steps="i8",
    part_steps="i8",
    groups="i8",
    group_pitch="i8",
    group_out="i8",
    channels="i8",
    pitch="i8",
    out_pitch="i8",
    chunk="i8",
    rounding="i8",
    zero_point="i8",
    low="i8",
    high="i8",
)
"""Arguments of every kernel here.

x, zeros
    Input codes (u8) or integers (i16), and `depth` zero points rounded up to 4, read where a window sticks out.
table
    From `pack.offsets`; 0 where there is one tap and the pixels lie `pitch` elements apart.
weights, bias
    From `pack.pack_weights` and `pack.pack_channels`. The bias is int32; int64 for the epilogue ``exact``. The input's
    zero point is in it.
mantissa, shift, multiplier, scales
    The first three from `pack.pack_channels`, read by the epilogue ``exact`` and the portable kernels, as the rounding
    mode needs them; `scales` from `pack.pack_scales`, read by vector code.
out
    Codes (u8) or integers (i16), or the real numbers (f32) that they stand for; without those, int32 for the epilogue
    ``accumulators``.
pixels, taps, depth
    Output pixels of all images; taps of the window; input channels of one group.
run_taps, run_steps
    Taps, and of each tap steps of the input elements, whose products 32 bits hold; one of the two is all there are. The
    epilogue ``exact`` adds the sums of such runs in 64 bits; the others take all at once.
part_steps
    Steps until the epilogue ``exact`` reads the input from its start again, where what was summed before counts 256
    times: weights are first their upper and then their lower bytes. All steps there are, where they have one part.
groups, channels
    Groups of the convolution, and output channels of each.
group_pitch, group_out
    Elements from group to group of input and output: where channels lie side by side, those of one group.
pitch, out_pitch
    Elements from pixel to pixel of input and output.
chunk
    Blocks of pixels (of as many as the tile has rows) for which one panel of weights is used before the next.
rounding, zero_point, low, high
    Index in ROUNDINGS, and zero point and clamp of the output, as it is stored.
"""


@makes_kernels
def conv_kernel(
    level: Level, tile: Tile, epilogue: EpilogueName, x: Element = "u1", y: Result = "u1", each: bool = False
) -> Kernel:
    """The kernel of one shape of tile, for elements `x`; its results are `y`, or with that epilogue accumulators.

    There are reals, of accumulators too, in vector code alone.

    With `each`, every channel has a window of its own, packed by `pack.pack_each` with 16-bit weights: `taps` counts
    pairs of taps, the table has two lines for each, and there is one group.
    """
    result = "i4" if epilogue == "accumulators" and y != "f4" else y
    level = level if tile == MATRIX else level.vectors
    makers = {Level.AMX: _matrices, Level.PORTABLE: _portable}
    make = makers.get(level, partial(_tiled, level))
    name = f"conv.{level}.{tile}.{epilogue}.{x}.{result}{'.each' if each else ''}"
    return Kernel(name, ARGUMENTS, make(tile, epilogue, x, result, each))


def _tiled(level: Level, shape: Tile, epilogue: EpilogueName, x: Element, y: str, each: bool) -> KernelFunction:
    isa = isa_of(level, "i2" if each else x)
    item, size = np.dtype(x).itemsize, np.dtype(y).itemsize
    sums = partial(make_tile, isa, shape, each=item * each)
    run_tile = _exact_tile(isa, shape, y, sums) if epilogue == "exact" else _vector_tile(epilogue, y, sums)
    step = isa.group, shape.vectors * isa.weight_bytes
    return by_tiles(shape.rows, shape.vectors * isa.lanes, step, (item, size), run_tile, each)


def _ending(epilogue: Any, y: str) -> tuple[Epilogue, int]:
    """The vector code that ends tiles for results `y`, and how many constants it reads for each channel."""
    forms: dict[str, Epilogue] = {
        "u1": Codes(epilogue), "i2": Words(epilogue), "i4": Accumulators(), "f4": Reals(epilogue)
    }  # fmt: skip
    return forms[y], (RESCALES[epilogue].constants if epilogue in RESCALES else 0) + (y == "f4")


def _matrices(shape: Tile, epilogue: EpilogueName, x: Element, y: str, each: bool) -> KernelFunction:
    ending, constants = _ending(epilogue, y)
    tile, size = make_matrix_tile(ending), np.dtype(y).itemsize

    @register_jitable(inline="always")
    def run_tile(args, bases, source, source_pitch, weights, channel, sums, out, rows, channels):
        scales = address_of(bases, args.scales) + channel * 4 * constants
        operands = (scales, args.zero_point, args.low, args.high)
        bias = address_of(bases, args.bias) + channel * 4
        pitch = args.out_pitch * size
        steps, parts = args.part_steps, args.run_steps // args.part_steps
        tile(source, source_pitch, steps, parts, weights, bias, sums, out, pitch, rows, channels, operands)

    return by_matrices(size, run_tile)


def _vector_tile(epilogue: Any, y: str, make: Callable[[Epilogue], Any]) -> Callable[..., None]:
    """A tile whose epilogue is vector code, for results `y`."""
    ending, constants = _ending(epilogue, y)
    tile, size = make(ending), np.dtype(y).itemsize

    @register_jitable(inline="always")
    def run_tile(args, bases, source, zeros, offsets, offset_bytes, steps, weights, channel, out, rows, channels):
        scales = address_of(bases, args.scales) + channel * 4 * constants
        operands = (scales, args.zero_point, args.low, args.high)
        bias = address_of(bases, args.bias) + channel * 4
        pitch = args.out_pitch * size
        tile(source, zeros, offsets, args.taps, steps, weights, bias, out, pitch, rows, channels, operands)

    return run_tile


def _exact_tile(isa: Isa, shape: Tile, y: str, make: Callable[[Epilogue], Any]) -> Callable[..., None]:
    """A tile that sums runs of products in vectors, and adds the bias and rescales one number after the other."""
    tile, width, result = make(Accumulators()), shape.vectors * isa.lanes, np.dtype(y).type
    size, panel_bytes, step_bytes = np.dtype(y).itemsize, shape.vectors * isa.weight_bytes, isa.step_bytes
    finish = _as_reals if y == "f4" else _finish
    line_bytes, count = 4 * width, width * shape.rows
    bytes_of_sums = 4 * count

    @register_jitable
    def run_tile(args, bases, source, zeros, offsets, offset_bytes, steps, weights, channel, out, rows, channels):
        start = stack(line_bytes)
        view(bases, start, width, np.int32)[:] = 0
        place = stack(bytes_of_sums)
        sums, totals = view(bases, place, rows * width, np.int32), stack_array(count, np.int64)
        totals[:] = 0
        for tap in range(0, args.taps, args.run_taps):
            taps = min(args.run_taps, args.taps - tap)
            for part in range(0, steps, args.part_steps):
                end = min(part + args.part_steps, steps)
                for step in range(part, end, args.run_steps):
                    tile(
                        source + (step - part) * step_bytes, zeros, offsets + tap * offset_bytes, taps,
                        min(args.run_steps, end - step), weights + (tap * steps + step) * panel_bytes, start, place,
                        line_bytes, rows, width, (0,),
                    )  # fmt: skip
                    for i in range(rows * width):
                        totals[i] = (totals[i] << (8 if step == part > 0 else 0)) + sums[i]
        bias = view(bases, args.bias + channel * 8, channels, np.int64)
        for r in range(rows):
            finished = view(bases, out + r * args.out_pitch * size, channels, result)
            finish(args, bases, totals[r * width : r * width + channels], bias, channel, finished)

    return run_tile


@register_jitable
def _finish(args: Any, bases: Any, sums: Any, bias: Any, channel: int, out: Any) -> None:
    """Sums of products of one pixel, from a channel on, as elements of `out`."""
    count = len(sums)
    mantissa = view(bases, args.mantissa + channel * 4, count, np.int32)
    shift = view(bases, args.shift + channel * 4, count, np.int32)
    multiplier = view(bases, args.multiplier + channel * 4, count, np.float32)
    for i in range(count):
        scaled = rescale_one(np.int64(sums[i]) + bias[i], mantissa[i], shift[i], multiplier[i], args.rounding)
        out[i] = min(max(scaled + args.zero_point, args.low), args.high)


@register_jitable
def _as_reals(args: Any, bases: Any, sums: Any, bias: Any, channel: int, out: Any) -> None:
    """The same as what they stand for."""
    scales = view(bases, args.scales + channel * 4, len(sums), np.float32)
    for i in range(len(sums)):
        out[i] = np.float32(np.int64(sums[i]) + bias[i]) * scales[i]


def _portable(shape: Tile, epilogue: EpilogueName, x: Element, y: str, each: bool) -> KernelFunction:
    """The same in plain loops over arrays, one pixel after the other."""
    element, result, item, size = np.dtype(x).type, np.dtype(y).type, np.dtype(x).itemsize, np.dtype(y).itemsize
    weight, sum_type = (np.int8, np.int32) if x == "u1" and not each else (np.int16, np.int64)
    weight_bytes, lines = np.dtype(weight).itemsize, 1 + each
    lanes, _ = packing(Level.PORTABLE)
    rows, width = shape.rows, shape.vectors * lanes
    keep_sums = epilogue == "accumulators"
    bias_type, bias_bytes = (np.int64, 8) if epilogue == "exact" else (np.int32, 4)

    @register_jitable
    def run_pixel(args, bases, source, pixel, line, panel, place, count):
        sums, depth = stack_array(width, sum_type), 1 if each else args.depth
        sums[:] = 0
        for tap in range(args.taps * lines):
            weights = args.weights + (panel * args.taps * lines + tap) * depth * width * weight_bytes
            here = input_of(args, bases, source, pixel, line + tap * rows, item)
            elements = view(bases, here, count if each else depth, element)
            factors = view(bases, weights, depth * width, weight)
            if each:
                for c in range(count):
                    sums[c] += np.int64(elements[c]) * np.int64(factors[c])
            else:
                _add_products(sums, elements, factors.reshape(depth, width))
        channel = panel * width
        bias = view(bases, args.bias + channel * bias_bytes, count, bias_type)
        out = view(bases, place, count, result)
        if keep_sums:
            for c in range(count):
                out[c] = _wrapped(sums[c] + bias[c])
        else:
            _finish(args, bases, sums[:count], bias, channel, out)

    return by_pixels(rows, width, (item, size), run_pixel, each)


@register_jitable
def _add_products(sums: Any, elements: Any, weights: Any) -> None:
    for k in range(len(elements)):
        element = np.int32(elements[k])
        for c in range(len(sums)):
            sums[c] += element * np.int32(weights[k, c])


@register_jitable
def _wrapped(total: Any) -> Any:
    """As much of an integer as 32 bits hold."""
    return ((np.int64(total) + 2**31) & (2**32 - 1)) - 2**31
