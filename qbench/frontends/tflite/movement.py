"""Ops that keep all elements: another shape or order."""

import math

from qbench.errors import ModelError, shown
from qbench.formats.tflite import TO_NCHW
from qbench.frontends.sizes import size_array
from qbench.frontends.tflite.builder import Builder, Unsupported, Value
from qbench.frontends.tflite.source import SourceOperator
from qbench.frontends.tflite.table import converter
from qbench.ir.graph import Attr
from qbench.ir.types import Dim, dim_factors, dim_product


@converter("SHAPE", "x", "ShapeOptions out_type")
def shape(builder: Builder, op: SourceOperator, x: Value) -> Value:
    """Sizes are known while importing; open ones stay symbols."""
    return builder.known(size_array(x.file_shape, builder.result.dtype), builder.result.name)


@converter("RESHAPE", "x shape?", "ReshapeOptions new_shape")
def reshape(builder: Builder, op: SourceOperator, x: Value, target: Value | None) -> Value:
    """The shape is an input, or in older files an option."""
    given = op.integers("new_shape") or () if target is None else target.dims()
    return reshaped(builder, x, _resolved(x, list(given)))


def reshaped(builder: Builder, x: Value, to: tuple[Dim, ...]) -> Value:
    """The elements in the file's order, in another shape; an image of one channel or one pixel is moved for nothing."""
    keeps = x.nchw and (x.shape[1] == 1 or x.shape[2:] == (1, 1))
    data = x if keeps else builder.filed(x)
    nchw = len(to) == 4 and (to[3] == 1 or to[1:3] == (1, 1))
    if nchw:
        to = (to[0], to[3], to[1], to[2])
    return builder.emit("reshape", data, q=builder.q, nchw=nchw, newshape=to)


def _resolved(x: Value, wanted: list[Dim | None]) -> tuple[Dim, ...]:
    """A target shape with its one open size worked out.

    A file made for batches of one states that one in its shapes; where the batch has been opened it means the batch.
    """
    open_axes = [i for i, size in enumerate(wanted) if size is None or size == -1]
    if len(open_axes) > 1:
        raise Unsupported(f"the shape {wanted} has several sizes known only at run time: fix them with shapes=")
    sizes: list[Dim] = [1 if size is None or size == -1 else size for size in wanted]
    number, symbol = dim_factors(dim_product(x.shape))
    if symbol is not None and not open_axes and all(isinstance(size, int) for size in sizes):
        if sizes[:1] == [1] and math.prod(int(size) for size in sizes) == number:
            sizes[0] = symbol
    elif open_axes:
        part, other = dim_factors(dim_product(tuple(sizes)))
        if not part or number % part or other not in (None, symbol):
            raise ModelError(f"{shown(x.name)} of shape {x.file_shape} does not fill {wanted}")
        rest = number // part
        sizes[open_axes[0]] = dim_product((rest, symbol)) if symbol and other is None else rest
    return tuple(sizes)


@converter("TRANSPOSE", "x perm", "TransposeOptions")
def transpose(builder: Builder, op: SourceOperator, x: Value, perm: Value) -> Value:
    """Axes in another order; the order of an image's layout is folded in."""
    order = perm.integers()
    if sorted(order) != list(range(x.rank)):
        raise ModelError(f"operator {op}: {order} is no order of the {x.rank} axes of {shown(x.name)}")
    axes = tuple(x.axis(axis) for axis in order)
    if x.nchw:
        axes = tuple(axes[axis] for axis in TO_NCHW)
    return builder.emit("transpose", x, q=builder.q, axes=axes)


def squeezed(builder: Builder, x: Value, axes: tuple[int, ...]) -> Value:
    """Without these axes of the file's layout; what is left is in the file's order."""
    left = [x.axis(axis) for axis in range(x.rank) if axis not in axes]
    data = x if left == sorted(left) else builder.filed(x)
    inner = tuple(sorted(data.axis(axis) for axis in axes))
    return builder.emit("squeeze", data, q=builder.q, nchw=False, axes=inner)


@converter("SQUEEZE", "x", "SqueezeOptions squeeze_dims")
def squeeze(builder: Builder, op: SourceOperator, x: Value) -> Value:
    """Axes are an option; none means all of size 1."""
    given = op.integers("squeeze_dims") or ()
    axes = tuple(range(x.rank)[axis] for axis in given)
    return squeezed(builder, x, axes or tuple(axis for axis, size in enumerate(x.file_shape) if size == 1))


@converter("EXPAND_DIMS", "x axis", "ExpandDimsOptions")
def expand_dims(builder: Builder, op: SourceOperator, x: Value, axis: Value) -> Value:
    """One new axis."""
    (position,) = axis.integers()
    return _expanded(builder, builder.filed(x), range(x.rank + 1)[position])


def _expanded(builder: Builder, x: Value, axis: int) -> Value:
    return builder.emit("expand_dims", x, q=builder.q, axes=(axis,))


@converter("PACK", "*", "PackOptions values_count axis")
def pack(builder: Builder, op: SourceOperator, *values: Value) -> Value:
    """Tensors of one shape along a new axis."""
    axis = range(values[0].rank + 1)[op.integer("axis")]
    parts = [_expanded(builder, builder.filed(value), axis) for value in values]
    return builder.emit("concatenate", *parts, q=builder.q, axis=axis)


@converter("UNPACK", "x", "UnpackOptions num axis")
def unpack(builder: Builder, op: SourceOperator, x: Value) -> tuple[Value, ...]:
    """A tensor for each index of an axis."""
    data = builder.filed(x)
    axis, count = data.axis(op.integer("axis")), len(builder.results)
    qparams = [tensor.qparams for tensor in builder.results]
    attrs: dict[str, Attr] = {"cuts": tuple(range(1, count)), "axis": axis}
    parts = builder.emit_many("split", (data,), qparams, attrs, nchw=False)
    return tuple(builder.emit("squeeze", part, q=part.q, axes=(axis,)) for part in parts)


@converter("DEPTH_TO_SPACE", "x", "DepthToSpaceOptions block_size")
def depth_to_space(builder: Builder, op: SourceOperator, x: Value) -> Value:
    """Channels as blocks of pixels."""
    return builder.emit(
        "nn.depth_to_space", builder.nchw(x), q=builder.q, block_size=op.integer("block_size"), mode="DCR"
    )


@converter("SPACE_TO_DEPTH", "x", "SpaceToDepthOptions block_size")
def space_to_depth(builder: Builder, op: SourceOperator, x: Value) -> Value:
    """Blocks of pixels as channels."""
    return builder.emit("nn.space_to_depth", builder.nchw(x), q=builder.q, block_size=op.integer("block_size"))


@converter("TILE", "x multiples", "TileOptions")
def tile(builder: Builder, op: SourceOperator, x: Value, multiples: Value) -> Value:
    """Copies along each axis."""
    counts = multiples.integers()
    data = builder.natural(x)
    if len(counts) != x.rank:
        raise ModelError(f"operator {op}: {len(counts)} counts for the {x.rank} dimensions of {shown(x.name)}")
    order = range(x.rank) if not data.nchw else TO_NCHW
    return builder.emit("tile", data, q=builder.q, reps=tuple(counts[axis] for axis in order))
