"""What integer convolutions and dense layers have in common: codes, centred weights, folded biases, exact bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from qbench.errors import shown
from qbench.ir.dtypes import DType, integer_range
from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph
from qbench.ir.op import Epilogue, bind
from qbench.ops.integer.products import IntegerConv2d, IntegerDense
from qbench.ops.numeric.exact import centred
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import shape_of
from qbench.runtime.lowerings.in_fixed_point import in_fixed_point
from qbench.runtime.lowerings.lowering import Refused
from qbench.runtime.lowerings.rescaling import ELEMENTS, Rescaling, flip, real_scales, rescaling
from qbench.runtime.lowerings.settle import settle
from qbench.runtime.lowerings.windows import Taps, taps_that_meet


@dataclass(frozen=True, eq=False)
class CentredWeights:
    """Constant weights less their zero point.

    Parameters
    ----------
    integers
        [out, in / groups, kh, kw], or [units, in]: int8, or int16 where 8 bits do not hold them.
    sums, absolute_sums
        int64, of all weights of each output.
    zeroed
        Outputs whose weights are zeros here, whatever the constant says.
    """

    integers: NDArray[np.int8 | np.int16]
    sums: NDArray[np.int64]
    absolute_sums: NDArray[np.int64]
    zeroed: tuple[int, ...] = ()

    @property
    def wide(self) -> bool:
        """Whether the integers have 9 bits: uint8 less a zero point spans 511."""
        return self.integers.dtype == np.int16

    @property
    def narrow(self) -> NDArray[np.int8]:
        """As much of the integers as 8 bits hold."""
        return self.integers.clip(-128, 127).astype(np.int8, copy=False)

    def within(self, taps: Taps) -> CentredWeights:
        """Those of a part of the window."""
        integers = taps.of(self.integers)
        if integers.shape == self.integers.shape:
            return self
        return CentredWeights(integers, *_sums(integers), self.zeroed)

    def without(self, outputs: NDArray[np.int64]) -> CentredWeights:
        """The same with zeros for some outputs."""
        integers, sums, absolute_sums = self.integers.copy(), self.sums.copy(), self.absolute_sums.copy()
        integers[outputs] = 0
        sums[outputs] = absolute_sums[outputs] = 0
        return CentredWeights(integers, sums, absolute_sums, zeroed=tuple(outputs.tolist()))


@dataclass(frozen=True)
class Products:
    """A sum of products of data, codes or 16-bit integers, and constant weights, as kernels compute it.

    Parameters
    ----------
    op
        The convolution or dense layer.
    data
        Name of the data.
    dtype
        Of the data, when they are multiplied.
    zero_point
        Of the data, as it is stored.
    weights
        Less their zero point.
    bias
        int64[out]: what the sums start from, with the data's zero point folded in. As int32 it may wrap: so do the
        sums, and the totals are right where 32 bits hold them.
    bound
        int64[out]: the largest magnitude that a total can have; beyond 32 bits only where 16-bit data is rescaled, or
        becomes real.
    rescaling
        What becomes of the totals; None where they are the step's result.
    reals
        What its integers are multiplied by then, one for each channel; None where they are the result.
    """

    op: IntegerConv2d | IntegerDense
    data: str
    dtype: DType
    zero_point: int
    weights: CentredWeights
    bias: NDArray[np.int64]
    bound: NDArray[np.int64]
    rescaling: Rescaling | None
    reals: NDArray[np.float32] | None = None
    taps: Taps | None = None
    """Those of a convolution's window that are left."""

    def on_image(self, step: Fused, graph: Graph) -> Products:
        """Those of a convolution without the taps that lie in the padding for every output, where data are zeros."""
        assert isinstance(self.op, IntegerConv2d)
        sizes = (shape_of(graph, name)[2:] for name in (*step.head.inputs[::-1], step.outputs[0]))
        taps = taps_that_meet(self.op, *sizes)
        weights = self.weights.within(taps)
        bias = self.bias + self.zero_point * (self.weights.sums - weights.sums)
        return replace(self, op=replace(self.op, padding=taps.padding), weights=weights, bias=bias, taps=taps)


