"""The requantize and the clamps at the end of a step, as the numbers that kernels take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.ir.dtypes import DType, integer_range, numpy_dtype
from qbench.ir.graph import Graph, Node
from qbench.ir.op import Array, Epilogue, bind, is_op
from qbench.kernels.isa import Element
from qbench.kernels.rounding import NUMBERS, is_plain, two_parts
from qbench.ops.integer.products import IntegerMultiply
from qbench.ops.integer.requantize import (
    IntegerRequantize,
    IntegerRequantizeFloat32,
    IntegerRequantizeFloat64,
    IntegerRoundingShift,
)
from qbench.quant.rounding import ROUNDINGS, Rounding
from qbench.runtime.fuse import Fused
from qbench.runtime.lowerings.lowering import Refused, Site

Int32s = NDArray[np.int32]

ELEMENTS: Mapping[DType, Element] = {"int8": "u1", "uint8": "u1", "int16": "i2", "uint16": "i2"}
"""How narrow integers lie in memory: 8 bits as codes from 0, 16 bits with a sign, so that kernels are made for one type
of each width."""


def flip(dtype: DType) -> int:
    """What has to be added to a value of this type to get it as it is stored."""
    return {"int8": 2**7, "uint16": -(2**15)}.get(dtype, 0)


def storage(dtype: DType) -> np.dtype[Any]:
    """The type of a value's elements in memory."""
    return np.dtype(ELEMENTS.get(dtype) or numpy_dtype(dtype))


def reach(dtype: DType, zero_point: int) -> int:
    """The largest magnitude of an integer of this type less its zero point."""
    low, high = integer_range(dtype)
    return max(high - zero_point, zero_point - low)


@dataclass(frozen=True)
class Rescaling:
    """From accumulators to the integers of an output.

    Parameters
    ----------
    rounding
        The mode.
    mantissa, shift, multiplier
        int32, int32 and float32, one for each channel, as :func:`qbench.kernels.rounding.rescale_one` takes them.
    before
        Zero point of the accumulators.
    zero_point, low, high
        Of the output, as it is stored.
    dtype
        Of the output.
    offset
        How far its zero point is stored above the real one, where that is added before rounding; else None.
    """

    rounding: Rounding
    mantissa: Int32s
    shift: Int32s
    multiplier: NDArray[np.float32]
    before: int
    zero_point: int
    low: int
    high: int
    dtype: DType
    offset: int | None = None

    @cached_property
    def code(self) -> int:
        """Number of the rounding mode."""
        return ROUNDINGS.index(self.rounding)

    def mode(self, bound: int, told: str) -> tuple[Rounding, bool]:
        """How a kernel rounds accumulators as large as `bound`, and whether without branches.

        Refused where it cannot; `told` says that they are too large for the mode.
        """
        if self.dtype not in ELEMENTS:
            raise Refused(f"its result is {self.dtype}")
        small = bound < 2**31
        if self.rounding == "tflite_double" and not small:
            raise Refused(told)
        return self.rounding, small and is_plain(self.shift, self.rounding)

    def numbers(self, are_codes: bool) -> tuple[Int32s, Int32s, NDArray[np.float32], int]:
        """Mantissa, shift and multiplier, and the zero point as far as rescaling adds it: to codes."""
        return self.mantissa, self.shift, self.multiplier, self.zero_point if are_codes else 0

    def spread(self, channels: int) -> Rescaling:
        """The same for so many channels; here they are as many already, or one."""
        mantissa, shift = (np.broadcast_to(part, (channels,)) for part in (self.mantissa, self.shift))
        multiplier = np.broadcast_to(self.multiplier, (channels,))
        return replace(self, mantissa=mantissa, shift=shift, multiplier=multiplier)

    def padded(self, count: int) -> tuple[Int32s, Int32s, NDArray[np.float32]]:
        """Mantissa, shift and multiplier with zeros behind them, as vectors read them."""
        behind = (0, count - self.mantissa.size)
        return np.pad(self.mantissa, behind), np.pad(self.shift, behind), np.pad(self.multiplier, behind)


