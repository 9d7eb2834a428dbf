"""Products of two 8-bit activations as products of whole matrices, where the processor has them (AMX)."""

import math

import numpy as np

from qbench.ir.graph import Graph
from qbench.kernels.arrange_matrix import STEP_BYTES, WIDTH, arrange_matrix_kernel
from qbench.kernels.isa import Element
from qbench.kernels.levels import Level
from qbench.kernels.matrix import MATRIX, blocks_at_once, steps_of
from qbench.kernels.tile import Tile
from qbench.ops.integer.products import IntegerBatchMatmul
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import shape_of
from qbench.runtime.lowerings.attention import Arranged, TiledMatmulLowering
from qbench.runtime.lowerings.lowering import Refused, Site, lowers
from qbench.runtime.lowerings.lowering import instruction as made
from qbench.runtime.lowerings.matmul import Side
from qbench.runtime.lowerings.rescaling import ELEMENTS

_LEAST = 16
"""Rows and columns for which the registers are worth filling."""


@lowers(IntegerBatchMatmul, rank=-1)
class MatrixMatmulLowering(TiledMatmulLowering):
    """Codes on the left as they are; on the right, less their zero point, as sums of numbers of 8 bits.

    The left one's zero point times the sum of a column is part of what the column's sums start from.
    """

    takes_matrices = True
    element: Element = "u1"

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        if level is not Level.AMX:
            raise Refused("the processor has no products of matrices")
        super().__init__(step, graph, level.vectors)
        self.level = level
        left = shape_of(graph, step.head.inputs[0])
        if any(ELEMENTS[dtype] == "i2" for dtype in self.dtypes) or self.epilogue == "exact":
            raise Refused("products of matrices have 8 bits, and their sums 32")
        if self.op.transpose_lhs or left[:-2] not in ((), (1,) * len(left[:-2]), self.shape[:-2]):
            raise Refused("the rows on the left do not lie evenly")
        if min(self.shape[-2:]) < _LEAST or not blocks_at_once(self.depth):
            raise Refused("it is too small or too deep")
        _, zero = self.zero_points
        self.pieces = {128: 1, 0: 3}.get(zero, 2)  # of codes less 128 or 0, else less any other number

    @property
    def tile(self) -> Tile:
        return MATRIX

    def arranged(self, site: Site, a: Side, b: Side) -> Arranged:
        (rows, columns), batch, steps = self.shape[-2:], math.prod(self.shape[:-2]), steps_of(self.depth)
        (a_row, _), (b_step, b_column) = self.steps(a, b)
        panels, zeros = -(-columns // WIDTH), self.zero_points
        weight_bytes = panels * self.pieces * steps * STEP_BYTES
        right, bias = site.workspace(batch * weight_bytes), site.workspace(batch * panels * WIDTH * 4)
        arranged = made(
            arrange_matrix_kernel(), self.output, x=b.reference, out=right, bias=bias,
            added=site.constant(self.start.astype(np.int32)), starts=site.constant(self.starts(b.shape)), batch=batch,
            columns=columns, depth=self.depth, column_step=b_column, depth_step=b_step, zero_x=zeros[0], zero=zeros[1],
            parts=self.pieces, steps=steps,
        )  # fmt: skip
        group_pitch = 0 if math.prod(a.shape[:-2]) == 1 else rows * a_row
        counts = {"depth": self.depth, "part_steps": steps, "run_steps": steps * self.pieces}
        return Arranged([arranged], a.reference, a_row, group_pitch, right, weight_bytes, counts, bias)