def products(step: Fused, graph: Graph) -> Products:
    """Read a step that begins with ``integer.conv2d`` or ``integer.dense``.

    Raises
    ------
    Refused
        It is not of this kind: other types, weights that are no constants, totals that could leave 32 bits.
    """
    op = bind(step.head)
    assert isinstance(op, IntegerConv2d | IntegerDense)
    data, weight = step.head.inputs
    dtype = graph.types[data].dtype
    if dtype not in ELEMENTS:
        raise Refused(f"its data is {dtype}")
    if weight not in graph.constants:
        raise Refused("its weights are no constants")
    weights = centred_weights(graph.constants[weight], op.weight_zero_point)
    low, high = integer_range(dtype)
    reach = max(high - op.data_zero_point, op.data_zero_point - low)
    added = _bias(step, graph, len(weights.integers))
    requantize = step.follower(Epilogue.REQUANTIZE)
    axis = 1 if isinstance(op, IntegerConv2d) else -1
    rescaled = None if requantize is None else rescaling(graph, step, requantize, len(weights.integers), axis)
    if rescaled is not None:
        added = added - rescaled.before
    reals, is_wide = real_scales(graph, step, len(weights.integers), axis), ELEMENTS[dtype] == "i2"
    if rescaled is None and graph.types[step.integers].dtype != "int32" and not (reals is not None and is_wide):
        raise Refused(f"its sums are {graph.types[step.integers].dtype}")
    if rescaled is not None:
        settled, added, rescaled = settle(added, weights.absolute_sums * reach, rescaled)
        weights = weights.without(settled) if settled.size else weights
    bound = weights.absolute_sums * reach + np.abs(added)
    rescaled = None if rescaled is None else in_fixed_point(rescaled, bound)
    in_64_bits = is_wide and (reals is not None if rescaled is None else rescaled.rounding != "tflite_double")
    if bound.max(initial=0) > 2**31 - 1 and not in_64_bits:
        raise Refused(f"the sums of {shown(step.head.name)} could reach {bound.max()}, beyond 32 bits")
    zero_point = op.data_zero_point + flip(dtype)
    return Products(
        op=op,
        data=data,
        dtype=dtype,
        zero_point=zero_point,
        weights=weights,
        bias=added - zero_point * weights.sums,
        bound=bound,
        rescaling=rescaled,
        reals=reals,
    )


_alive: WeakValueDictionary[tuple[Constant, int | tuple[int, ...]], CentredWeights] = WeakValueDictionary()
"""Those that a lowering holds: most edits leave a layer's weights as they are."""


def centred_weights(constant: Constant, zero_point: int | tuple[int, ...] = 0) -> CentredWeights:
    """Weights less their zero point; Refused where 9 bits do not hold them."""
    known = _alive.get((constant, zero_point))
    if known is not None:
        return known
    weights: NDArray[Any] = constant.array
    if zero_point or weights.dtype != np.int8:
        weights = centred(weights, zero_point)
        low, high = weights.min(initial=0), weights.max(initial=0)
        if low < -256 or high > 255:
            raise Refused("its weights less their zero point are no 9-bit integers")
        weights = weights.astype(np.int8 if low >= -128 and high <= 127 else np.int16)
    made = CentredWeights(weights, *_sums(weights))
    _alive[constant, zero_point] = made
    return made


def _sums(integers: NDArray[np.int8 | np.int16]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of each output, and of its magnitudes."""
    rows = integers.reshape(len(integers), -1)
    return rows.sum(axis=1, dtype=np.int64), np.abs(rows, dtype=np.int16).sum(axis=1, dtype=np.int64)


def _bias(step: Fused, graph: Graph, channels: int) -> NDArray[np.int64]:
    node = step.follower(Epilogue.BIAS)
    if node is None:
        return np.zeros(channels, np.int64)
    rank = graph.types[node.output].rank
    axis = bind(node).channel_axis_of("output", rank)
    if axis != bind(step.head).channel_axis_of("output", rank):
        raise Refused(f"its bias runs along axis {axis}")
    return graph.constants[node.inputs[1]].array.astype(np.int64)
