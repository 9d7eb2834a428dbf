"""Sequences of tensors, as exporters write lists: taken apart while the model is read."""

from qbench.errors import ModelError
from qbench.frontends.onnx.builder import Builder, Unsupported, Value
from qbench.frontends.onnx.select import concat
from qbench.frontends.onnx.source import SourceNode
from qbench.frontends.onnx.table import converter


def _sequence(node: SourceNode, items: tuple[Value, ...]) -> Value:
    return Value(node.outputs[0], (), "sequence", items=items)


@converter("SequenceEmpty", "", "dtype")
@converter("SequenceConstruct", "*")
def construct(builder: Builder, node: SourceNode, *values: Value) -> Value:
    """A sequence of these tensors."""
    return _sequence(node, values)


@converter("SequenceInsert", "sequence tensor position?")
def insert(builder: Builder, node: SourceNode, sequence: Value, tensor: Value, position: Value | None) -> Value:
    """One more, at the end unless said otherwise."""
    items = [*sequence.items]
    items.insert(len(items) if position is None else position.integers()[0], tensor)
    return _sequence(node, tuple(items))


@converter("SequenceAt", "sequence position")
def at(builder: Builder, node: SourceNode, sequence: Value, position: Value) -> Value:
    """One of the tensors."""
    (index,), count = position.integers(), len(sequence.items)
    if not -count <= index < count:
        raise ModelError(f"node {node} takes item {index} of {count}")
    return sequence.items[index]


@converter("SplitToSequence", "input split?", "axis keepdims")
def split_to_sequence(builder: Builder, node: SourceNode, x: Value, given: Value | None) -> Value:
    """A tensor cut along one axis, into parts of one size unless sizes are given."""
    axis = x.axis(node.integer("axis", 0))
    size = x.size(axis)
    if given is not None and given.rank:
        sizes = given.integers()
    else:
        part = 1 if given is None else given.integers()[0]
        if part < 1:
            raise ModelError(f"node {node} cuts parts of {part}")
        sizes = tuple(min(part, size - start) for start in range(0, size, part))
    if sum(sizes) != size or min(sizes, default=0) < 1:
        raise Unsupported(f"parts {sizes} of {size}")
    cuts = tuple(sum(sizes[: i + 1]) for i in range(len(sizes) - 1))
    parts = builder.emit_many("split", (x,), len(sizes), cuts=cuts, axis=axis) if cuts else (x,)
    if given is None and not node.flag("keepdims", True):
        parts = tuple(builder.emit("squeeze", value, axes=(axis,)) for value in parts)
    return _sequence(node, parts)


@converter("ConcatFromSequence", "sequence", "axis new_axis")
def concat_from_sequence(builder: Builder, node: SourceNode, sequence: Value) -> Value:
    """The tensors joined along an axis, which may be a new one."""
    if not sequence.items:
        raise ModelError(f"node {node} joins nothing")
    if not node.flag("new_axis"):
        return concat(builder, node, *sequence.items)
    rank = sequence.items[0].rank + 1
    axis = range(rank)[node.integer("axis", 0)]
    parts = [builder.emit("expand_dims", value, axes=(axis,)) for value in sequence.items]
    return builder.emit_many("concatenate", parts, 1, axis=axis)[0]
