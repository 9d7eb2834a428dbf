"""Addition of rescaled tensors."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from qbench.ir.graph import Graph
from qbench.ir.op import Epilogue, bind
from qbench.kernels.add import add_codes_kernel, add_kernel, code_weights
from qbench.kernels.levels import Level
from qbench.kernels.rounding import is_plain
from qbench.ops.integer.requantize import IntegerAdd, IntegerAddFloat32
from qbench.ops.onnx.add import OnnxAdd
from qbench.ops.tflite.add import TfliteAdd
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import Layout
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.operands import common_layouts, gapless, in_vectors, need_walks, operand, walks_of
from qbench.runtime.lowerings.rescaling import ELEMENTS, clamp, flip
from qbench.runtime.step import Instruction


@lowers(IntegerAdd, IntegerAddFloat32, OnnxAdd, TfliteAdd, rank=1)
class AddLowering(Lowering):
    """The exact sum rounded once, or each operand by itself, or both, or in float32; clamped."""

    absorbs = frozenset({Epilogue.CLAMP})

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        op = bind(step.head)
        assert isinstance(op, IntegerAdd | IntegerAddFloat32 | OnnxAdd | TfliteAdd)
        self.op = op
        for name in (*step.head.inputs, step.head.output):
            if graph.types[name].dtype not in ELEMENTS:
                raise Refused(f"{graph.types[name].dtype} is added")
        need_walks(graph, step)

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        return common_layouts(self.graph, self.step, home)

    def instructions(self, site: Site) -> Sequence[Instruction]:
        output, (left, right) = self.step.outputs[0], self.step.head.inputs
        if isinstance(self.op, OnnxAdd) and self.op.rhs_last:
            left, right = right, left
        y = gapless(site, output, output=True) if site.places[output].strides[-1:] != (1,) else None
        out = y.place if y else site.places[output]
        a, b = operand(site, left, out), operand(site, right, out)
        low, high = clamp(self.step, self.op.dtype)
        known, after = ((0, 0), 0) if isinstance(self.op, OnnxAdd) else (self.op.zero_points, self.op.zero_point)
        zeros = tuple(
            zero + flip(self.graph.types[name].dtype) for zero, name in zip(known, (left, right), strict=True)
        )
        zero_point = after + flip(self.op.dtype)
        letters: tuple[Any, ...] = (a.dtype, b.dtype, out.letters)
        sizes = (np.dtype(letter).itemsize for letter in letters)
        memory = dict(zip("aby", zip((a.reference, b.reference, out.reference), sizes, strict=True), strict=True))
        made = list[Instruction]()
        for walk in walks_of(out.shape, memory, a=a.strides, b=b.strides, y=out.strides):
            vectors = in_vectors(site.level, walk, *letters)
            weights = self._code_weights((zeros[0], zeros[1]), zero_point, low, high, letters[:2]) if vectors else None
            if weights is not None:
                made.append(instruction(add_codes_kernel(site.level, *letters), output, **walk, **weights))
                continue
            fields = {"zero_a": zeros[0], "zero_b": zeros[1], "zero_point": zero_point, "low": low, "high": high}
            made.append(instruction(self._kernel(letters), output, **walk, **fields, **self._multipliers()))
        return [*made, *(y.copies if y else ())]

    def _code_weights(
        self, zeros: tuple[int, int], zero_point: int, low: int, high: int, elements: tuple[Any, Any]
    ) -> dict[str, int] | None:
        op = self.op
        if not isinstance(op, IntegerAdd) or op.per_operand or op.rounding == "pow2_half_even":
            return None
        return code_weights(op.mantissa, op.shift[0], zeros, zero_point, low, high, elements)

    def _kernel(self, letters: tuple[Any, Any, Any]) -> Any:
        op = self.op
        if isinstance(op, IntegerAddFloat32):
            return add_kernel("float32", *letters, "fp32_rne")
        if isinstance(op, OnnxAdd):
            return add_kernel("fused", *letters, "fp32_rne")
        if isinstance(op, TfliteAdd):
            return add_kernel("tflite", *letters, "tflite_double", is_plain(np.asarray(op.shift), "tflite_double"))
        if not op.per_operand:
            return add_kernel("once", *letters, op.rounding)
        return add_kernel("each", *letters, op.rounding, is_plain(np.asarray(op.shift), op.rounding))

    def _multipliers(self) -> dict[str, Any]:
        op = self.op
        mantissa, shift, multipliers, offset = (0, 0, 0), (0, 0, 0), (0.0, 0.0), 0.0
        if isinstance(op, IntegerAddFloat32):
            multipliers = op.multipliers
        elif isinstance(op, OnnxAdd):
            multipliers, offset = op.multipliers[:: -1 if op.rhs_last else 1], op.offset
        elif isinstance(op, TfliteAdd):
            mantissa, shift = op.mantissa, op.shift
        else:
            mantissa, shift = (*op.mantissa, 0), (*op.shift, 0)
        named = {"mantissa": mantissa, "shift": shift, "multiplier": multipliers}
        sides = {
            f"{name}_{side}": value for name, each in named.items() for side, value in zip("aby", each, strict=False)
        }
        return {**sides, "offset": offset, "left": op.left if isinstance(op, TfliteAdd) else 0}
