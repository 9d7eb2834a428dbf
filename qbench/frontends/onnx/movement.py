"""Ops that keep all elements: another shape, order, dtype or only another name."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from onnx import TensorProto, helper

from qbench.frontends.onnx.builder import Builder, Unsupported, Value
from qbench.frontends.onnx.source import SourceNode
from qbench.frontends.onnx.table import converter
from qbench.frontends.sizes import size_array, solved, symbols_of
from qbench.ir.dtypes import is_dtype
from qbench.ir.sizes import size_of
from qbench.ir.types import Dim, dim_product
from qbench.ops.rules import Unequal


@converter("Identity", "input")
def identity(builder: Builder, node: SourceNode, x: Value) -> Value:
    """An alias."""
    return x


@converter("Dropout", "data ratio? training_mode?", "ratio seed")
def dropout(builder: Builder, node: SourceNode, x: Value, ratio: Value | None, training: Value | None) -> Value:
    """Nothing, at inference."""
    if training is not None and (training.constant is None or bool(training.constant.any())):
        raise Unsupported("training mode")
    return x


@converter("Cast", "input", "to saturate")
def cast(builder: Builder, node: SourceNode, x: Value) -> Value:
    """The elements as another dtype."""
    to = node.integer("to", TensorProto.UNDEFINED)
    if to not in TensorProto.DataType.values() or to in (TensorProto.UNDEFINED, TensorProto.STRING):
        raise Unsupported(f"a cast to the element type {to}")
    return _cast(builder, x, np.dtype(helper.tensor_dtype_to_np_dtype(to)).name)


@converter("CastLike", "input target_type", "saturate")
def cast_like(builder: Builder, node: SourceNode, x: Value, like: Value) -> Value:
    """The elements in the dtype of another tensor."""
    return _cast(builder, x, like.dtype)


def _cast(builder: Builder, x: Value, dtype: str) -> Value:
    if dtype == "float64":
        builder.doubles.append(builder.now().name)
        dtype = "float32"
    if not is_dtype(dtype):
        raise Unsupported(f"a cast to {dtype}")
    if x.dtype == dtype:
        return x
    return dataclasses.replace(builder.emit("cast", x, dtype=dtype), repeated=x.repeated)


@converter("Shape", "data", "start end")
def shape(builder: Builder, node: SourceNode, x: Value) -> Value:
    """Sizes are known while importing; open ones stay symbols."""
    chosen = x.shape[slice(node.integer("start", 0), node.integer("end", x.rank))]
    return Value.known(node.outputs[0], size_array(chosen))


@converter("Reshape", "data shape", "allowzero")
def reshape(builder: Builder, node: SourceNode, x: Value, target: Value) -> Value:
    """A size of -1 is what the others leave."""
    wanted = list(target.dims())
    if not node.flag("allowzero"):
        wanted = [x.shape[x.axis(i)] if size == 0 else size for i, size in enumerate(wanted)]
    return reshaped(builder, x, wanted)


def reshaped(builder: Builder, x: Value, wanted: Sequence[Dim]) -> Value:
    """The elements in another shape, all of whose sizes are written out."""
    if list(wanted).count(-1) == 1:
        total, known = size_of(dim_product(x.shape)), dim_product(size for size in wanted if size != -1)
        rest = total // size_of(known)
        if len(wanted) == 2 and wanted[0] == -1 and rest * size_of(known) != total:
            _need_rows(builder, x, known)
        wanted = [rest.dim if size == -1 else size for size in wanted]
    return builder.emit("reshape", x, newshape=tuple(wanted))


def _need_rows(builder: Builder, x: Value, row: Dim) -> None:
    """Where samples become rows of a fixed length, that fixes another open size, if it can, and not the batch."""
    batch, sample = x.shape[0], dim_product(x.shape[1:])
    if isinstance(batch, str) and solved(sample, row, symbols_of(builder.inputs.values())):
        raise Unequal(f"each sample has {sample} elements, and must have {row}", sample, row)


@converter("Size", "data")
def size(builder: Builder, node: SourceNode, x: Value) -> Value:
    """The number of elements."""
    return Value.known(node.outputs[0], size_array([dim_product(x.shape)]).reshape(()))


@converter("Flatten", "input", "axis")
def flatten(builder: Builder, node: SourceNode, x: Value) -> Value:
    """A matrix: sizes before `axis` together, the rest together."""
    axis = node.integer("axis", 1)
    axis = axis + x.rank if axis < 0 else axis
    if x.rank >= 2 and 0 < axis < x.rank:
        return builder.emit("nn.batch_flatten", x, axis=axis)
    return builder.emit("reshape", x, newshape=(1, -1) if axis == 0 else (-1, 1))


@converter("Transpose", "data", "perm")
def transpose(builder: Builder, node: SourceNode, x: Value) -> Value:
    """Axes in another order, by default reversed."""
    return builder.emit("transpose", x, axes=node.integers("perm") or tuple(range(x.rank))[::-1])


@converter("Squeeze", "data axes?", "axes")
def squeeze(builder: Builder, node: SourceNode, x: Value, given: Value | None) -> Value:
    """Axes are an attribute, then (opset 13) an input; none means all of size 1."""
    axes = node.integers("axes") if given is None else given.integers()
    if axes is None:
        axes = tuple(axis for axis, size in enumerate(x.shape) if size == 1)
    return builder.emit("squeeze", x, axes=tuple(sorted(map(x.axis, axes)))) if axes else x


@converter("Unsqueeze", "data axes?", "axes")
def unsqueeze(builder: Builder, node: SourceNode, x: Value, given: Value | None) -> Value:
    """Axes are an attribute, then (opset 13) an input."""
    axes = (node.integers("axes") or ()) if given is None else given.integers()
    rank = x.rank + len(axes)
    front = tuple(sorted(axis + rank if axis < 0 else axis for axis in axes))
    return builder.emit("expand_dims", x, axes=front) if axes else x
