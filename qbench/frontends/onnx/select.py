"""Ops that cut, join, pad, pick and repeat."""

import dataclasses
from collections.abc import Sequence
from operator import itemgetter

import numpy as np

from qbench.errors import ModelError
from qbench.frontends.growth import MAX_ELEMENTS
from qbench.frontends.onnx.builder import Builder, Open, Unsupported, Value
from qbench.frontends.onnx.source import SourceNode
from qbench.frontends.onnx.table import converter
from qbench.ir.sizes import size_of
from qbench.ir.types import Dim, dim_sum, numel

Cut = tuple[int, Dim, Dim, int]
"""Axis, begin, end, stride."""

_END = 10**9
"""Files write this, or more, for: to the end."""


@converter("Concat", "*", "axis")
def concat(builder: Builder, node: SourceNode, *values: Value) -> Value:
    """Tensors joined along one axis; those without an element there are left out."""
    axis = values[0].axis(node.integer("axis", 1))
    values = tuple(value for value in values if value.shape[value.axis(axis)] != 0) or values[:1]
    return values[0] if len(values) == 1 else builder.emit_many("concatenate", values, 1, axis=axis)[0]


@converter("Split", "input split?", "axis split num_outputs")
def split(builder: Builder, node: SourceNode, x: Value, given: Value | None) -> tuple[Value, ...]:
    """Sizes are an attribute, then (opset 13) an input; without them the parts are equal, the last perhaps smaller."""
    axis, count = x.axis(node.integer("axis", 0)), node.integer("num_outputs", len(node.outputs))
    sizes: tuple[Dim, ...] | None = node.integers("split") if given is None else given.dims()
    total = x.shape[axis]
    if sizes is None:
        part = (size_of(total) / count).ceil()
        sizes = (*[part.dim] * (count - 1), (size_of(total) - part * (count - 1)).dim)
    if len(sizes) != len(node.outputs):
        raise ModelError(f"node {node} has {len(node.outputs)} outputs for {len(sizes)} parts")
    if dim_sum(sizes) != total:
        raise ModelError(f"node {node}: parts {sizes} do not add up to {total}")
    if len(sizes) == 1:
        return (x,)
    cuts = tuple(dim_sum(sizes[: i + 1]) for i in range(len(sizes) - 1))
    return builder.emit_many("split", (x,), len(sizes), cuts=cuts, axis=axis)


@converter("Slice", "data starts? ends? axes? steps?", "starts ends axes")
def slice_(
    builder: Builder,
    node: SourceNode,
    x: Value,
    starts: Value | None,
    ends: Value | None,
    axes: Value | None,
    steps: Value | None,
) -> Value:
    """Positions are attributes before opset 10, then inputs."""
    begin: tuple[Dim, ...] | None = node.integers("starts") if starts is None else starts.dims()
    end: tuple[Dim, ...] | None = node.integers("ends") if ends is None else ends.dims()
    if begin is None or end is None:
        raise ModelError(f"node {node} lacks starts or ends")
    along = (node.integers("axes") or tuple(range(len(begin)))) if axes is None else axes.integers()
    strides = (1,) * len(begin) if steps is None else steps.integers()
    cuts = [
        (x.axis(axis), *cut)
        for axis, start, stop, step in zip(along, begin, end, strides, strict=True)
        if (cut := _cut(x.shape[x.axis(axis)], start, stop, step)) is not None
    ]
    return sliced(builder, x, cuts)


def sliced(builder: Builder, x: Value, cuts: list[Cut]) -> Value:
    """Slice x by (axis, begin, end, stride)."""
    if not cuts:
        return x
    axes, begin, end, strides = zip(*sorted(cuts, key=itemgetter(0)), strict=True)
    return builder.emit("strided_slice", x, begin=begin, end=end, strides=strides, axes=axes)


