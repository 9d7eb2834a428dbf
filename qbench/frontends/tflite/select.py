"""Ops that cut tensors apart, join them, pad them, and pick elements."""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from qbench.errors import ModelError, shown
from qbench.formats.tflite import TO_NCHW
from qbench.frontends.tflite.builder import Builder, Unsupported, Value
from qbench.frontends.tflite.kinds import activated, is_plain_integer, is_quantized
from qbench.frontends.tflite.movement import squeezed
from qbench.frontends.tflite.quantized import quantized
from qbench.frontends.tflite.source import SourceOperator
from qbench.frontends.tflite.table import converter
from qbench.ir.graph import Attr

_END = 2**31 - 1
_LARGEST = float(np.finfo(np.float32).max)


@converter("CONCATENATION", "*", "ConcatenationOptions axis fused_activation_function")
def concatenation(builder: Builder, op: SourceOperator, *values: Value) -> Value:
    """Tensors joined along one axis; quantized ones are brought to the scale of the result."""
    data = [builder.natural(value) for value in values]
    axis = data[0].axis(op.integer("axis"))
    if not all(map(is_plain_integer, values)) and is_quantized(builder, *values):
        value = quantized(builder, "concatenate", data, {"axis": axis})
    else:
        value = builder.emit("concatenate", *data, q=builder.q, axis=axis)
    return activated(builder, op, value)


