"""Requantize steps of their own, and products of two tensors with the requantize behind them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from qbench.ir.dtypes import DType
from qbench.ir.graph import Graph, Node
from qbench.ir.op import Array, Epilogue, bind
from qbench.kernels.epilogue import choose_epilogue
from qbench.kernels.isa import ISAS
from qbench.kernels.levels import Level
from qbench.kernels.requantize import multiply_kernel, requantize_kernel
from qbench.kernels.rescale import RESCALES
from qbench.kernels.rescale_elements import rescale_elements_kernel
from qbench.kernels.rounding import NUMBERS
from qbench.ops.integer.products import IntegerMultiply
from qbench.ops.integer.requantize import Requantize
from qbench.ops.numeric.exact import centred
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import Layout, shape_of
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.operands import (
    Operand,
    common_layouts,
    gapless,
    in_vectors,
    need_walks,
    operand,
    spread,
    walks_of,
)
from qbench.runtime.lowerings.rescaling import ELEMENTS, Rescaling, flip, reach, rescale_fields, rescaling
from qbench.runtime.step import Instruction, Place, row_major

_PARAMETER = 4  # bytes of each of them


class _Rescaled(Lowering):
    """An elementwise step whose results are rescaled, if a requantize is in it."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        self.output = step.outputs[0]
        self.shape = shape_of(graph, self.output)
        need_walks(graph, step)
        self.axis: int | None = None
        self.found: Rescaling | None = None

    def requantized(self, node: Node | None, bound: int) -> tuple[Any, bool]:
        """Note what becomes of results as large as `bound`; the kernel's mode, and whether it is plain."""
        if node is None:
            return None, False
        self.axis = self._axis(node)
        channels = 1 if self.axis is None else self.shape[self.axis]
        self.found = found = rescaling(self.graph, self.step, node, channels, self.axis or 0)
        return found.mode(bound, f"tflite_double rescales 32-bit integers, these could reach {bound}")

    def _axis(self, node: Node) -> int | None:
        shapes = [self.graph.constants[name].array.shape for name in node.inputs[1:]]
        rank = len(self.shape)
        axes = {axis + rank - len(shape) for shape in shapes for axis, size in enumerate(shape) if size > 1}
        if len(axes) > 1:
            raise Refused("its multipliers run along several axes")
        return axes.pop() if axes else None

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        return common_layouts(self.graph, self.step, home)

    def parameters(self, site: Site, out: Place) -> tuple[dict[str, Any], tuple[int, ...]]:
        """The fields of the requantize, and the strides of its parameters along the result's memory."""
        channels = 1 if self.found is None else self.found.mantissa.size
        steps = [int(axis == self.axis) for axis in range(len(self.shape))]
        return rescale_fields(site, self.found, channels, channels), spread(self.shape, steps, out)

    def target(self, site: Site) -> tuple[Place, Sequence[Instruction]]:
        """Where the results go, with its last axis in one piece."""
        if site.places[self.output].strides[-1:] == (1,):
            return site.places[self.output], ()
        made = gapless(site, self.output, output=True)
        return made.place, made.copies

    def walks(self, site: Site, out: Place, **operands: Operand) -> list[dict[str, Any]]:
        """For each walk the places of operands, result and parameters, and the extents."""
        parameters, steps = self.parameters(site, out)
        strides = {name: one.strides for name, one in operands.items()}
        memory = {name: (one.reference, np.dtype(one.dtype).itemsize) for name, one in operands.items()}
        memory |= {"m": (0, _PARAMETER), "y": (out.reference, out.dtype.itemsize)}
        made: list[dict[str, Any]] = []
        for walk in walks_of(out.shape, memory, **strides, m=steps, y=out.strides):
            ahead = walk.pop("m")
            made.append({**parameters, **walk, **{name: parameters[name] + ahead for name in NUMBERS}})
        return made

    def vectors(
        self, site: Site, a: Operand, b: Operand | None, zeros: tuple[int, int], bound: int, out: Place
    ) -> list[Instruction]:
        """The step, of one operand or two, as vector code; nothing where there is none."""
        found, second, stored = self.found, b or a, out.letters
        memory = {name: (one.reference, np.dtype(one.dtype).itemsize) for name, one in (("a", a), ("b", second))}
        memory["y"] = out.reference, out.dtype.itemsize
        walks = walks_of(out.shape, memory, a=a.strides, b=second.strides, y=out.strides)
        if found is None or not in_vectors(site.level, walks[0], a.dtype, second.dtype, stored):
            return []
        if found.mantissa.size != 1 or found.offset is not None:
            return []
        numbers, codes = (found.mantissa, found.shift, found.multiplier), stored == "u1"
        rounds_down = codes and ISAS[site.level].rounds_down
        kind = choose_epilogue(found.rounding, np.full(1, bound), *numbers, rounds_down)
        if kind in ("exact", "accumulators"):
            return []
        packed = [np.asarray(number) for number in RESCALES[kind].pack(*numbers, found.zero_point if codes else 0)]
        bits = [number if number.dtype == np.float32 else number.astype(np.int32) for number in packed]
        kernel = rescale_elements_kernel(site.level, kind, _any(a.dtype), _any(b and b.dtype), _any(stored))
        scales = site.constant(np.concatenate([number.view(np.int32) for number in bits]))
        ends: dict[str, Any] = {"zero_a": zeros[0], "zero_b": zeros[1], "scales": scales}
        ends |= {"zero_point": found.zero_point, "low": found.low, "high": found.high}
        return [instruction(kernel, self.output, **ends, **walk) for walk in walks]


