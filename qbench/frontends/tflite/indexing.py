"""Ops that count, sort, and pick or write elements by index, in the file's layout."""

import math

import numpy as np

from qbench.errors import ModelError, shown
from qbench.frontends.growth import MAX_ELEMENTS
from qbench.frontends.tflite.builder import Builder, Unsupported, Value
from qbench.frontends.tflite.source import SourceOperator
from qbench.frontends.tflite.table import converter
from qbench.ir.sizes import size_of
from qbench.ir.types import Dim, dim_product


@converter("ARG_MAX", "x axis", "ArgMaxOptions output_type")
@converter("ARG_MIN", "x axis", "ArgMinOptions output_type")
def arg(builder: Builder, op: SourceOperator, x: Value, axis: Value) -> Value:
    """The place of the largest or smallest element."""
    (along,) = axis.integers()
    data = builder.filed(x)
    place = builder.emit(op.op.lower().replace("_", ""), data, axis=data.axis(along), keepdims=False)
    return builder.emit("cast", place, dtype=builder.result.dtype)


@converter("TOPK_V2", "x k", "TopKV2Options")
def topk(builder: Builder, op: SourceOperator, x: Value, k: Value) -> tuple[Value, ...]:
    """The largest elements of each row, and their places."""
    (count,) = k.integers()
    values, places = builder.emit_many("topk", (builder.filed(x),), (builder.q, None), {"k": count}, nchw=False)
    return values, builder.emit("cast", places, dtype=builder.results[1].dtype)


@converter("GATHER_ND", "x indices", "GatherNdOptions")
def gather_nd(builder: Builder, op: SourceOperator, x: Value, indices: Value) -> Value:
    """Parts at positions."""
    at = builder.emit("cast", builder.filed(indices), dtype="int64")
    return builder.emit("gather_nd", builder.filed(x), at, q=builder.q, nchw=False)


@converter("EMBEDDING_LOOKUP", "ids table")
def embedding_lookup(builder: Builder, op: SourceOperator, ids: Value, table: Value) -> Value:
    """Rows of a table."""
    return builder.emit("take", builder.filed(table), ids, q=builder.q, nchw=False, axis=0)


@converter("SCATTER_ND", "indices updates shape", "ScatterNdOptions")
def scatter_nd(builder: Builder, op: SourceOperator, indices: Value, updates: Value, shape: Value) -> Value:
    """Updates added up at positions of zeros."""
    zero = builder.known(np.zeros((), updates.dtype))
    zeros = builder.emit("broadcast_to", zero, label="zeros", nchw=False, shape=shape.integers())
    return builder.emit(
        "scatter_nd", zeros, builder.filed(indices), builder.filed(updates), q=builder.q, reduction="add"
    )


@converter("CUMSUM", "x axis", "CumsumOptions exclusive reverse")
def cumsum(builder: Builder, op: SourceOperator, x: Value, axis: Value) -> Value:
    """Sums that grow."""
    if x.q is not None:
        raise Unsupported("quantized sums that grow")
    (along,) = axis.integers()
    data = builder.filed(x)
    return builder.emit(
        "cumsum", data, axis=data.axis(along), exclusive=op.flag("exclusive"), reverse=op.flag("reverse")
    )


@converter("ONE_HOT", "indices depth on off", "OneHotOptions axis")
def one_hot(builder: Builder, op: SourceOperator, indices: Value, depth: Value, on: Value, off: Value) -> Value:
    """A new axis, with one element on; none for an index that is negative."""
    (count,) = depth.integers()
    if on.constant is None or off.constant is None:
        raise Unsupported("what stands for on and off must be constant")
    values = builder.known(np.stack([off.constant.reshape(()), on.constant.reshape(())]))
    data, bounds = builder.filed(indices), [builder.known(np.asarray(n, indices.dtype)) for n in (0, count)]
    at = builder.emit("where", builder.emit("less", data, bounds[0]), bounds[1], data)
    return builder.emit("one_hot", at, values, q=builder.q, places=count, axis=op.integer("axis"))


@converter("REVERSE_V2", "x axes", "ReverseV2Options")
def reverse(builder: Builder, op: SourceOperator, x: Value, axes: Value) -> Value:
    """Elements in the other order along some axes."""
    data = builder.filed(x)
    along = tuple(sorted(map(data.axis, axes.integers())))
    sizes = [data.shape[axis] for axis in along]
    if not all(isinstance(size, int) for size in sizes):
        raise Unsupported("the other order of an axis whose size is open: fix it with shapes=")
    attrs = {"begin": (-1,) * len(along), "end": (-(2**31) + 1,) * len(along), "strides": (-1,) * len(along)}
    return builder.emit("strided_slice", data, q=builder.q, attrs={**attrs, "axes": along})


@converter("BROADCAST_TO", "x shape", "BroadcastToOptions")
def broadcast_to(builder: Builder, op: SourceOperator, x: Value, shape: Value) -> Value:
    """Axes of size 1 repeated."""
    return builder.emit("broadcast_to", builder.filed(x), q=builder.q, shape=_sizes(shape))


@converter("FILL", "shape value", "FillOptions")
def fill(builder: Builder, op: SourceOperator, shape: Value, value: Value) -> Value:
    """One number everywhere."""
    return builder.emit("broadcast_to", value, q=builder.q, nchw=False, shape=_sizes(shape))


@converter("ZEROS_LIKE", "x", "ZerosLikeOptions")
def zeros_like(builder: Builder, op: SourceOperator, x: Value) -> Value:
    """Zeros in the shape of another tensor."""
    return builder.emit("broadcast_to", builder.known(np.zeros((), x.dtype)), nchw=False, shape=x.file_shape)