@converter("SPLIT", "axis x", "SplitOptions num_splits")
def split(builder: Builder, op: SourceOperator, axis: Value, x: Value) -> tuple[Value, ...]:
    """Equal parts."""
    data, count = builder.natural(x), len(builder.results)
    (position,) = axis.integers()
    size = data.shape[data.axis(position)]
    if not isinstance(size, int) or not count or size % count:
        raise ModelError(f"operator {op}: axis {position} of {shown(x.name)}, {size}, does not split into {count}")
    return _cut(builder, data, position, [size // count] * count)


@converter("SPLIT_V", "x sizes axis", "SplitVOptions num_splits")
def split_v(builder: Builder, op: SourceOperator, x: Value, sizes: Value, axis: Value) -> tuple[Value, ...]:
    """Parts of given sizes; one of them may be -1, what the others leave."""
    data, parts = builder.natural(x), list(sizes.integers())
    (position,) = axis.integers()
    total = data.shape[data.axis(position)]
    if not isinstance(total, int):
        raise Unsupported(f"the size {total} of {shown(x.name)} must be known: fix it with shapes=")
    if parts.count(-1) == 1:
        parts[parts.index(-1)] = total - sum(parts) - 1
    if sum(parts) != total or min(parts, default=0) < 0:
        raise ModelError(f"operator {op}: axis {position} of {shown(x.name)}, {total}, does not split into {parts}")
    return _cut(builder, data, position, parts)


def _cut(builder: Builder, data: Value, axis: int, parts: Sequence[int]) -> tuple[Value, ...]:
    qparams = [tensor.qparams for tensor in builder.results]
    cuts = tuple(accumulate(parts))[:-1]
    if len(parts) != len(qparams):
        raise ModelError(f"{len(parts)} parts for {len(qparams)} tensors")
    return builder.emit_many("split", (data,), qparams, {"cuts": cuts, "axis": data.axis(axis)}, nchw=data.nchw)


@converter("SLICE", "x begin size", "SliceOptions")
def slice_(builder: Builder, op: SourceOperator, x: Value, begin: Value, size: Value) -> Value:
    """A box; a size of -1 reaches to the end."""
    starts, counts = begin.integers(), size.integers()
    if not len(starts) == len(counts) == x.rank:
        raise ModelError(f"operator {op}: {len(starts)} positions and {len(counts)} sizes for {x.rank} dimensions")
    for start, count, have in zip(starts, counts, x.file_shape, strict=True):
        if start < 0 or count < -1 or (isinstance(have, int) and start + max(count, 0) > have):
            raise ModelError(f"operator {op}: {count} elements from {start} do not lie within a size of {have}")
    ends = [_END if count == -1 else start + count for start, count in zip(starts, counts, strict=True)]
    return _sliced(builder, builder.natural(x), starts, ends, (1,) * x.rank)


def _sliced(builder: Builder, data: Value, begin: Sequence[int], end: Sequence[int], strides: Sequence[int]) -> Value:
    """A slice by the file's axes; those that are taken whole are left out."""
    cuts: dict[int, tuple[int, int, int]] = {}
    for axis, (start, stop, step) in enumerate(zip(begin, end, strides, strict=True)):
        have = data.file_shape[axis]
        whole = stop >= _END or (isinstance(have, int) and stop >= have)
        if step == 1 and start == 0 and whole:
            continue
        if isinstance(have, str) and not (step == 1 and start == 0):
            raise Unsupported(f"a part of the open size {have} of {shown(data.name)}: fix it with shapes=")
        cuts[data.axis(axis)] = (start, stop, step)
    if not cuts:
        return builder.emit("reshape", data, q=builder.q, newshape=data.shape)
    axes = tuple(sorted(cuts))
    starts, stops, steps = (tuple(cuts[axis][i] for axis in axes) for i in range(3))
    return builder.emit("strided_slice", data, q=builder.q, begin=starts, end=stops, strides=steps, axes=axes)


@converter(
    "STRIDED_SLICE",
    "x begin end strides",
    "StridedSliceOptions begin_mask end_mask ellipsis_mask new_axis_mask shrink_axis_mask offset",
)
def strided_slice(builder: Builder, op: SourceOperator, x: Value, begin: Value, end: Value, strides: Value) -> Value:
    """Python's slices, with masks for what is left open, and for axes that are taken at one index and vanish."""
    for mask in ("ellipsis_mask", "new_axis_mask", "offset"):
        if op.integer(mask):
            raise Unsupported(mask)
    lists = [list(value.integers()) for value in (begin, end, strides)]
    count = len(lists[0])
    if any(len(given) != count for given in lists) or count > x.rank or 0 in lists[2]:
        raise ModelError(f"operator {op}: begin, end and strides {lists} do not fit {x.rank} dimensions")
    gone: list[int] = []
    for axis in range(count):
        step, bit = lists[2][axis], 1 << axis
        if op.integer("shrink_axis_mask") & bit:
            have, at = x.file_shape[axis], 0 if op.integer("begin_mask") & bit else lists[0][axis]
            if isinstance(have, int) and not -have <= at < have:
                raise ModelError(f"operator {op}: index {at} lies outside axis {axis} of {shown(x.name)}, {have}")
            lists[0][axis], lists[1][axis], lists[2][axis] = at, at + 1 if at != -1 else _END, 1
            gone.append(axis)
            continue
        if op.integer("begin_mask") & bit:
            lists[0][axis] = 0 if step > 0 else _END
        if op.integer("end_mask") & bit:
            lists[1][axis] = _END if step > 0 else -_END
    rest = x.rank - count
    begins, ends, steps = lists[0] + [0] * rest, lists[1] + [_END] * rest, lists[2] + [1] * rest
    value = _sliced(builder, builder.natural(x), begins, ends, steps)
    return squeezed(builder, value, tuple(gone)) if gone else value


@converter("GATHER", "x indices", "GatherOptions axis batch_dims")
def gather(builder: Builder, op: SourceOperator, x: Value, indices: Value) -> Value:
    """Elements at indices along one axis."""
    data = builder.filed(x)
    axis, batch = data.axis(op.integer("axis")), op.integer("batch_dims") % max(indices.rank, 1)
    if batch:
        if axis != batch:
            raise Unsupported(f"batch_dims={batch} and axis={axis}")
        places = builder.emit("cast", builder.filed(indices), dtype="int64")
        places = builder.emit("expand_dims", places, axes=(indices.rank,))
        return builder.emit("gather_nd", data, places, q=builder.q, batch_dims=batch)
    have = data.shape[axis]
    if indices.constant is not None and indices.constant.size and isinstance(have, int):
        low, high = int(indices.constant.min()), int(indices.constant.max())
        if low < 0 or high >= have:
            raise ModelError(f"operator {op}: indices {low}..{high} go beyond axis {axis} of {shown(x.name)}, {have}")
    return builder.emit("take", data, builder.filed(indices), q=builder.q, axis=axis)


@converter("PAD", "x paddings", "PadOptions")
@converter("PADV2", "x paddings value", "PadV2Options")
def pad(builder: Builder, op: SourceOperator, x: Value, paddings: Value, value: Value | None = None) -> Value:
    """A constant around the elements: 0.0 unless given."""
    fill = 0.0 if x.q is None or builder.is_real else float(x.q.zero_points[0])
    if value is not None:
        if value.constant is None or value.constant.size != 1 or value.q != x.q:
            raise Unsupported(f"the value {shown(value.name)} must be one constant, quantized as the input is")
        fill = float(value.constant.item())
        if value.q is not None and builder.is_real:
            fill = (fill - value.q.zero_points[0]) * value.q.scales[0]
        if np.isnan(fill):
            raise ModelError(f"operator {op} pads with {fill}")
        fill = float(np.clip(fill, -_LARGEST, _LARGEST))  # PyTorch's converter pads with -inf in front of a max pool
    return _padded(builder, op, x, paddings, {"mode": "constant", "pad_value": fill})


@converter("MIRROR_PAD", "x paddings", "MirrorPadOptions mode")
def mirror_pad(builder: Builder, op: SourceOperator, x: Value, paddings: Value) -> Value:
    """A mirror image around the elements, without the edge or with it."""
    symmetric = bool(op.integer("mode"))
    if symmetric and max(paddings.integers(), default=0) > 1:
        return _mirrored(builder, builder.filed(x), paddings.integers())
    return _padded(builder, op, x, paddings, {"mode": "edge" if symmetric else "reflect"})


def _mirrored(builder: Builder, x: Value, widths: Sequence[int]) -> Value:
    """Rows are picked, some of them twice."""
    for axis, pair in enumerate(zip(widths[::2], widths[1::2], strict=True)):
        size = x.shape[axis]
        if any(pair):
            if not isinstance(size, int) or max(pair) > size:
                raise Unsupported(f"a mirror image {pair} wide of {size} elements")
            places = np.pad(np.arange(size, dtype=np.int32), pair, mode="symmetric")
            x = builder.emit("take", x, builder.known(places), q=builder.q, axis=axis)
    return x


def _padded(builder: Builder, op: SourceOperator, x: Value, paddings: Value, attrs: dict[str, Attr]) -> Value:
    data = builder.natural(x)
    widths = paddings.integers()
    if len(widths) != 2 * x.rank:
        raise ModelError(f"operator {op}: {len(widths)} paddings for the {x.rank} dimensions of {shown(x.name)}")
    pairs = [(widths[2 * axis], widths[2 * axis + 1]) for axis in range(x.rank)]
    order = TO_NCHW if data.nchw else range(x.rank)
    return builder.emit("nn.pad", data, q=builder.q, pad_width=tuple(pairs[axis] for axis in order), attrs=attrs)
