"""Elementwise work on rows of 8-bit codes, a vector at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, register_jitable

from qbench.kernels.isa.base import Isa
from qbench.kernels.isa.emit import I8, I32, I64, at, load, pointer, store
from qbench.kernels.memory import address_of
from qbench.kernels.split import share

__all__ = ["Elementwise", "loop", "make_rows", "store_codes", "walk_pairs"]


class Elementwise(ABC):
    """What is done to each element; values are LLVM IR."""

    @abstractmethod
    def prepare(self, b: ir.IRBuilder, isa: Isa, operands: Sequence[Any]) -> Any:
        """Whatever `apply` needs and is the same for all elements; `operands` are 64-bit integers."""

    @abstractmethod
    def apply(self, b: ir.IRBuilder, isa: Isa, prepared: Any, vectors: Sequence[Any]) -> Any:
        """One vector of codes from one of each input; a vector has four codes per 32-bit lane."""


def make_rows(isa: Isa, operation: Elementwise) -> Any:
    """A Numba function that computes rows of codes; its arguments are 64-bit integers and tuples of them.

    ``rows(inputs, pitches, out, out_pitch, rows, count, operands)``

    inputs, pitches
        Address of each input, and the bytes from row to row, which may be 0: one row for all.
    out, out_pitch
        The same of the output. Inputs are read up to one vector beyond their rows, outputs written to the element.
    rows, count
        Number of rows, and of codes in each.
    operands
        What the operation needs.
    """
    width = 4 * isa.lanes

    @intrinsic
    def rows(context, inputs, pitches, out, out_pitch, rows, count, operands):
        def generate(context, b, signature, arguments):
            inputs, pitches, out, out_pitch, rows, count, operands = arguments
            sources = [pointer(b, b.extract_value(inputs, i)) for i in range(len(signature.args[0]))]
            steps = [b.extract_value(pitches, i) for i in range(len(signature.args[1]))]
            prepared = operation.prepare(b, isa, [b.extract_value(operands, i) for i in range(len(signature.args[-1]))])
            with loop(b, rows, 1) as row:
                starts = [at(b, source, b.mul(row, step)) for source, step in zip(sources, steps, strict=True)]
                target = at(b, pointer(b, out), b.mul(row, out_pitch))
                with loop(b, count, width) as column:
                    vectors = [load(b, start, ir.VectorType(I8, width), column) for start in starts]
                    result = operation.apply(b, isa, prepared, vectors)
                    store_codes(b, isa, result, at(b, target, column), b.sub(count, column))
            return context.get_dummy_value()

        return types.void(inputs, pitches, *[types.int64] * 4, operands), generate

    return rows


def walk_pairs(rows: Any) -> Any:
    """A Numba function that computes a thread's share of a result of two inputs; `rows` from `make_rows`.

    ``walk(args, bases, thread, threads, operands)``: the fields of `args` are a, b and y, and their extents as
    `walk.strided` has them. Last axes have steps of 1.
    """

    @register_jitable
    def walk(args: Any, bases: Any, thread: Any, threads: Any, operands: Any) -> None:
        n1, n2, n3, outer = args.n1, args.n2, args.n3, args.n0 * args.n1
        a, b, y = address_of(bases, args.a), address_of(bases, args.b), address_of(bases, args.y)
        steps = (args.a2, args.b2)
        if outer * n2 == 1:
            first, end = share(n3, thread, threads, 64)
            rows((a + first, b + first), steps, y + first, args.y2, 1, end - first, operands)
            return
        first, end = share(outer * n2, thread, threads)
        while first < end:
            i0, i1, i2 = first // (n1 * n2), first // n2 % n1, first % n2
            count = min(n2 - i2, end - first)
            starts = a + i0 * args.a0 + i1 * args.a1 + i2 * args.a2, b + i0 * args.b0 + i1 * args.b1 + i2 * args.b2
            rows(starts, steps, y + i0 * args.y0 + i1 * args.y1 + i2 * args.y2, args.y2, count, n3, operands)
            first += count

    return walk


def store_codes(b: ir.IRBuilder, isa: Isa, codes: Any, place: Any, count: Any) -> None:
    """Store a vector, or the first `count` (i64) of its codes if that is fewer."""
    with b.if_else(b.icmp_signed(">=", count, I64(codes.type.count)), likely=True) as (whole, part):
        with whole:
            store(b, codes, place)
        with part:
            isa.store_some(b, codes, place, b.trunc(count, I32))


class loop:
    """``for index in range(0, count, step)`` around what is emitted inside."""

    def __init__(self, b: ir.IRBuilder, count: Any, step: int) -> None:
        self.b, self.count, self.step = b, count, step

    def __enter__(self) -> Any:
        b = self.b
        before = b.block
        self.head, self.body, self.done = (b.append_basic_block(name) for name in ("head", "body", "done"))
        b.branch(self.head)
        b.position_at_end(self.head)
        self.index = b.phi(I64)
        self.index.add_incoming(I64(0), before)
        b.cbranch(b.icmp_signed("<", self.index, self.count), self.body, self.done)
        b.position_at_end(self.body)
        return self.index

    def __exit__(self, *failure: object) -> None:
        b = self.b
        self.index.add_incoming(b.add(self.index, I64(self.step)), b.block)
        b.branch(self.head)
        b.position_at_end(self.done)
