"""Where real numbers become integers and back."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from qbench.ir.graph import Graph
from qbench.ir.op import bind
from qbench.ir.qparams import QParams
from qbench.kernels.border import dequantize_image_kernel, dequantize_kernel, quantize_image_kernel, quantize_kernel
from qbench.kernels.kernel import Kernel
from qbench.kernels.levels import Level
from qbench.ops.qnn.border import Dequantize, Quantize
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import CHANNELS_LAST, Layout
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.operands import gapless, plain_layout
from qbench.runtime.lowerings.rescaling import flip
from qbench.runtime.step import Instruction, Place, Rows

_ROW_MAJOR = (0, 1, 2, 3)


class _Border(Lowering):
    @property
    def data(self) -> str:
        return self.step.head.inputs[0]

    @property
    def output(self) -> str:
        return self.step.outputs[0]

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        return Layouts({self.data: plain_layout(home[self.data])}, {self.output: None})


@lowers(Quantize)
class QuantizeLowering(_Border):
    """float32 to 8 or 16 bits; from row-major images to channels-last ones in the same pass, border included."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        if graph.types[self.data].dtype != "float32":
            raise Refused(f"{graph.types[self.data].dtype} is quantized")
        self.qparams = _known(graph, self.output, ("int8", "uint8", "int16", "uint16"))
        if self.qparams.axis is not None:
            raise Refused("it has a scale for each channel")
        op = bind(step.head)
        assert isinstance(op, Quantize)
        self.ties, self.by_rows = op.ties, (self.data,)

    def instructions(self, site: Site) -> Sequence[Instruction]:
        q, x, out = self.qparams, site.places[self.data], site.places[self.output]
        code = flip(q.dtype)
        how: dict[str, Any] = {
            "scale": q.scales[0],
            "zero_point": q.zero_points[0] + code,
            "low": q.qmin + code,
            "high": q.qmax + code,
        }
        if x.axes == _ROW_MAJOR and x.contiguous and out.axes == CHANNELS_LAST.axes and out.strides[3] == 1:
            kernel = quantize_image_kernel(out.letters, self.ties)
            return [_quantize_image(kernel, x, out, site.layouts[self.output], how)]
        source = gapless(site, self.data)
        target = gapless(site, self.output, source.place.axes, output=True)
        *rows, columns = source.place.shape or (1,)
        pitches = {"x": 4 * columns, "out": out.dtype.itemsize * columns}
        cut = Rows(1, math.prod(rows), {"x": ()}, "out", pitches, {"count": columns})
        made = instruction(
            quantize_kernel(out.letters, self.ties), self.output, cut, x=source.place.reference,
            out=target.place.reference, rows=1, count=x.nbytes // 4, x_pitch=0, out_pitch=0, **how,
        )  # fmt: skip
        return [*source.copies, made, *target.copies]


def _quantize_image(kernel: Kernel, x: Place, out: Place, layout: Layout, how: Mapping[str, Any]) -> Instruction:
    n, c, h, w = x.shape
    image, row, pitch, _ = out.strides
    top, left, bottom, right = layout.border
    start = out.reference - (top * row + left * pitch) * out.dtype.itemsize
    return instruction(
        kernel, "quantize", x=x.reference, out=start, n=n, c=c, h=h, w=w, pitch=pitch,
        row=row, image=image, top=top, left=left, bottom=bottom, right=right, **how,
    )  # fmt: skip


@lowers(Dequantize)
class DequantizeLowering(_Border):
    """8 to 64 bits to float32, per tensor or per axis."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        self.qparams = _known(graph, self.data, ("int8", "uint8", "int16", "uint16", "int32", "int64"))
        if any(abs(zero_point) >= 2**31 - 128 for zero_point in self.qparams.zero_points):
            raise Refused("a zero point exceeds 32 bits")

    def instructions(self, site: Site) -> Sequence[Instruction]:
        q, x, out = self.qparams, site.places[self.data], site.places[self.output]
        zero_points = np.asarray(q.zero_points, np.int32) + np.int32(flip(q.dtype))
        scales = np.asarray(q.scales, np.float32)
        if _turns(x, out, site.layouts[self.output]):
            n, h, w, c = x.shape
            image, row, pitch, _ = x.strides
            per_axis = q.axis == 1
            if q.axis in (None, 1):
                made = instruction(
                    dequantize_image_kernel(x.letters), self.output, x=x.reference, out=out.reference, n=n, c=c, h=h,
                    w=w, pitch=pitch, row=row, image=image,
                    scale=site.constant(scales if per_axis else np.repeat(scales, c)),
                    zero_point=site.constant(zero_points if per_axis else np.repeat(zero_points, c)),
                )  # fmt: skip
                return [made]
        source = gapless(site, self.data)
        target = gapless(site, self.output, source.place.axes, output=True)
        outer, channels, inner = 1, 1, int(np.prod(source.place.shape))
        if q.axis is not None:
            along = source.place.axes.index(q.axis)
            sizes = source.place.shape
            outer, channels, inner = (int(np.prod(part)) for part in (sizes[:along], sizes[along], sizes[along + 1 :]))
        made = instruction(
            dequantize_kernel(x.letters), self.output, x=source.place.reference, out=target.place.reference,
            outer=outer, channels=channels, inner=inner, x_pitch=channels * inner, out_pitch=channels * inner,
            scale=site.constant(scales), zero_point=site.constant(zero_points),
        )  # fmt: skip
        return [*source.copies, made, *target.copies]


def _turns(x: Place, out: Place, layout: Layout) -> bool:
    """Whether channels-last becomes row-major, and the output has nothing around it."""
    turned = x.axes == CHANNELS_LAST.axes and x.strides[3] == 1 and out.axes == _ROW_MAJOR
    return turned and out.contiguous and not any(layout.border)


def _known(graph: Graph, value: str, dtypes: Sequence[str]) -> QParams:
    q = graph.qparams[value]
    if q.dtype not in dtypes:
        raise Refused(f"it has no kernel for {q.dtype}")
    return q