def rescaling(graph: Graph, step: Fused, node: Node, channels: int, axis: int) -> Rescaling:
    """What a requantize node and the clamps behind it come to.

    Parameters
    ----------
    graph, step
        Where the node is.
    node
        A requantize.
    channels, axis
        How many channels the data has along which axis; 1 where one multiplier must do for all.

    Raises
    ------
    Refused
        The multipliers do not run along that axis.
    """
    op = bind(node)
    assert isinstance(
        op, IntegerRequantize | IntegerRequantizeFloat32 | IntegerRequantizeFloat64 | IntegerRoundingShift
    )
    rank = graph.types[node.inputs[0]].rank
    parameters = [_per_channel(graph.constants[name].array, rank, channels, axis) for name in node.inputs[1:]]
    ones, none = np.ones(channels, np.float32), np.zeros(channels, np.int32)
    if isinstance(op, IntegerRequantize):
        mantissa, shift, multiplier = parameters[0], parameters[1], ones
    elif isinstance(op, IntegerRequantizeFloat32):
        mantissa, shift, multiplier = none, none, op.factor(parameters[0])
        if op.zero_point_first and not is_op(step.head, IntegerMultiply):
            raise Refused("its zero point is added before rounding")
    elif isinstance(op, IntegerRequantizeFloat64):
        mantissa, shift, multiplier = two_parts(np.ldexp(parameters[0].astype(np.float64), parameters[1] - 53))
    else:
        mantissa, shift, multiplier = np.full(channels, 1 << 30, np.int32), (1 - parameters[0]).astype(np.int32), ones
    low, high = clamp(step, op.dtype)
    return Rescaling(
        rounding=op.rounding,
        mantissa=mantissa,
        shift=shift,
        multiplier=multiplier,
        before=op.data_zero_point,
        zero_point=op.zero_point + flip(op.dtype),
        low=low,
        high=high,
        dtype=op.dtype,
        offset=flip(op.dtype) if isinstance(op, IntegerRequantizeFloat32) and op.zero_point_first else None,
    )


def rescale_fields(site: Site, found: Rescaling | None, channels: int, room: int) -> dict[str, int]:
    """What a kernel is told that rescales: numbers for each of the channels, in memory for more; zeros without any."""
    if found is None:
        nothing = site.constant(np.zeros(room, np.int32))
        return {**dict.fromkeys(NUMBERS, nothing), "zero_point": 0, "low": 0, "high": 0}
    numbers = zip(NUMBERS, map(site.constant, found.spread(channels).padded(room)), strict=True)
    return {**dict(numbers), "zero_point": found.zero_point, "low": found.low, "high": found.high}


def _per_channel(parameter: Array, rank: int, channels: int, axis: int) -> Array:
    """One number for each channel of parameters that broadcast against data."""
    if parameter.size == 1:
        return np.broadcast_to(parameter.reshape(1), (channels,)).copy()
    shape = (1,) * (rank - parameter.ndim) + parameter.shape
    if shape[axis % rank] != channels or parameter.size != channels:
        raise Refused(f"its multipliers of shape {parameter.shape} do not run along the channels")
    return np.ascontiguousarray(parameter.reshape(-1))


def real_scales(graph: Graph, step: Fused, channels: int, axis: int) -> NDArray[np.float32] | None:
    """What the integers of a step, less their zero point, are multiplied by to be real: one scale for each channel.

    None where its results are integers; `channels` and `axis` as for `rescaling`.

    Raises
    ------
    Refused
        The scales do not run along that axis, or zero points are not those that the integers were made with.
    """
    node = step.follower(Epilogue.DEQUANTIZE)
    if node is None:
        return None
    q, requantize = graph.qparams[node.inputs[0]], step.follower(Epilogue.REQUANTIZE)
    made_with = 0 if requantize is None else getattr(bind(requantize), "zero_point", 0)
    if {*q.zero_points} != {made_with}:
        raise Refused(f"its zero points are not {made_with}")
    if q.axis is not None and (q.axis != axis % graph.types[node.output].rank or len(q.scales) != channels):
        raise Refused(f"its scales run along axis {q.axis}")
    return np.broadcast_to(np.asarray(q.scales, np.float32), (channels,)).copy()


def clamp(step: Fused, dtype: DType) -> tuple[int, int]:
    """The bounds that the clamps of a step and the type of its output set, as they are stored."""
    low, high = integer_range(dtype)
    for node in step.followers(Epilogue.CLAMP):
        least, most = (int(min(max(bound, low), high)) for bound in bind(node).bounds or (low, high))
        low, high = max(low, least), min(high, most)
    return low + flip(dtype), high + flip(dtype)
