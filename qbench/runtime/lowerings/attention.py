"""Products of two integer activations in the tiles of convolutions, which both sides are first arranged for."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qbench.ir.graph import Graph
from qbench.ir.op import Epilogue
from qbench.kernels.arrange import arrange_kernel
from qbench.kernels.conv import conv_kernel
from qbench.kernels.epilogue import EpilogueName, Result, choose_epilogue
from qbench.kernels.isa import ISAS, Element
from qbench.kernels.levels import Level
from qbench.kernels.pack import pack_channels, pack_scales, packing
from qbench.kernels.shape import choose_chunk, choose_tile
from qbench.kernels.tile import Tile
from qbench.ops.integer.products import IntegerBatchMatmul
from qbench.runtime.fuse import Fused
from qbench.runtime.lowerings.lowering import Refused, Site, instruction, lowers
from qbench.runtime.lowerings.matmul import MatmulLowering, Side
from qbench.runtime.lowerings.operands import gapless
from qbench.runtime.lowerings.rescaling import ELEMENTS, flip, real_scales
from qbench.runtime.memory import SLACK
from qbench.runtime.step import Instruction, Rows

_BYTE_PRODUCT = 2**15 * 2**7
"""The largest product of 16 bits and 8."""


class Arranged(NamedTuple):
    """Both operands as tiles read them."""

    instructions: Sequence[Instruction]
    """What brings them there, the left one last."""
    x: int
    pitch: int
    group_pitch: int
    """Reference of the left one's rows, and elements from row to row and from matrix to matrix."""
    weights: int
    weight_bytes: int
    """Reference of the right ones, and the size of one."""
    steps: Mapping[str, int]
    """The kernel's fields that count products."""
    bias: int | None = None
    """Reference of what sums start from, where that is known only then."""


