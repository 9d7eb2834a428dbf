"""A tile of float32 accumulators that stays in registers: pixels times vectors of output channels."""

from typing import Any

from llvmlite import ir

from qbench.kernels.floats.vectors import Vectors
from qbench.kernels.isa.emit import I32, I64, at, call, load, pointer, vector
from qbench.kernels.jit import intrinsic, types
from qbench.kernels.tile import Tile

_UNROLL = 4
_LINE = 64
_SOON = I32(0), I32(2), I32(1)
"""Of LLVM's prefetch: to read, into the L2 cache, data."""
AHEAD = 32
"""See `float_tile`."""


def float_tile(vectors: Vectors, shape: Tile) -> Any:
    """A Numba function that computes one tile of a convolution or matrix product.

    ``tile(x, zeros, offsets, taps, depth, weights, ahead, bias, added, out, pitch, rows, channels, low, high)``

    x, zeros
        Addresses: what offsets count from, and `depth` zeros, read instead where an offset is negative.
    offsets
        Address of int32 ``[taps, shape.rows]``: in bytes, where each row's input for a tap starts.
    taps, depth
        Sizes; at least 1.
    weights
        Address of float32 ``[taps, depth, shape.vectors, lanes]``.
    ahead
        Address of what will be read later: `AHEAD` bytes for each step of the depth are brought into the L2 cache.
    bias
        Address of the first values of the sums, one for each channel.
    added
        Address of what is added to the first result; the others' lie as far apart as the results. 0: nothing is.
    out, pitch, rows, channels
        Address of the first result, bytes from row to row; how many rows (at least 1) and channels exist. Rows
        beyond them are computed as the last one is, so their offsets must be copies of its offsets.
    low, high
        float32: bounds of the results.
    """

    @intrinsic
    def tile(
        context, x, zeros, offsets, taps, depth, weights, ahead, bias, added, out, pitch, rows, channels, low, high
    ):  # fmt: skip
        def generate(context, b, signature, arguments):
            _Emitter(b, vectors, shape).emit(*arguments)
            return context.get_dummy_value()

        return types.void(*[types.int64] * 13, types.float32, types.float32), generate

    return tile