def _cut(size: Dim, start: Dim, stop: Dim, step: int) -> tuple[Dim, Dim, int] | None:
    """(begin, end, stride) counted from the front, or None for the whole axis."""
    if (start, step) == (0, 1) and (stop == size or (isinstance(stop, int) and stop >= _END)):
        return None
    if not isinstance(size, int) or not isinstance(start, int) or not isinstance(stop, int):
        return _front(size, start, step), _front(size, stop, step), step
    begin, end, stride = slice(start, stop, step).indices(size)
    if (begin, end, stride) == (0, size, 1):
        return None
    return begin, end if end >= 0 else -size - 1, stride  # a negative end of a backward slice lies before the front


def _front(size: Dim, position: Dim, step: int) -> Dim:
    """A position where not all is known: an expression that is negative counts from the end."""
    if isinstance(position, int):
        beyond = position >= _END and step > 0
        return size if beyond else dim_sum((size, position)) if -_END < position < 0 < step else position
    most = (-size_of(position)).least
    return dim_sum((size, position)) if most is not None and most >= 0 else position


@converter("Pad", "data pads? constant_value? axes?", "mode pads value")
def pad(
    builder: Builder, node: SourceNode, x: Value, pads: Value | None, fill: Value | None, axes: Value | None
) -> Value:
    """Widths are an attribute before opset 11, then an input; negative ones cut."""
    widths: tuple[Dim, ...] | None = node.integers("pads") if pads is None else pads.dims()
    along = tuple(range(x.rank)) if axes is None else tuple(map(x.axis, axes.integers()))
    if widths is None or len(widths) != 2 * len(along):
        raise ModelError(f"node {node}: pads {widths} should have {2 * len(along)} numbers")
    mode = node.text("mode", "constant")
    value = node.real("value", 0.0) if fill is None else fill.number()
    pairs = {axis: (widths[i], widths[i + len(along)]) for i, axis in enumerate(along)}
    cuts: list[Cut] = [
        (axis, _less(before), (size_of(x.shape[axis]) - size_of(_less(after))).dim, 1)
        for axis, (before, after) in pairs.items()
        if _less(before) or _less(after)
    ]
    x = sliced(builder, x, cuts)
    grown = tuple((_more(b), _more(a)) for b, a in (pairs.get(axis, (0, 0)) for axis in range(x.rank)))
    if not any(map(any, grown)):
        return x
    if mode == "wrap":
        return _wrapped(builder, x, grown)
    return builder.emit("nn.pad", x, pad_width=grown, mode=mode, pad_value=value if mode == "constant" else 0.0)


def _wrapped(builder: Builder, x: Value, grown: Sequence[tuple[Dim, Dim]]) -> Value:
    """Before and behind the elements what is at their other end."""
    for axis, (before, after) in enumerate(grown):
        size = x.shape[axis]
        if not (isinstance(before, int) and isinstance(after, int)):
            raise Unsupported("mode wrap by widths that only the run knows")
        if isinstance(size, int) and max(before, after) > size:
            raise Unsupported("mode wrap by more than there is")
        end = sliced(builder, x, [(axis, (size_of(size) - before).dim, size, 1)]) if before else None
        begin = sliced(builder, x, [(axis, 0, after, 1)]) if after else None
        parts = [part for part in (end, x, begin) if part is not None]
        x = builder.emit("concatenate", *parts, axis=axis) if len(parts) > 1 else x
    return x


def _less(width: Dim) -> int:
    """How much a width cuts."""
    return max(-width, 0) if isinstance(width, int) else 0


def _more(width: Dim) -> Dim:
    """How much a width adds."""
    return max(width, 0) if isinstance(width, int) else width


@converter("Gather", "data indices", "axis")
def gather(builder: Builder, node: SourceNode, x: Value, indices: Value) -> Value:
    """One index, or a run of them, is a slice; anything else picks elements."""
    axis = x.axis(node.integer("axis", 0))
    if indices.array is not None and indices.array.dtype == object and indices.array.size == 1:
        (at,) = indices.dims()
        part = sliced(builder, x, [(axis, at, dim_sum((at, 1)), 1)])
        return builder.emit("reshape", part, newshape=(*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))
    if indices.constant is not None and x.array is None and isinstance(x.shape[axis], int) and indices.rank < 2:
        size = x.size(axis)
        picked = [i + size if i < 0 else i for i in indices.integers()]
        first, count = (picked or [0])[0], len(picked)
        if count and picked == list(range(first, first + count)) and 0 <= first <= size - count:
            part = sliced(builder, x, [] if count == size else [(axis, first, first + count, 1)])
            return part if indices.rank else builder.emit("squeeze", part, axes=(axis,))
    return builder.emit("take", x, indices, axis=axis)