@converter("RANK", "x", "RankOptions")
def rank(builder: Builder, op: SourceOperator, x: Value) -> Value:
    """How many dimensions there are."""
    return builder.known(np.asarray(x.rank, np.int32), builder.result.name)


@converter("RANGE", "start limit delta", "RangeOptions")
def range_(builder: Builder, op: SourceOperator, start: Value, limit: Value, delta: Value) -> Value:
    """Numbers up to a limit."""
    if start.constant is None or limit.constant is None or delta.constant is None:
        raise Unsupported("its bounds must be constant")
    first, last, step = (value.item() for value in (start.constant, limit.constant, delta.constant))
    if not step or abs(last - first) / abs(step) > MAX_ELEMENTS:
        raise ModelError(f"operator {op} counts from {first} to {last} in steps of {step}")
    counted = np.asarray(np.arange(first, last, step), start.constant.dtype)
    return builder.known(counted, builder.result.name)


@converter("ADD_N", "*", "AddNOptions")
def add_n(builder: Builder, op: SourceOperator, *values: Value) -> Value:
    """The sum of several tensors."""
    total, *rest = map(builder.natural, values)
    for value in rest:
        total = builder.emit("add", total, value)
    return total


@converter("FLOOR_DIV", "lhs rhs", "FloorDivOptions")
@converter("FLOOR_MOD", "lhs rhs", "FloorModOptions")
def floored(builder: Builder, op: SourceOperator, lhs: Value, rhs: Value) -> Value:
    """The quotient rounded down, or what it leaves."""
    operands = builder.filed(lhs), builder.filed(rhs)
    if op.op == "FLOOR_MOD":
        return builder.emit("mod", *operands)
    if not lhs.is_float:
        rest = builder.emit("mod", *operands)
        return builder.emit("divide", builder.emit("subtract", operands[0], rest), operands[1])
    return builder.emit("floor", builder.emit("divide", *operands))


@converter("SPACE_TO_BATCH_ND", "x block pads", "SpaceToBatchNDOptions")
def space_to_batch(builder: Builder, op: SourceOperator, x: Value, block: Value, pads: Value) -> Value:
    """Every so many-th pixel as an image of its own: what a dilated convolution is made of."""
    data, blocks, widths = builder.filed(x), block.integers(), pads.integers()
    if x.rank != len(blocks) + 2 or len(widths) != 2 * len(blocks):
        raise Unsupported(f"{len(blocks)} blocks and {len(widths)} paddings of {x.rank} dimensions")
    pairs = ((0, 0), *((widths[2 * i], widths[2 * i + 1]) for i in range(len(blocks))), (0, 0))
    if any(map(any, pairs)):
        zero = 0.0 if x.q is None or builder.is_real else float(x.q.zero_points[0])
        data = builder.emit("nn.pad", data, q=x.q, pad_width=pairs, pad_value=zero)
    batch, *sizes, channels = data.shape
    parts = [part for size, b in zip(_known(x, sizes), blocks, strict=True) for part in (size // b, b)]
    axes = (*range(2, 2 * len(blocks) + 1, 2), 0, *range(1, 2 * len(blocks), 2), 2 * len(blocks) + 1)
    apart = builder.emit("reshape", data, q=x.q, newshape=(batch, *parts, channels))
    moved = builder.emit("transpose", apart, q=x.q, axes=axes)
    merged = (dim_product((batch, *blocks)), *parts[::2], channels)
    return builder.emit("reshape", moved, q=builder.q, newshape=merged)


@converter("BATCH_TO_SPACE_ND", "x block crops", "BatchToSpaceNDOptions")
def batch_to_space(builder: Builder, op: SourceOperator, x: Value, block: Value, crops: Value) -> Value:
    """The way back, with edges cut off."""
    data, blocks, cut = builder.filed(x), block.integers(), crops.integers()
    if x.rank != len(blocks) + 2 or len(cut) != 2 * len(blocks):
        raise Unsupported(f"{len(blocks)} blocks and {len(cut)} crops of {x.rank} dimensions")
    batch, *sizes, channels = data.shape
    n, known = len(blocks), _known(x, sizes)
    images = (size_of(batch) // math.prod(blocks)).dim
    apart = builder.emit("reshape", data, q=x.q, newshape=(*blocks, images, *known, channels))
    axes = (n, *(axis for i in range(n) for axis in (n + 1 + i, i)), 2 * n + 1)
    moved = builder.emit("transpose", apart, q=x.q, axes=axes)
    grown = [size * b for size, b in zip(known, blocks, strict=True)]
    whole = builder.emit("reshape", moved, q=builder.q, newshape=(images, *grown, channels))
    edges = [(i, cut[2 * i], grown[i] - cut[2 * i + 1]) for i in range(n) if cut[2 * i] or cut[2 * i + 1]]
    if not edges:
        return whole
    at, begin, end = zip(*edges, strict=True)
    attrs = {"begin": begin, "end": end, "strides": (1,) * len(edges), "axes": tuple(axis + 1 for axis in at)}
    return builder.emit("strided_slice", whole, q=builder.q, attrs=attrs)


def _sizes(shape: Value) -> tuple[Dim, ...]:
    given = shape.dims()
    sizes = tuple(size for size in given if size is not None)
    if len(sizes) < len(given):
        raise Unsupported(f"the sizes in {shown(shape.name)} must be whole")
    return sizes


def _known(x: Value, sizes: list[Dim]) -> list[int]:
    known = [size for size in sizes if isinstance(size, int)]
    if len(known) < len(sizes):
        raise Unsupported(f"the size of {shown(x.name)} must be known: fix it with shapes=")
    return known
