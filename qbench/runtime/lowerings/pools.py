"""Pools over windows of images, and sums over axes: maxima, averages, means."""

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from qbench.ir.dtypes import DType, integer_range
from qbench.ir.graph import Graph
from qbench.ir.op import Epilogue, bind
from qbench.kernels.epilogue import choose_epilogue
from qbench.kernels.isa import ISAS
from qbench.kernels.kernel import Kernel
from qbench.kernels.levels import Level
from qbench.kernels.pack import pack_scales
from qbench.kernels.pool import (
    average_pool_kernel,
    max_pool_kernel,
    real_average_pool_kernel,
    sum_kernel,
    sum_pool_codes_kernel,
    sum_pool_kernel,
)
from qbench.kernels.tile import Tile
from qbench.ops.float.pool import GlobalMaxPool2d, MaxPool2d, Pool2d
from qbench.ops.integer.window import IntegerSum, IntegerSumPool2d
from qbench.ops.numeric.windows import Window, pool_counts
from qbench.ops.onnx.pool import OnnxAvgPool2d
from qbench.ops.tflite.average import TfliteAvgPool2d, TfliteMean
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import CHANNELS_LAST, Layout, kept_first, row_major, shape_of
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.operands import gapless
from qbench.runtime.lowerings.rescaling import ELEMENTS, Rescaling, clamp, flip, reach, rescale_fields, rescaling
from qbench.runtime.step import Instruction, Place

_VECTOR = 64
"""Parameters of channels are readable up to a multiple of this."""


def _data_type(step: Fused, graph: Graph) -> Any:
    """The type of the step's data; Refused unless it is a narrow integer."""
    dtype = graph.types[step.head.inputs[0]].dtype
    if dtype not in ELEMENTS:
        raise Refused(f"{step.head.op} of {dtype} is not done with integers")
    return dtype


class _Pool(Lowering):
    """Channels-last images."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        self.dtype, self.data, self.output = _data_type(step, graph), step.head.inputs[0], step.outputs[0]

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        return Layouts({self.data: CHANNELS_LAST}, {self.output: CHANNELS_LAST})

    @abstractmethod
    def window(self) -> Window:
        """The window that slides over the data."""

    def places(self, site: Site) -> dict[str, Any]:
        """The fields that all pools have."""
        x, y, window = site.places[self.data], site.places[self.output], self.window()
        fields: dict[str, Any] = {
            "x": x.reference, "y": y.reference, "out_height": y.natural_shape[2], "out_width": y.natural_shape[3],
            **dict(zip(("images", "channels", "height", "width"), x.natural_shape, strict=True)),
            "kh": window.size[0], "kw": window.size[1], "sh": window.strides[0], "sw": window.strides[1],
            "dh": window.dilation[0], "dw": window.dilation[1], "top": window.padding[0], "left": window.padding[1],
        }  # fmt: skip
        for side, place in {"x": x, "y": y}.items():
            image, _, row, pitch = place.natural_strides
            fields |= {f"{side}_image": image, f"{side}_row": row, f"{side}_pitch": pitch}
        return fields


@lowers(MaxPool2d, GlobalMaxPool2d)
class MaxPoolLowering(_Pool):
    """Maxima of integers."""

    def window(self) -> Window:
        op = bind(self.step.head)
        shape = shape_of(self.graph, self.data)
        return op.window if isinstance(op, MaxPool2d) else Window((shape[2], shape[3]))

    def instructions(self, site: Site) -> Sequence[Instruction]:
        lowest = integer_range(self.dtype)[0] + flip(self.dtype)
        kernel = max_pool_kernel(site.level, site.places[self.data].letters)
        return [instruction(kernel, self.output, **self.places(site), lowest=lowest)]


@lowers(TfliteAvgPool2d)
class AveragePoolLowering(_Pool):
    """TFLite's means of windows."""

    absorbs = frozenset({Epilogue.CLAMP})

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        op = bind(step.head)
        assert isinstance(op, TfliteAvgPool2d)
        self.op = op
        if math.prod(op.pool_size) * reach(self.dtype, 0) >= 2**31:
            raise Refused("its sums could leave 32 bits")

    def window(self) -> Window:
        return self.op.window

    def instructions(self, site: Site) -> Sequence[Instruction]:
        low, high = clamp(self.step, self.dtype)
        kernel: Any = average_pool_kernel(site.places[self.data].letters)
        ends = {"zero": flip(self.dtype), "low": low, "high": high}
        return [instruction(kernel, self.output, **self.places(site), **ends)]


