"""Bilinear resizing of integer images."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.ir.dtypes import DType
from qbench.ir.graph import Graph
from qbench.ir.op import bind
from qbench.kernels.levels import Level
from qbench.kernels.resize import resize_linear_kernel
from qbench.ops.integer.window import INTERPOLATION_BITS, IntegerResizeLinear
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import CHANNELS_LAST, Layout
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.rescaling import flip
from qbench.runtime.step import Instruction


@lowers(IntegerResizeLinear)
class ResizeLinearLowering(Lowering):
    """Interpolation by tables of neighbours and weights."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        self.data, *self.tables = step.head.inputs
        self.output = step.outputs[0]
        self.dtype: DType = graph.types[self.data].dtype
        if self.dtype not in ("int8", "uint8", "int16", "uint16"):
            raise Refused(f"{self.dtype} is interpolated")
        if any(name not in graph.constants for name in self.tables):
            raise Refused("its tables are no constants")

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        return Layouts({self.data: CHANNELS_LAST}, {self.output: CHANNELS_LAST})

    def instructions(self, site: Site) -> Sequence[Instruction]:
        op = bind(self.step.head)
        assert isinstance(op, IntegerResizeLinear)
        x, y = site.places[self.data], site.places[self.output]
        fields: dict[str, Any] = dict(zip(("images", "channels", "height", "width"), x.natural_shape, strict=True))
        for side, place in {"x": x, "y": y}.items():
            image, _, row, pitch = place.natural_strides
            fields |= {f"{side}_image": image, f"{side}_row": row, f"{side}_pitch": pitch}
        tables = [site.graph.constants[name].array.astype(np.int64) for name in self.tables]
        spare = _spare_bits(np.concatenate([table[:, 2] for table in tables]))
        for table in tables:
            table[:, 2] >>= spare
        down, across = map(site.constant, tables)
        kernel = resize_linear_kernel(x.dtype.str[1:], op.ties_to_even, INTERPOLATION_BITS - spare)
        made = instruction(
            kernel, self.output, x=x.reference, y=y.reference, down=down, across=across, out_height=y.natural_shape[2],
            out_width=y.natural_shape[3], zero=op.zero_point + flip(self.dtype), **fields,
        )  # fmt: skip
        return [made]


def _spare_bits(weights: NDArray[np.int64]) -> int:
    """How often all weights can be halved: as a rule often, since images grow by powers of two."""
    bits = int(np.bitwise_or.reduce(weights, initial=1 << INTERPOLATION_BITS - 1))
    return (bits & -bits).bit_length() - 1
