"""Integer convolutions and dense layers that the tiles refuse: 16-bit data, wide weights, sums beyond 32 bits."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.errors import shown
from qbench.ir.dtypes import DType
from qbench.ir.graph import Graph
from qbench.ir.op import Epilogue, bind
from qbench.kernels.general_conv import general_conv_kernel, pack_general
from qbench.kernels.levels import Level
from qbench.ops.integer.products import IntegerConv2d, IntegerDense
from qbench.ops.numeric.exact import centred
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import CHANNELS_LAST, Layout, row_major
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.operands import gapless
from qbench.runtime.lowerings.rescaling import ELEMENTS, flip, reach, rescale_fields, rescaling
from qbench.runtime.step import Instruction

_LARGEST = 2**62
"""Sums lie below this in magnitude."""


@lowers(IntegerConv2d, IntegerDense, rank=9)
class GeneralLowering(Lowering):
    """Exact 64-bit sums of products, with the bias and the requantize behind them."""

    absorbs = frozenset({Epilogue.BIAS, Epilogue.REQUANTIZE, Epilogue.CLAMP})

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        op = bind(step.head)
        assert isinstance(op, IntegerConv2d | IntegerDense)
        self.op, self.output = op, step.outputs[0]
        self.data, weight = step.head.inputs
        self.dtype: DType = graph.types[self.data].dtype
        if self.dtype not in ELEMENTS:
            raise Refused(f"its data is {self.dtype}")
        if weight not in graph.constants:
            raise Refused("its weights are no constants")
        self.weight = weight
        weights = self._weights()
        units = len(weights)
        node = step.follower(Epilogue.REQUANTIZE)
        self.channel_axis = 1 if isinstance(op, IntegerConv2d) else graph.types[self.output].rank - 1
        self.found = None if node is None else rescaling(graph, step, node, units, self.channel_axis)
        self.bias = self._bias(units)
        rows = np.abs(weights.reshape(units, -1))
        zero_reach = reach(self.dtype, op.data_zero_point)
        self.bound = int((rows.sum(axis=1) * zero_reach + np.abs(self.bias)).max(initial=0))
        self.run = (2**31 - 1) // max(int(rows.max(initial=0)) * zero_reach, 1)
        self.mode = self._mode()

    def _weights(self) -> NDArray[np.int64]:
        """Less their zero points, [out, in / groups, kh, kw]."""
        weights = centred(self.graph.constants[self.weight].array, self.op.weight_zero_point)
        return weights if weights.ndim == 4 else weights.reshape(*weights.shape, 1, 1)

    def _bias(self, units: int) -> NDArray[np.int64]:
        bias = np.zeros(units, np.int64)
        node = self.step.follower(Epilogue.BIAS)
        if node is not None:
            axis = bind(node).channel_axis_of("output", self.graph.types[node.output].rank)
            if axis != self.channel_axis:
                raise Refused(f"its bias runs along axis {axis}")
            bias = self.graph.constants[node.inputs[1]].array.astype(np.int64)
        return bias - self.found.before if self.found else bias

    def _mode(self) -> tuple[Any, bool]:
        where, found = shown(self.step.head.name), self.found
        if self.bound >= _LARGEST:
            raise Refused(f"the sums of {where} could reach {self.bound}, beyond 62 bits")
        if found is None:
            dtype = self.graph.types[self.output].dtype
            if dtype not in ("int32", "int64") or len(self.step.nodes) > 1 + self._has_bias:
                raise Refused("its sums are clamped but not rescaled")
            if dtype == "int32" and self.bound >= 2**31:
                raise Refused(f"the sums of {where} could reach {self.bound}, beyond 32 bits")
            return None, False
        return found.mode(self.bound, f"the sums of {where} could reach {self.bound}, too much for tflite_double")

    @property
    def _has_bias(self) -> bool:
        return self.step.follower(Epilogue.BIAS) is not None

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        if isinstance(self.op, IntegerConv2d):
            return Layouts({self.data: CHANNELS_LAST}, {self.output: CHANNELS_LAST})
        rank = self.graph.types[self.data].rank
        return Layouts({self.data: row_major(rank)}, {self.output: row_major(rank)})

    def instructions(self, site: Site) -> Sequence[Instruction]:
        groups = self.op.groups if isinstance(self.op, IntegerConv2d) else 1
        packed = site.packed(
            self.graph.constants[self.weight],
            ("general", groups, self.op.weight_zero_point),
            lambda: pack_general(self._weights(), groups),
        )
        out, depth, kh, kw = self._weights().shape
        source, target = gapless(site, self.data), gapless(site, self.output, output=True)
        x, y = source.place, target.place
        letters: Any = x.letters, packed.dtype.str[1:], y.letters
        made = instruction(
            general_conv_kernel(*letters, *self.mode), self.output, x=x.reference, y=y.reference,
            weights=site.constant(packed), bias=site.constant(self.bias), groups=groups, channels=out // groups,
            depth=depth, kh=kh, kw=kw, run=self.run, zero=self.op.data_zero_point + flip(self.dtype),
            **self._geometry(x.natural_shape, y.natural_shape), **rescale_fields(site, self.found, out, out),
        )  # fmt: skip
        return [*source.copies, made, *target.copies]

    def _geometry(self, x: tuple[int, ...], y: tuple[int, ...]) -> dict[str, int]:
        """Sizes and strides of memory without gaps; the rows of a dense layer are the pixels of an image."""
        op, strides, dilation, padding = self.op, (1, 1), (1, 1), (0, 0, 0, 0)
        if isinstance(op, IntegerConv2d):
            strides, dilation, padding = op.strides, op.dilation, op.padding
            (images, channels, height, width), (_, out_channels, out_height, out_width) = x, y
        else:
            width = out_width = math.prod(x[:-1])
            images, height, out_height, channels, out_channels = 1, 1, 1, x[-1], y[-1]
        return {
            "images": images, "height": height, "width": width, "out_height": out_height, "out_width": out_width,
            "x_image": height * width * channels, "x_row": width * channels, "x_pitch": channels,
            "y_image": out_height * out_width * out_channels, "y_row": out_width * out_channels,
            "y_pitch": out_channels, "sh": strides[0], "sw": strides[1], "dh": dilation[0], "dw": dilation[1],
            "top": padding[0], "left": padding[1],
        }  # fmt: skip
