"""The loop of depthwise convolution for any window: one pixel of output, one block of channels, tap by tap."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from llvmlite import ir

from qbench.kernels.depthwise_tiles import DepthwiseTile, Ends, emit_end, emit_loop
from qbench.kernels.isa.emit import I64, at, load, pointer
from qbench.kernels.jit import intrinsic, types

Value = Any


def emit_spot(b: ir.IRBuilder, tile: DepthwiseTile, a: Sequence[Value]) -> None:
    """The code of `spot_tile`."""
    lanes = tile.lanes
    taps, dots, channel, zeros, block, out, *ends = a
    ends = Ends(b, tile, *ends)
    taps, block, out = (pointer(b, address) for address in (taps, block, out))

    def codes(tap: Value) -> Value:
        inside = b.icmp_unsigned("!=", tap, I64(0))
        return load(b, pointer(b, b.select(inside, b.add(tap, channel), zeros)), lanes.codes)

    def step(index: Value, sums: list[Value]) -> list[Value]:
        start = at(b, taps, b.mul(index, I64(8 * lanes.taps)))
        woven = lanes.weave(b, [codes(load(b, start, I64, 8 * i)) for i in range(lanes.taps)])
        return [lanes.dot(b, sums[q], woven[q], tile.weights(b, block, index, q)) for q in range(lanes.taps)]

    sums = emit_loop(b, dots, [tile.constant(b, block, 0, q) for q in range(lanes.taps)], step)
    emit_end(b, tile, block, [sums], [out], ends)


@cache
def spot_tile(tile: DepthwiseTile) -> Any:
    """An intrinsic that makes one pixel of output, one block of channels, for any window.

    Arguments, all int64: address of the addresses of the taps' first channels, 0 in the padding; how many dot products
    they make; first channel; address of the zero points; address of the block; address of the output; zero point,
    low, high; channels to store.
    """

    @intrinsic
    def run(typing, taps, dots, channel, zeros, block, out, zero_point, low, high, count):
        def generate(context, b, signature, arguments):
            emit_spot(b, tile, arguments)
            return context.get_dummy_value()

        return types.void(*[types.int64] * 10), generate

    return run