@lowers(OnnxAvgPool2d)
class RealAveragePoolLowering(_Pool):
    """onnxruntime's means of windows."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        op = bind(step.head)
        assert isinstance(op, OnnxAvgPool2d)
        self.op, self.reals = op, step.head.inputs[1]
        if self.reals not in graph.constants:
            raise Refused("its table is no constant")
        if {self.dtype, op.dtype} - {"int8", "uint8"}:
            raise Refused("its integers have more than 8 bits")

    def window(self) -> Window:
        return self.op.window

    def instructions(self, site: Site) -> Sequence[Instruction]:
        height, width = shape_of(self.graph, self.data)[2:]
        counts = pool_counts((height, width), self.op.window, self.op.count_include_pad)
        y = shape_of(self.graph, self.output)[2:]
        low, high = integer_range(self.op.dtype)
        return [
            instruction(
                real_average_pool_kernel(), self.output, **self.places(site), low=low, high=high,
                reals=site.constant(np.ascontiguousarray(self.graph.constants[self.reals].array)),
                counts=site.constant(np.ascontiguousarray(np.broadcast_to(counts, y), np.float32)),
                step=self.op.step, zero_point=self.op.zero_point, flip=flip(self.op.dtype),
            )
        ]  # fmt: skip


class _Summed(Lowering):
    """Sums of integers, and the requantize behind them."""

    absorbs = frozenset({Epilogue.REQUANTIZE, Epilogue.CLAMP})

    def rescaled(self, channels: int, axis: int) -> Rescaling | None:
        """What becomes of the sums; None where they are the result."""
        node = self.step.follower(Epilogue.REQUANTIZE)
        found = rescaling(self.graph, self.step, node, channels, axis) if node else None
        if found is None and self.graph.types[self.step.outputs[0]].dtype not in ("int32", "int64"):
            raise Refused("its sums are clamped but not rescaled")
        if found is not None and found.before:
            raise Refused("its sums have a zero point")
        return found

    def finish(self, found: Rescaling | None, bound: int) -> tuple[Any, bool]:
        """The rounding mode and whether it is plain; Refused where the mode does not take sums as large as `bound`."""
        return (None, False) if found is None else found.mode(bound, f"its sums could reach {bound}, beyond 32 bits")


@lowers(IntegerSumPool2d)
class SumPoolLowering(_Pool, _Summed):
    """Sums over windows; vectors of codes where the sums fit 32 bits."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        op = bind(step.head)
        assert isinstance(op, IntegerSumPool2d)
        _, channels, *size = shape_of(graph, self.data)
        counts = pool_counts((size[0], size[1]), op.window, op.count_include_pad)
        self.op, self.channels, self.factor = op, channels, op.denominator // counts
        self.found = self.rescaled(channels, 1)
        self.bound = math.prod(op.pool_size) * int(self.factor.max()) * reach(self.dtype, op.data_zero_point)
        self.end = self.finish(self.found, self.bound)

    def window(self) -> Window:
        assert isinstance(self.op, Pool2d)
        return self.op.window

    def instructions(self, site: Site) -> Sequence[Instruction]:
        letters: Any = site.places[self.data].letters, site.places[self.output].letters
        in_vectors = _in_vectors(site, letters, self.found, self.bound, self.channels)
        kernel, fields = in_vectors or (
            sum_pool_kernel(*letters, *self.end), _parameters(site, self.found, self.channels)
        )  # fmt: skip
        return [
            instruction(
                kernel, self.output, **self.places(site), **fields, zero=self.op.data_zero_point + flip(self.dtype),
                factor=site.constant(np.ascontiguousarray(self.factor, np.int64)),
            )
        ]  # fmt: skip