@lowers(IntegerBatchMatmul)
class TiledMatmulLowering(MatmulLowering):
    """Operands that 16 bits hold less their zero points: 8-bit ones, and those of 16 bits without a zero point.

    Of two with 16 bits the right one is taken apart into bytes, 256 * upper + lower, whose products 32 bits can sum.
    """

    absorbs = MatmulLowering.absorbs | {Epilogue.DEQUANTIZE}
    element: Element = "i2"
    """What the tiles multiply."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        if level not in ISAS:
            raise Refused("there are no vectors")
        operands = zip(self.dtypes, (self.op.lhs_zero_point, self.op.rhs_zero_point), strict=True)
        if any(dtype not in ELEMENTS or (ELEMENTS[dtype] == "i2" and zero + flip(dtype)) for dtype, zero in operands):
            raise Refused("an operand less its zero point exceeds 16 bits")
        self.parts, self.by_rows = 1, step.head.inputs[:1]
        if self.run < 2:
            if self.found is None:
                raise Refused("two products exceed 32 bits")
            self.parts, self.run = 2, (2**31 - 1) // _BYTE_PRODUCT
        if self.found is None and graph.types[step.integers].dtype != "int32":
            raise Refused("its sums have 64 bits")
        if self.found is not None and self.found.dtype not in ELEMENTS:
            raise Refused(f"its result is {self.found.dtype}")
        if 0 in (*self.shape, self.depth):
            raise Refused("it has nothing to compute")
        self.y: Result = "u1" if self.found is None else ELEMENTS[self.found.dtype]
        self.reals = real_scales(graph, step, 1, 0)
        if self.reals is not None:
            self.y = "f4"
            if self.epilogue == "exact":
                raise Refused("its kernel makes no real numbers")

    @property
    def epilogue(self) -> EpilogueName:
        found, rounds_down = self.found, self.y == "u1" and ISAS[self.level.vectors].rounds_down
        if found is None:
            return "accumulators"
        if self.parts > 1:
            return "exact"
        bound = np.full(1, self.bound)
        return choose_epilogue(found.rounding, bound, found.mantissa, found.shift, found.multiplier, rounds_down)

    def instructions(self, site: Site) -> Sequence[Instruction]:
        found, epilogue, (rows, columns) = self.found, self.epilogue, self.shape[-2:]
        batch, tile, copies = math.prod(self.shape[:-2]), self.tile, list[Instruction]()
        lanes, _ = packing(site.level, self.element)
        sides = [self.side(site, name, copies) for name in self.step.head.inputs]
        target = gapless(site, self.output, output=True)
        here, item = self.arranged(site, *sides), np.dtype(self.element).itemsize
        size = np.dtype(self.y).itemsize if epilogue != "accumulators" or self.y == "f4" else 4
        jumps = {"x": item * here.group_pitch, "out": size * rows * columns, "weights": here.weight_bytes}

        def constant(name: str, packed: NDArray[Any]) -> int:
            jumps[name] = packed.nbytes // batch
            return site.constant(packed)

        def spread(name: str, values: NDArray[Any]) -> int:
            everywhere = np.ascontiguousarray(np.broadcast_to(values, (batch, columns))).reshape(-1)
            return constant(name, pack_channels(everywhere, batch, tile, lanes))

        scales, count = 0, batch * columns
        if found is not None or self.reals is not None:
            numbers = None if found is None else found.spread(count).numbers(self.y == "u1")
            reals = None if self.reals is None else np.repeat(self.reals, count)
            scales = constant("scales", pack_scales(epilogue, numbers, batch, tile, lanes, reals))
        if here.bias is None:
            bias = spread("bias", self.start if epilogue == "exact" else self.start.astype(np.int32))
        else:
            bias, jumps["bias"] = here.bias, 4 * -(-columns // (tile.vectors * lanes)) * tile.vectors * lanes
        made = instruction(
            conv_kernel(site.level, tile, epilogue, self.element, self.y), self.output,
            Rows(
                batch, rows, {"x": ()}, "out", {"x": item * here.pitch, "out": size * columns}, {"pixels": 1}, jumps,
                {"groups": 1}, tile.rows,
            ),
            x=here.x, zeros=site.constant(np.zeros(here.pitch + SLACK, self.element)), table=0, weights=here.weights,
            out=target.place.reference, bias=bias,
            mantissa=spread("mantissa", found.mantissa) if found else 0,
            shift=spread("shift", found.shift) if found else 0,
            multiplier=spread("multiplier", found.multiplier) if found else 0, scales=scales, pixels=rows, taps=1,
            run_taps=1, groups=batch, channels=columns, group_pitch=here.group_pitch, group_out=rows * columns,
            pitch=here.pitch, out_pitch=columns, chunk=choose_chunk(tile, self.depth),
            rounding=found.code if found else 0, zero_point=found.zero_point if found else 0,
            low=found.low if found else 0, high=found.high if found else 0, **here.steps,
        )  # fmt: skip
        return [*copies, *here.instructions, made, *target.copies]

    @property
    def tile(self) -> Tile:
        """The tiles that the sums are made in."""
        rows, columns = self.shape[-2:]
        return choose_tile(self.level, rows, columns, self.depth, self.element)

    @property
    def start(self) -> NDArray[np.int64]:
        """What the sums of each column start from."""
        return self.bias - self.found.before if self.found else self.bias

    @property
    def zero_points(self) -> tuple[int, int]:
        """Of both operands, as they are stored."""
        return self.op.lhs_zero_point + flip(self.dtypes[0]), self.op.rhs_zero_point + flip(self.dtypes[1])

    def arranged(self, site: Site, a: Side, b: Side) -> Arranged:
        """Both operands as the tiles read them."""
        (rows, columns), batch, even = self.shape[-2:], math.prod(self.shape[:-2]), self.depth + self.depth % 2
        lanes, group = packing(site.level, self.element)
        width = self.tile.vectors * lanes
        (a_row, a_step), (b_step, b_column) = self.steps(a, b)
        weight_bytes = 2 * -(-columns // width) * width * even * self.parts
        left, right = site.workspace(2 * batch * rows * even), site.workspace(batch * weight_bytes)
        left_rows = Rows(
            batch, rows, {"x": ("starts",)}, "out", {"x": np.dtype(a.letters).itemsize * a_row, "out": 2 * even},
            {"lines": 1}, jumps={"starts": 8, "out": 2 * rows * even}, single={"batch": 1},
        )  # fmt: skip
        zero_a, zero_b = self.zero_points
        made = (
            self._arranged(site, b, right, columns, b_column, b_step, zero_b, width, self.parts),
            self._arranged(site, a, left, rows, a_row, a_step, zero_a, 1, 1, left_rows),
        )
        steps = {"depth": even * self.parts, "part_steps": even // group, "run_steps": self.run // group}
        return Arranged(made, left, even, rows * even, right, weight_bytes, steps)

    def _arranged(
        self, site: Site, side: Side, out: int, lines: int, line_step: int, depth_step: int, zero: int, width: int,
        parts: int, rows: Rows | None = None,
    ) -> Instruction:  # fmt: skip
        element: Any = side.letters
        return instruction(
            arrange_kernel(element, parts > 1), self.output, rows, x=side.reference, out=out,
            starts=site.constant(self.starts(side.shape)), batch=math.prod(self.shape[:-2]), lines=lines,
            depth=self.depth, line_step=line_step, depth_step=depth_step, zero=zero, width=width,
        )  # fmt: skip