class _Emitter:
    """Emits one tile."""

    def __init__(self, b: ir.IRBuilder, vectors: Vectors, shape: Tile) -> None:
        self.b, self.vectors, self.shape = b, vectors, shape
        self.bytes = 4 * vectors.lanes * shape.vectors

    def emit(
        self, x: Any, zeros: Any, offsets: Any, taps: Any, depth: Any, weights: Any, ahead: Any, bias: Any,
        added: Any, out: Any, pitch: Any, rows: Any, channels: Any, low: Any, high: Any,
    ) -> None:  # fmt: skip
        """All of it: sums start from the bias; what is to be added is; they are clamped and stored."""
        b, vectors, shape = self.b, self.vectors, self.shape
        start = [vectors.load(b, pointer(b, bias), 4 * vectors.lanes * v) for v in range(shape.vectors)]
        places = pointer(b, x), pointer(b, zeros), pointer(b, offsets)
        sums = self._each_tap(*places, taps, depth, weights, ahead, start)
        lines = [b.mul(call(b, "llvm.smin.i64", I64, [I64(r), b.sub(rows, I64(1))]), pitch) for r in range(shape.rows)]
        with b.if_else(b.icmp_signed(">=", channels, I64(self.bytes // 4)), likely=True) as (whole, part):
            for branch, limit in ((whole, None), (part, channels)):
                with branch, b.if_else(b.icmp_signed("==", added, I64(0)), likely=True) as (alone, plus):
                    with alone:
                        self._finish(sums, None, (out, lines), limit, (low, high))
                    with plus:
                        self._finish(sums, added, (out, lines), limit, (low, high))

    def _finish(self, sums: list[Any], added: Any, target: tuple[Any, list[Any]], limit: Any, bounds: Any) -> None:
        """Add what lies at an address if there is one, clamp, and store: as far as the channels go."""
        b, vectors, (out, lines) = self.b, self.vectors, target
        lowest, highest = (vector(b, vectors.kind, bound) for bound in bounds)
        rows = [(at(b, pointer(b, out), line), added and at(b, pointer(b, added), line)) for line in lines]
        for i, total in enumerate(sums):
            (place, other), first = rows[i // self.shape.vectors], i % self.shape.vectors * vectors.lanes
            if other is not None:
                total = b.fadd(total, vectors.load_some(b, at(b, other, 4 * first), first, limit))
            vectors.store_some(b, vectors.clamp(b, total, lowest, highest), at(b, place, 4 * first), first, limit)

    def _each_tap(
        self, x: Any, zeros: Any, offsets: Any, taps: Any, depth: Any, weights: Any, ahead: Any, start: list[Any]
    ) -> list[Any]:
        b, shape = self.b, self.shape
        before, body, done = b.block, b.append_basic_block("tap"), b.append_basic_block("done")
        b.branch(body)
        b.position_at_end(body)
        tap, place = b.phi(I64), b.phi(I64)
        sums = [b.phi(self.vectors.kind) for _ in range(shape.rows * shape.vectors)]
        inputs: list[Any] = []
        outside = I64(-1)  # negative for as long as no row reads within the image
        for r in range(shape.rows):
            index = b.add(b.mul(tap, I64(4 * shape.rows)), I64(4 * r))
            offset = b.sext(load(b, offsets, I32, index), I64)
            inputs.append(b.select(b.icmp_signed("<", offset, I64(0)), zeros, at(b, x, offset)))
            outside = b.and_(outside, offset)
        # zeros add nothing: most taps of a widely dilated window may lie outside
        here = b.select(b.icmp_signed("<", outside, I64(0)), I64(0), depth)
        many = b.and_(here, I64(-_UNROLL))
        later = b.add(ahead, b.mul(b.mul(tap, depth), I64(AHEAD)))
        results = self._steps(inputs, place, I64(0), many, _UNROLL, sums, later)
        results = self._steps(inputs, place, many, here, 1, results)
        following = b.add(tap, I64(1))
        next_place = b.add(place, b.mul(depth, I64(self.bytes)))
        end = b.block
        b.cbranch(b.icmp_signed("<", following, taps), body, done)
        for phi, first, again in [(tap, I64(0), following), (place, weights, next_place)]:
            phi.add_incoming(first, before)
            phi.add_incoming(again, end)
        for i, (phi, result) in enumerate(zip(sums, results, strict=True)):
            phi.add_incoming(start[i % shape.vectors], before)
            phi.add_incoming(result, end)
        b.position_at_end(done)
        return results

    def _steps(
        self, inputs: list[Any], weights: Any, first: Any, last: Any, unroll: int, sums: list[Any], later: Any = None
    ) -> list[Any]:
        """Steps first..last of the depth, `unroll` at a time."""
        b, shape = self.b, self.shape
        before, body, done = b.block, b.append_basic_block("step"), b.append_basic_block("stepped")
        b.cbranch(b.icmp_signed("<", first, last), body, done)
        b.position_at_end(body)
        step = b.phi(I64)
        phis = [b.phi(self.vectors.kind) for _ in sums]
        results: list[Any] = list(phis)
        panel, depth = pointer(b, b.add(weights, b.mul(step, I64(self.bytes)))), b.mul(step, I64(4))
        for line in range(AHEAD * unroll // _LINE if later is not None else 0):
            place = at(b, pointer(b, b.add(later, b.mul(step, I64(AHEAD)))), line * _LINE)
            call(b, "llvm.prefetch.p0", ir.VoidType(), [place, *_SOON])
        for u in range(unroll):
            columns = [
                self.vectors.load(b, panel, u * self.bytes + 4 * self.vectors.lanes * v) for v in range(shape.vectors)
            ]
            for r in range(shape.rows):
                element = self.vectors.broadcast(b, at(b, at(b, inputs[r], depth), 4 * u))
                for v in range(shape.vectors):
                    i = r * shape.vectors + v
                    results[i] = self.vectors.fma(b, element, columns[v], results[i])
        following = b.add(step, I64(unroll))
        step.add_incoming(first, before)
        step.add_incoming(following, body)
        for phi, outer, result in zip(phis, sums, results, strict=True):
            phi.add_incoming(outer, before)
            phi.add_incoming(result, body)
        b.cbranch(b.icmp_signed("<", following, last), body, done)
        b.position_at_end(done)
        merged = [b.phi(self.vectors.kind) for _ in sums]
        for phi, outer, result in zip(merged, sums, results, strict=True):
            phi.add_incoming(outer, before)
            phi.add_incoming(result, body)
        return merged