@converter("Tile", "input repeats")
def tile(builder: Builder, node: SourceNode, x: Value, repeats: Value) -> Value:
    """The tensor several times over along each axis."""
    reps = repeats.dims()
    return x if set(reps) <= {1} else builder.emit("tile", x, reps=reps)


@converter("Expand", "input shape")
def expand(builder: Builder, node: SourceNode, x: Value, target: Value) -> Value:
    """Axes of size 1 repeated to fill a shape; a 1 in the shape keeps the axis as it is."""
    wanted = target.dims()
    rank = max(x.rank, len(wanted))
    have = (1,) * (rank - x.rank) + x.shape
    goal = (1,) * (rank - len(wanted)) + wanted
    made = _filled(builder, x, tuple(h if g == 1 else g for h, g in zip(have, goal, strict=True)))
    return dataclasses.replace(made, repeated=x.same() if x.dtype in ("int32", "int64") else None)


@converter("ReverseSequence", "input sequence_lens", "batch_axis time_axis")
def reverse_sequence(builder: Builder, node: SourceNode, x: Value, lengths: Value) -> Value:
    """All steps the other way round where each sequence is as long as the data; else the first so many of each."""
    time, batch = x.axis(node.integer("time_axis", 0)), x.axis(node.integer("batch_axis", 1))
    if lengths.same() == x.shape[time]:
        cut = _cut(x.shape[time], -1, -_END, -1)
        return sliced(builder, x, [] if cut is None else [(time, *cut)])
    order = (batch, time, *(axis for axis in range(x.rank) if axis not in (batch, time)))
    rows = builder.emit("transpose", x, axes=order)
    here = builder.emit("arange", stop=x.shape[time])
    ends = builder.emit("expand_dims", lengths, axes=(1,))
    there = builder.emit("subtract", builder.emit("subtract", ends, np.array(1)), here)
    places = builder.emit("where", builder.emit("less", here, ends), there, here)
    moved = builder.emit("gather_nd", rows, builder.emit("expand_dims", places, axes=(2,)), batch_dims=1)
    return builder.emit("transpose", moved, axes=tuple(map(order.index, range(x.rank))))


@converter("ConstantOfShape", "input", "value")
def constant_of_shape(builder: Builder, node: SourceNode, shape: Value) -> Value:
    """One number everywhere, in a shape with sizes known only at run time."""
    value = node.array("value")
    if value is None:
        value = np.zeros(1, np.float32)
    dims = shape.dims()
    if numel(dims) > MAX_ELEMENTS:
        raise ModelError(f"node {node} makes a constant of shape {dims}")
    known = Value.known(builder.fresh(f"{node.name}.value"), np.full([1] * len(dims), value.item(), value.dtype))
    return _filled(builder, known, dims)


def _filled(builder: Builder, x: Value, shape: tuple[Dim, ...]) -> Value:
    return x if shape == x.shape else builder.emit("broadcast_to", x, shape=shape)


@converter("Range", "start limit delta")
def range_(builder: Builder, node: SourceNode, start: Value, limit: Value, delta: Value) -> Value:
    """Numbers up to one that follows from the sizes."""
    if start.array is None or limit.array is None or delta.array is None:
        raise Open("its bounds must follow from the model's input shapes")
    (begin,), (end,), (step,) = start.dims(), limit.dims(), delta.dims()
    if not isinstance(step, int):
        raise Unsupported(f"its step is {step}")
    return builder.emit("arange", start=begin, stop=end, step=step, dtype=start.dtype)
