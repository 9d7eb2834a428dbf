"""Elements, and products of two, less their zero points, rescaled to codes or 16-bit integers in vectors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from qbench.kernels.epilogue import VectorCodes
from qbench.kernels.isa import ISAS, Element, Isa
from qbench.kernels.isa.emit import I8, I16, I32, call, load, pointer, splat, vector
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.levels import Level
from qbench.kernels.memory import address_of
from qbench.kernels.rescale import RESCALES
from qbench.kernels.rows import Elementwise, Operand, walk_pairs
from qbench.kernels.walk import extents

_FIELDS = ("a", "b", "y", "zero_a", "zero_b", "scales", "zero_point", "low", "high")


@makes_kernels
def rescale_elements_kernel(level: Level, kind: VectorCodes, a: Element, b: Element | None, y: Element) -> Kernel:
    """``y = clamp(rescaled((a - zero_a) * (b - zero_b)) + zero_point)``; last axes have steps of 1, or 0 to repeat.

    `scales` has what `rescale.Rescale.pack` of the kind gives, 32 bits each: one multiplier for all; for 16-bit results
    that of zero point 0. Where `b` is None there is no product: its fields are those of a, and are not looked at.
    """
    walk = walk_pairs(ISAS[level], _Rescaled(kind, (a, b or a), y, b is not None))

    def rescale(args, bases, thread, threads):
        scales = address_of(bases, args.scales)
        walk(args, bases, thread, threads, (args.zero_a, args.zero_b, scales, args.zero_point, args.low, args.high))

    fields = record(**dict.fromkeys(_FIELDS, "i8"), **extents("a", "b", "y"))
    name = f"multiply.codes.{level}.{kind}.{a}.{b}.{y}" if b else f"requantize.codes.{level}.{kind}.{a}.{y}"
    return Kernel(name, fields, rescale)


@dataclass(frozen=True)
class _Rescaled(Elementwise):
    kind: VectorCodes
    inputs: tuple[Operand, ...]
    output: Element
    product: bool

    def prepare(self, b: ir.IRBuilder, isa: Isa, operands: Sequence[Any]) -> Any:
        form, ints = RESCALES[self.kind], isa.accumulator
        zeros = [vector(b, ints, b.trunc(zero, I32)) for zero in operands[:2]]
        start, (zero_point, low, high) = pointer(b, operands[2]), operands[3:]
        scales = [vector(b, ints, load(b, start, I32, 4 * i)) for i in range(form.constants)]
        if self.output == "u1":
            codes = ir.VectorType(I8, 4 * isa.lanes)
            added = None if form.adds_zero_point else b.trunc(zero_point, I16)
            return zeros, scales, added, [vector(b, codes, b.trunc(bound, I8)) for bound in (low, high)]
        bounds = [vector(b, ints, b.trunc(b.sub(bound, zero_point), I32)) for bound in (low, high)]
        return zeros, scales, vector(b, ints, b.trunc(zero_point, I32)), bounds

    def apply(self, b: ir.IRBuilder, isa: Isa, prepared: Any, vectors: Sequence[Any]) -> Any:
        zeros, scales, zero_point, (low, high) = prepared
        form, lanes, four = RESCALES[self.kind], isa.lanes, list[Any]()
        for quarter in range(4):
            order = ir.Constant(ir.VectorType(I32, lanes), [quarter * lanes + i for i in range(lanes)])
            wide: list[Any] = []
            for values, zero, element in zip(vectors, zeros, self.inputs, strict=True):
                widen = b.zext if element == "u1" else b.sext
                wide.append(b.sub(widen(b.shuffle_vector(values, splat(values.type, 0), order), isa.accumulator), zero))
            four.append(form.emit(b, isa, b.mul(*wide) if self.product else wide[0], scales))
        name = f"v{4 * lanes}i8" if self.output == "u1" else f"v{lanes}i32"
        if self.output == "u1":
            codes = (isa.narrow_halves if form.halves else isa.narrow)(b, four, zero_point)
            codes = call(b, f"llvm.umax.{name}", codes.type, [codes, low])
            return call(b, f"llvm.umin.{name}", codes.type, [codes, high])
        words: list[Any] = []
        for values in four:
            clamped = call(b, f"llvm.smax.{name}", values.type, [values, low])
            clamped = call(b, f"llvm.smin.{name}", values.type, [clamped, high])
            words.append(b.trunc(b.add(clamped, zero_point), ir.VectorType(I16, lanes)))
        while len(words) > 1:
            count = 2 * words[0].type.count
            order = ir.Constant(ir.VectorType(I32, count), list(range(count)))
            words = [b.shuffle_vector(*words[i : i + 2], order) for i in range(0, len(words), 2)]
        return words[0]
