"""Bilinear resizing of integer images."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.ir.dtypes import DType
from qbench.ir.graph import Graph
from qbench.ir.op import bind
from qbench.kernels.levels import Level
from qbench.kernels.resize import FEW, Mode, resize_linear_kernel
from qbench.ops.integer.window import INTERPOLATION_BITS, IntegerResizeLinear, IntegerResizeOpen
from qbench.ops.tflite.resize import WEIGHT_BITS, TfliteResizeFloat, TfliteResizeInteger
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import CHANNELS_LAST, Layout, shape_of
from qbench.runtime.lowerings.floats.places import need_work
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.rescaling import flip
from qbench.runtime.step import Instruction


@lowers(IntegerResizeLinear, IntegerResizeOpen, TfliteResizeInteger, TfliteResizeFloat)
class ResizeLinearLowering(Lowering):
    """Interpolation by tables of neighbours and weights."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        self.data, *tables = step.head.inputs
        self.output = step.outputs[0]
        self.dtype: DType = graph.types[self.data].dtype
        self.mode, self.bits, self.zero = self._arithmetic()
        if any(name not in graph.constants for name in tables):
            raise Refused("its tables are no constants")
        need_work(graph, self.data, self.output)
        height, width = shape_of(graph, self.data)[2:]
        op = bind(step.head)
        is_open = isinstance(op, IntegerResizeOpen)
        self.tables = op.tables((height, width)) if is_open else [graph.constants[name].array for name in tables]
        for table, size in zip(self.tables, (height, width), strict=False):
            places = table[:, :2]
            if not 0 <= places.min() <= places.max() < size:
                raise Refused("its tables point beyond the image")

    def _arithmetic(self) -> tuple[Mode, int, int]:
        """How sums are rounded, the bits of weights, and from where the data count."""
        op = bind(self.step.head)
        known = ("uint8",) if isinstance(op, TfliteResizeFloat) else ("int8", "uint8", "int16", "uint16")
        if self.dtype not in known:
            raise Refused(f"{self.dtype} is interpolated")
        if isinstance(op, IntegerResizeLinear | IntegerResizeOpen):
            if op.toward_zero:
                return "zero", INTERPOLATION_BITS, flip(self.dtype)
            return "even" if op.ties_to_even else "up", INTERPOLATION_BITS, op.zero_point + flip(self.dtype)
        return "float" if isinstance(op, TfliteResizeFloat) else "away", WEIGHT_BITS, flip(self.dtype)

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        return Layouts({self.data: CHANNELS_LAST}, {self.output: CHANNELS_LAST})

    def instructions(self, site: Site) -> Sequence[Instruction]:
        x, y = site.places[self.data], site.places[self.output]
        fields: dict[str, Any] = dict(zip(("images", "channels", "height", "width"), x.natural_shape, strict=True))
        for side, place in {"x": x, "y": y}.items():
            image, _, row, pitch = place.natural_strides
            fields |= {f"{side}_image": image, f"{side}_row": row, f"{side}_pitch": pitch}
        tables, bits = self._tables()
        fields |= {name: site.constant(table) for name, table in tables.items()}
        few = fields["channels"] if fields["channels"] <= FEW else 0
        kernel = resize_linear_kernel(x.letters, self.mode, bits, few)
        made = instruction(
            kernel, self.output, x=x.reference, y=y.reference, out_height=y.natural_shape[2],
            out_width=y.natural_shape[3], zero=self.zero, **fields,
        )  # fmt: skip
        return [made]

    def _tables(self) -> tuple[dict[str, NDArray[Any]], int]:
        """The neighbours in rows and columns, and the weights of the second ones, which need so many bits."""
        rows, columns, *weights = self.tables
        places = {
            name: np.ascontiguousarray(of[:, :2], np.int64) for name, of in (("rows", rows), ("columns", columns))
        }
        if weights:
            return {**places, "down": weights[0], "across": weights[1]}, self.bits
        down, across = (table[:, 2].astype(np.int64) for table in (rows, columns))
        spare = _spare_bits(np.concatenate([down, across]), self.bits)
        return {**places, "down": down >> spare, "across": across >> spare}, self.bits - spare


def _spare_bits(weights: NDArray[np.int64], bits: int) -> int:
    """How often all weights can be halved: as a rule often, since images grow by powers of two."""
    used = int(np.bitwise_or.reduce(weights, initial=1 << bits - 1))
    return (used & -used).bit_length() - 1