@lowers(Requantize, rank=1)
class RequantizeLowering(_Rescaled):
    """Integers of any width to narrow ones."""

    absorbs = frozenset({Epilogue.CLAMP})

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        self.data = step.head.inputs[0]
        self.dtype: DType = graph.types[self.data].dtype
        if self.dtype not in (*ELEMENTS, "int32", "int64"):
            raise Refused(f"{self.dtype} is requantized")
        if any(name not in graph.constants for name in step.head.inputs[1:]):
            raise Refused("its multipliers are no constants")
        op = bind(step.head)
        assert isinstance(op, Requantize)
        zero = op.data_zero_point
        self.bound = 2**31 - 1 if self.dtype == "int32" and zero == 0 else reach(self.dtype, zero)
        self.mode = self.requantized(step.head, self.bound)

    def instructions(self, site: Site) -> Sequence[Instruction]:
        assert self.found is not None
        out, copies = self.target(site)
        x, zero = operand(site, self.data, out), self.found.before + flip(self.dtype)
        made = self.vectors(site, x, None, (zero, 0), self.bound, out)
        if not made:
            kernel = requantize_kernel(_any(x.dtype), _any(out.letters), *self.mode)
            made = [instruction(kernel, self.output, zero=zero, **walk) for walk in self.walks(site, out, x=x)]
        return [*made, *copies]


@lowers(IntegerMultiply, rank=1)
class MultiplyLowering(_Rescaled):
    """Products of narrow integers, element by element."""

    absorbs = frozenset({Epilogue.REQUANTIZE, Epilogue.CLAMP})

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        op = bind(step.head)
        assert isinstance(op, IntegerMultiply)
        self.op = op
        dtypes: list[DType] = [graph.types[name].dtype for name in step.head.inputs]
        if any(dtype not in ELEMENTS for dtype in dtypes):
            raise Refused(f"{dtypes[0]} times {dtypes[1]} is computed")
        self.centred = self._centred()
        zeros = (op.lhs_zero_point, op.rhs_zero_point if isinstance(op.rhs_zero_point, int) else 0)
        largest = [reach(dtype, zero) for dtype, zero in zip(dtypes, zeros, strict=True)]
        if self.centred is not None:
            largest[1] = int(np.abs(self.centred, dtype=np.int32).max(initial=0))
        self.zeros = tuple(zero + flip(dtype) for zero, dtype in zip(zeros, dtypes, strict=True))
        node = step.follower(Epilogue.REQUANTIZE)
        if node is None and len(step.nodes) > 1:
            raise Refused("its products are clamped but not rescaled")
        self.bound = largest[0] * largest[1]
        self.mode = self.requantized(node, self.bound)
        if self.found is not None and self.found.before:
            raise Refused("its products have a zero point")

    def _centred(self) -> Array | None:
        """The right operand less its zero points where they run along an axis."""
        if isinstance(self.op.rhs_zero_point, int):
            return None
        name = self.step.head.inputs[1]
        if name not in self.graph.constants:
            raise Refused("the right operand has a zero point for each channel")
        wide = centred(self.graph.constants[name].array, self.op.rhs_zero_point, self.op.rhs_axis)
        if np.abs(wide).max(initial=0) >= 2**15:
            raise Refused("the right operand less its zero points exceeds 16 bits")
        return np.ascontiguousarray(wide, np.int16)

    def instructions(self, site: Site) -> Sequence[Instruction]:
        left, right = self.step.head.inputs
        out, copies = self.target(site)
        a, (b, zero_b) = operand(site, left, out), self._right(site, right, out)
        letters = [_any(kind) for kind in (a.dtype, b.dtype, out.letters)]
        offset = self.found and self.found.offset
        made = self.vectors(site, a, b, (self.zeros[0], zero_b), self.bound, out)
        if not made:
            kernel, zeros = multiply_kernel(*letters, *self.mode, offset), {"zero_a": self.zeros[0], "zero_b": zero_b}
            made = [instruction(kernel, self.output, **zeros, **walk) for walk in self.walks(site, out, a=a, b=b)]
        return [*made, *copies]

    def _right(self, site: Site, name: str, out: Place) -> tuple[Operand, int]:
        if self.centred is None:
            return operand(site, name, out), self.zeros[1]
        strides = spread(self.centred.shape, row_major(self.centred.shape), out)
        return Operand(site.constant(self.centred), "i2", strides), 0


def _any(letters: str | None) -> Any:
    return letters
