"""Elementwise work on rows of 8-bit codes and of 16-bit integers, a vector at a time."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from llvmlite import ir

from qbench.kernels.isa import Element, Isa
from qbench.kernels.isa.emit import I32, I64, at, load, pointer, store, vector
from qbench.kernels.jit import intrinsic, register_jitable, types
from qbench.kernels.memory import address_of
from qbench.kernels.split import share

Operand = Element | Literal["f4"]
"""What vectors are of: narrow integers, or the bits of real numbers."""


class Elementwise(ABC):
    """What is done to each element; values are LLVM IR."""

    inputs: tuple[Operand, ...]
    """Of what each input is."""
    output: Element
    """Of what the results are."""

    @abstractmethod
    def prepare(self, b: ir.IRBuilder, isa: Isa, operands: Sequence[Any]) -> Any:
        """Whatever `apply` needs and is the same for all elements; `operands` are 64-bit integers."""

    @abstractmethod
    def apply(self, b: ir.IRBuilder, isa: Isa, prepared: Any, vectors: Sequence[Any]) -> Any:
        """One vector of results from one of each input; a vector has four elements per 32-bit lane."""


def make_rows(isa: Isa, operation: Elementwise) -> Any:
    """A Numba function that computes rows of elements; its arguments are 64-bit integers and tuples of them.

    ``rows(inputs, pitches, steps, out, out_pitch, rows, count, operands)``

    inputs, pitches, steps
        Address of each input, the bytes from row to row, which may be 0: one row for all, and 1, or 0 where one element
        is repeated along each row.
    out, out_pitch
        The same of the output. Inputs are read up to one vector beyond their rows, outputs written to the element.
    rows, count
        Number of rows, and of elements in each.
    operands
        What the operation needs.
    """
    width, item = 4 * isa.lanes, np.dtype(operation.output).itemsize
    kinds = [ir.VectorType(ir.IntType(8 * np.dtype(element).itemsize), width) for element in operation.inputs]

    @intrinsic
    def rows(context, inputs, pitches, steps, out, out_pitch, rows, count, operands):
        def generate(context, b, signature, arguments):
            inputs, pitches, steps, out, out_pitch, rows, count, operands = arguments
            sources = [pointer(b, b.extract_value(inputs, i)) for i in range(len(kinds))]
            pitches = [b.extract_value(pitches, i) for i in range(len(kinds))]
            steps = [b.extract_value(steps, i) for i in range(len(kinds))]
            moves = [b.icmp_signed("!=", step, I64(0)) for step in steps]
            prepared = operation.prepare(b, isa, [b.extract_value(operands, i) for i in range(len(signature.args[-1]))])
            with loop(b, rows, 1) as row:
                starts = [at(b, source, b.mul(row, pitch)) for source, pitch in zip(sources, pitches, strict=True)]
                first = [
                    vector(b, kind, load(b, start, kind.element)) for kind, start in zip(kinds, starts, strict=True)
                ]
                target = at(b, pointer(b, out), b.mul(row, out_pitch))
                with loop(b, count, width) as column:
                    vectors: list[Any] = []
                    for kind, start, step, move, one in zip(kinds, starts, steps, moves, first, strict=True):
                        place = b.mul(b.mul(column, step), I64(kind.element.width // 8))
                        vectors.append(b.select(move, load(b, start, kind, place), one))
                    result = operation.apply(b, isa, prepared, vectors)
                    store_codes(b, isa, result, at(b, target, b.mul(column, I64(item))), b.sub(count, column))
            return context.get_dummy_value()

        return types.void(inputs, pitches, steps, *[types.int64] * 4, operands), generate

    return rows


def walk_pairs(isa: Isa, operation: Elementwise) -> Any:
    """A Numba function that computes a thread's share of a result of two inputs.

    ``walk(args, bases, thread, threads, operands)``: the fields of `args` are a, b and y, and their extents as
    `walk.strided` has them. Last axes have steps of 1, or 0 where an input repeats.
    """
    rows = make_rows(isa, operation)
    item_a, item_b, item = (np.dtype(element).itemsize for element in (*operation.inputs, operation.output))

    @register_jitable
    def walk(args: Any, bases: Any, thread: Any, threads: Any, operands: Any) -> None:
        n1, n2, n3, outer = args.n1, args.n2, args.n3, args.n0 * args.n1
        a, b, y = address_of(bases, args.a), address_of(bases, args.b), address_of(bases, args.y)
        pitches, steps, pitch = (args.a2 * item_a, args.b2 * item_b), (args.a3, args.b3), args.y2 * item
        if outer * n2 == 1:
            first, end = share(n3, thread, threads, 64)
            starts = a + first * args.a3 * item_a, b + first * args.b3 * item_b
            rows(starts, pitches, steps, y + first * item, pitch, 1, end - first, operands)
            return
        first, end = share(outer * n2, thread, threads)
        while first < end:
            i0, i1, i2 = first // (n1 * n2), first // n2 % n1, first % n2
            count = min(n2 - i2, end - first)
            start_a = a + (i0 * args.a0 + i1 * args.a1 + i2 * args.a2) * item_a
            start_b = b + (i0 * args.b0 + i1 * args.b1 + i2 * args.b2) * item_b
            start = y + (i0 * args.y0 + i1 * args.y1 + i2 * args.y2) * item
            rows((start_a, start_b), pitches, steps, start, pitch, count, n3, operands)
            first += count

    return walk


def store_codes(b: ir.IRBuilder, isa: Isa, codes: Any, place: Any, count: Any) -> None:
    """Store a vector, or the first `count` (i64) of its elements if that is fewer."""
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
