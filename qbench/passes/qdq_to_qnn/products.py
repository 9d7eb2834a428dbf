"""Convolutions, dense layers and matrix products: sums of products in an accumulator, the bias, and one rounding."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from qbench.ir.dtypes import numpy_dtype
from qbench.ir.graph import Attr, Node
from qbench.ir.op import Array
from qbench.ir.qparams import QParams
from qbench.passes.accumulators import (
    accumulator_dtype,
    accumulator_qparams,
    largest_product_sum,
    quantized_bias,
)
from qbench.passes.qdq_to_qnn.work import Float, Work

__all__ = ["PRODUCTS", "product"]

PRODUCTS = ("nn.conv2d", "nn.conv2d_transpose", "nn.dense", "nn.batch_matmul")

_WEIGHT_AXIS = {"nn.conv2d": 0, "nn.conv2d_transpose": 1, "nn.dense": 0}
_CHANNEL_AXIS = {"nn.conv2d": 1, "nn.conv2d_transpose": 1}
_CLOSE = 1e-3
"""A bias counts as being in units of the accumulator's scale if its scale differs by less: it was made by rounding."""


def product(work: Work, head: Node) -> None:
    """The head, the bias that follows it, clamps, and each quantize of the result.

    Where real numbers are read from the result, the accumulator is dequantized for them.
    """
    data, data_q = work.per_tensor(head.inputs[0])
    weight = work.need_integers(head.inputs[1])
    weight_q = work.rw.qparams[weight]
    axis = _WEIGHT_AXIS.get(head.op)
    if weight_q.axis is not None and (axis is None or weight_q.axis != axis):
        raise Float(f"unsupported: its weights have scales along axis {weight_q.axis}")
    if axis is not None and weight not in work.rw.constants:
        raise Float("unsupported: its weights are no constant")
    bias_node = work.follower(head.output, ("nn.bias_add",))
    members = [head] if bias_node is None or work.reals(bias_node.inputs[1]) is None else [head, bias_node]
    clamps = work.clamps(members[-1].output)
    targets = work.quantizes(clamps[-1].output if clamps else members[-1].output)
    if not targets:
        clamps = ()

    channels = _CHANNEL_AXIS.get(head.op, work.rank(head.output) - 1)
    sums = accumulator_qparams(data_q, weight_q, channels)
    bias = _in_units_of(work, members[1], sums) if len(members) > 1 else None
    sums = dataclasses.replace(sums, dtype=accumulator_dtype(_bound(work, head, data_q, weight_q, weight), bias))

    if targets:
        work.need_ratios(sums, targets)
    result = targets[0].output if targets else members[-1].output
    work.begin(*members, *clamps, *targets)
    op = f"qnn.{head.op.removeprefix('nn.')}"
    attrs: dict[str, Attr] = {**head.attrs, "accumulator": sums.dtype}
    value = work.value(f"{result}.accumulator")
    value = work.emit(op, (data, weight), value, sums, attrs=attrs, name=head.name, like=(head,))
    if bias is not None:
        node = members[1]
        constant = _stored(work, node, bias.astype(numpy_dtype(sums.dtype)), sums)
        inputs, value = (value, constant), work.value(f"{result}.summed")
        work.emit("nn.bias_add", inputs, value, sums, attrs=node.attrs, name=node.name, like=(node,))
    if not targets:
        work.emit("qnn.dequantize", (value,), result, None)
    for target in targets:
        work.emit_clamped("qnn.requantize", (value,), target, clamps, attrs={"rounding": work.rounding(op)})
    work.finish()


def _stored(work: Work, node: Node, integers: Array, sums: QParams) -> str:
    """The constant that holds a bias; the file's own where that has the same integers and stands for nothing else."""
    q, name = dataclasses.replace(sums, axis=None if sums.axis is None else 0), node.inputs[1]
    stored = work.integers(name)
    if stored is not None:
        known, alone = work.rw.constants[stored].array, work.rw.sole_consumer(stored) and work.rw.sole_consumer(name)
        name = stored
        if known.dtype == integers.dtype and np.array_equal(known, integers) and alone:
            work.rw.qparams[stored] = q
            return stored
    if name in work.rw.constants and work.rw.sole_consumer(name) is not None:
        work.rw.set_constant(name, integers)
    else:
        name = work.rw.constant(name, integers)
    work.rw.qparams[name] = q
    return name


def _in_units_of(work: Work, node: Node, sums: QParams) -> NDArray[np.int64]:
    """The bias in units of the sums' scale; integers that are so already stay what they are."""
    integers = work.integers(node.inputs[1])
    if integers is not None:
        q, array = work.rw.qparams[integers], work.rw.constants[integers].array
        scales = np.asarray(q.scales) / np.asarray(sums.scales) if len(q.scales) in (1, len(sums.scales)) else np.inf
        if np.all(np.abs(scales - 1) < _CLOSE) and not any(q.zero_points):
            return array.astype(np.int64)
    bias = work.reals(node.inputs[1])
    assert bias is not None
    return quantized_bias(bias, sums)


def _bound(work: Work, head: Node, data: QParams, weight: QParams, integers: str) -> NDArray[np.int64] | int:
    array, shape = work.rw.array(integers), [dim for dim in work.rw.types[integers].shape if isinstance(dim, int)]
    if array is not None and head.op in ("nn.conv2d", "nn.dense"):
        return largest_product_sum(data, weight, array, math.prod(shape[1:]))
    depth = math.prod(shape) // shape[1] if head.op == "nn.conv2d_transpose" else max(shape, default=1)
    farthest = max(weight.zero_points, key=abs)
    return largest_product_sum(data, QParams(weight.scales[0], farthest, weight.dtype), None, depth)
