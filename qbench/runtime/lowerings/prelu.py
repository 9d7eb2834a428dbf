"""PReLU of integers of 16 bits."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from qbench.ir.dtypes import DType, integer_range
from qbench.ir.graph import Graph
from qbench.ir.op import bind
from qbench.kernels.levels import Level
from qbench.kernels.prelu import prelu_kernel
from qbench.ops.integer.prelu import IntegerPrelu
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import Layout, shape_of
from qbench.runtime.layout import row_major as row_major_layout
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.operands import gapless, operand, plain_layout, repeated, spread, walks_of
from qbench.runtime.lowerings.rescaling import ELEMENTS, flip
from qbench.runtime.step import Instruction, row_major

_MOST = 4
"""Axes that are walked in any order; of more, those beside the channels are as one in row-major memory."""


@lowers(IntegerPrelu)
class PreluLowering(Lowering):
    """Two lines for each channel."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        self.data, *multipliers = step.head.inputs
        self.output = step.outputs[0]
        self.dtype: DType = graph.types[self.data].dtype
        op = bind(step.head)
        assert isinstance(op, IntegerPrelu)
        self.op = op
        if self.dtype not in ELEMENTS or op.dtype not in ELEMENTS:
            raise Refused(f"{op.dtype} is made of {self.dtype}")
        if any(name not in graph.constants for name in multipliers):
            raise Refused("its multipliers are no constants")
        mantissa, shift = (graph.constants[name].array.astype(np.int64) for name in multipliers)
        if shift.max() > 30:
            raise Refused("it multiplies by 2^30 or more, which saturates")
        self.multipliers = np.ldexp(mantissa.astype(np.float64), shift - 31)

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        rank = len(shape_of(self.graph, self.output))
        layout = plain_layout(home[self.data]) if rank <= _MOST else row_major_layout(rank)
        return Layouts({self.data: layout}, {self.output: layout})

    def instructions(self, site: Site) -> Sequence[Instruction]:
        op, out, copies = self.op, site.places[self.output], ()
        if out.strides[-1:] != (1,):
            target = gapless(site, self.output, output=True)
            out, copies = target.place, target.copies
        x = operand(site, self.data, out)
        shape = [-1 if axis == op.axis else 1 for axis in range(len(shape_of(self.graph, self.output)))]
        rows = [row.reshape(shape) for row in self.multipliers]
        spreads = [repeated(row, spread(row.shape, row_major(row.shape), out), out) for row in rows]
        (above, strides), (below, _) = spreads
        memory = {
            "x": (x.reference, np.dtype(x.dtype).itemsize),
            "m": (0, above.itemsize),
            "y": (out.reference, out.dtype.itemsize),
        }
        constants = {"above": site.constant(above), "below": site.constant(below)}
        low, high = integer_range(op.dtype)
        shift = flip(op.dtype)
        numbers: dict[str, Any] = {
            "zero": op.data_zero_point + flip(self.dtype), "zero_point": op.zero_point + shift, "low": low + shift,
            "high": high + shift,
        }  # fmt: skip
        letters: tuple[Any, Any] = x.dtype, out.letters
        made = list[Instruction]()
        for walk in walks_of(out.shape, memory, x=x.strides, m=strides, y=out.strides):
            ahead = walk.pop("m")
            here = {name: reference + ahead for name, reference in constants.items()}
            made.append(instruction(prelu_kernel(*letters), self.output, **here, **walk, **numbers))
        return [*made, *copies]
