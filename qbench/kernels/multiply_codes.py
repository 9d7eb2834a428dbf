"""Products of two tensors of 8-bit codes, element by element, rescaled to codes in vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from llvmlite import ir

from qbench.kernels.epilogue import VectorCodes
from qbench.kernels.floats.walk import extents
from qbench.kernels.isa import ISAS, Isa
from qbench.kernels.isa.emit import I8, I16, I32, call, load, pointer, splat, vector
from qbench.kernels.kernel import Kernel, record
from qbench.kernels.levels import Level
from qbench.kernels.memory import address_of
from qbench.kernels.rescale import RESCALES
from qbench.kernels.rows import Elementwise, make_rows, walk_pairs

__all__ = ["multiply_codes_kernel"]

_FIELDS = ("a", "b", "y", "zero_a", "zero_b", "scales", "zero_point", "low", "high")


@cache
def multiply_codes_kernel(level: Level, kind: VectorCodes) -> Kernel:
    """``y = clamp(rescaled((a - zero_a) * (b - zero_b)) + zero_point)``, all of them codes; last axes have steps of 1.

    `scales` has what `rescale.Rescale.pack` of the kind gives, 32 bits each: one multiplier for all.
    """
    walk = walk_pairs(make_rows(ISAS[level], _Product(kind)))

    def multiply(args, bases, thread, threads):
        scales = address_of(bases, args.scales)
        walk(args, bases, thread, threads, (args.zero_a, args.zero_b, scales, args.zero_point, args.low, args.high))

    fields = record(**dict.fromkeys(_FIELDS, "i8"), **extents("a", "b", "y"))
    return Kernel(f"multiply.codes.{level}.{kind}", fields, multiply)


@dataclass(frozen=True)
class _Product(Elementwise):
    kind: VectorCodes

    def prepare(self, b: ir.IRBuilder, isa: Isa, operands: Sequence[Any]) -> Any:
        form, ints, codes = RESCALES[self.kind], isa.accumulator, ir.VectorType(I8, 4 * isa.lanes)
        zeros = [vector(b, ints, b.trunc(zero, I32)) for zero in operands[:2]]
        start = pointer(b, operands[2])
        scales = [vector(b, ints, load(b, start, I32, 4 * i)) for i in range(form.constants)]
        zero_point = None if form.adds_zero_point else b.trunc(operands[3], I16)
        return zeros, scales, zero_point, [vector(b, codes, b.trunc(bound, I8)) for bound in operands[4:]]

    def apply(self, b: ir.IRBuilder, isa: Isa, prepared: Any, vectors: Sequence[Any]) -> Any:
        zeros, scales, zero_point, (low, high) = prepared
        form, lanes, nothing = RESCALES[self.kind], isa.lanes, splat(vectors[0].type, 0)
        four: list[Any] = []
        for quarter in range(4):
            order = ir.Constant(ir.VectorType(I32, lanes), [quarter * lanes + i for i in range(lanes)])
            wide = [b.zext(b.shuffle_vector(codes, nothing, order), isa.accumulator) for codes in vectors]
            one, other = (b.sub(codes, zero) for codes, zero in zip(wide, zeros, strict=True))
            four.append(form.emit(b, isa, b.mul(one, other), scales))
        codes = (isa.narrow_halves if form.halves else isa.narrow)(b, four, zero_point)
        codes = call(b, f"llvm.umax.v{4 * lanes}i8", codes.type, [codes, low])
        return call(b, f"llvm.umin.v{4 * lanes}i8", codes.type, [codes, high])