@lowers(IntegerSum, TfliteMean)
class SumLowering(_Summed):
    """Sums over neighbouring axes, and TFLite's means."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        op = bind(step.head)
        assert isinstance(op, IntegerSum | TfliteMean)
        self.plain = isinstance(op, TfliteMean) and op.unsigned
        if self.plain and len(step.nodes) > 1:
            raise Refused("its unsigned integers are clamped as signed ones")
        self.dtype: DType = "uint8" if self.plain else _data_type(step, graph)
        self.data, self.output = step.head.inputs[0], step.outputs[0]
        self.shape = shape_of(graph, self.data)
        rank = len(self.shape)
        self.op, self.summed = op, {axis % rank for axis in op.axes}
        order = CHANNELS_LAST if rank == 4 and self.summed == {2, 3} else row_major(rank)
        groups = self._groups(order)
        if groups is None:
            order = kept_first(rank, self.summed)
            groups = self._groups(order)
        assert groups is not None
        self.layout, (before, summed, kept) = order, groups
        outer, middle, inner = (math.prod(self.shape[axis] for axis in axes) for axes in (before, summed, kept))
        self.sizes = outer, middle, inner
        channels, axis = (self.shape[kept[0]], kept[0]) if len(kept) == 1 else (1, 0)
        if not op.keepdims:
            axis -= sum(other < axis for other in self.summed)
        self.found = self._mean(op, channels) if isinstance(op, TfliteMean) else self.rescaled(channels, axis)
        self.bound = middle * reach(self.dtype, op.data_zero_point)
        self.end = self.finish(self.found, self.bound)

    def _groups(self, order: Layout) -> tuple[list[int], list[int], list[int]] | None:
        """The axes in front of those that are summed, these, and those behind; None where others lie between them.

        Axes of size 1 lie anywhere.
        """
        axes = [axis for axis in order.axes if self.shape[axis] != 1]
        where = [place for place, axis in enumerate(axes) if axis in self.summed] or [len(axes)]
        end = where[0] + len(where)
        return None if where[-1] + 1 != end else (axes[: where[0]], axes[where[0] : end], axes[end:])

    def _mean(self, op: TfliteMean, channels: int) -> Rescaling:
        dtype: DType = "uint8" if self.plain else op.dtype
        low, high = clamp(self.step, dtype)
        return Rescaling(
            rounding="tflite_double", mantissa=np.full(channels, op.mantissa, np.int32),
            shift=np.full(channels, op.shift, np.int32), multiplier=np.ones(channels, np.float32), before=0,
            zero_point=op.zero_point + flip(dtype), low=low, high=high, dtype=dtype,
        )  # fmt: skip

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        rank = self.graph.types[self.output].rank
        return Layouts({self.data: self.layout}, {self.output: self._output_layout(rank)})

    def _output_layout(self, rank: int) -> Layout:
        return self.layout if self.op.keepdims else row_major(rank)

    def instructions(self, site: Site) -> Sequence[Instruction]:
        outer, middle, inner = self.sizes
        source = gapless(site, self.data, plain=self.plain)
        target = gapless(site, self.output, output=True, plain=self.plain)
        x, y, zero = source.place, target.place, self.op.data_zero_point + flip(self.dtype)
        made = self._in_vectors(site, x, y, zero) or instruction(
            sum_kernel(x.letters, y.letters, *self.end), self.output, x=x.reference, y=y.reference, outer=outer,
            middle=middle, inner=inner, x_outer=middle * inner, x_middle=inner, y_outer=inner, zero=zero,
            **_parameters(site, self.found, inner),
        )  # fmt: skip
        return [*source.copies, made, *target.copies]

    def _in_vectors(self, site: Site, x: Place, y: Place, zero: int) -> Instruction | None:
        """A pool whose window is the whole of the middle axis."""
        outer, middle, inner = self.sizes
        found = _in_vectors(site, (x.letters, y.letters), self.found, self.bound, inner)
        if found is None or inner == 1:
            return None
        kernel, fields = found
        return instruction(
            kernel, self.output, **fields, x=x.reference, y=y.reference, images=outer,
            height=1, width=middle, channels=inner, out_height=1, out_width=1, x_image=middle * inner,
            x_row=middle * inner, x_pitch=inner, y_image=inner, y_row=inner, y_pitch=inner, kh=1, kw=middle, sh=1,
            sw=1, dh=1, dw=1, top=0, left=0, zero=zero, factor=site.constant(np.ones(1, np.int64)),
        )  # fmt: skip


def _in_vectors(
    site: Site, letters: tuple[str, str], found: Rescaling | None, bound: int, channels: int
) -> tuple[Kernel, dict[str, Any]] | None:
    """The kernel from codes to codes and what its epilogue needs; None where there is none that is exact."""
    if found is None or letters != ("u1", "u1") or site.level not in ISAS:
        return None
    isa, bounds = ISAS[site.level], np.full(found.shift.shape, bound)
    numbers = found.mantissa, found.shift, found.multiplier
    kind = choose_epilogue(found.rounding, bounds, *numbers, isa.rounds_down)
    if kind == "exact" or kind == "accumulators":
        return None
    scales = pack_scales(kind, found.spread(channels).numbers(True), 1, Tile(1, 4), isa.lanes)
    ends = {"zero_point": found.zero_point, "low": found.low, "high": found.high}
    return sum_pool_codes_kernel(site.level, kind), {"scales": site.constant(scales), **ends}


def _parameters(site: Site, found: Rescaling | None, channels: int) -> dict[str, Any]:
    """The fields of the requantize, in memory of whole vectors."""
    return rescale_fields(site, found, channels, -(-channels // _VECTOR) * _VECTOR)
