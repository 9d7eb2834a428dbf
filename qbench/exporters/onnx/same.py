"""Ops that ONNX has as well, with the same operands."""

from qbench.exporters.onnx.sizes import sizes
from qbench.exporters.onnx.writer import Writer, exporter
from qbench.formats.onnx import PLAIN, WITH_ATTRIBUTES, attribute_names
from qbench.ir.graph import Node
from qbench.ir.op import Op
from qbench.ir.types import Dim

_PLAIN = PLAIN | {
    "add": "Add",
    "integer.matmul_dynamic": "MatMulInteger",
    "maximum": "Max",
    "minimum": "Min",
    "nn.global_avg_pool2d": "GlobalAveragePool",
    "nn.global_max_pool2d": "GlobalMaxPool",
    "power": "Pow",
    "qnn.dynamic_quantize": "DynamicQuantizeLinear",
}
"""Also those that are read otherwise: they have more forms there."""

_WITH_ATTRIBUTES = {op: (name, listed) for op, (name, _, listed) in WITH_ATTRIBUTES.items()} | {
    "argmax": ("ArgMax", "axis keepdims"),
    "argmin": ("ArgMin", "axis keepdims"),
    "concatenate": ("Concat", "axis"),
    "einsum": ("Einsum", "equation"),
    "image.grid_sample": ("GridSample", "mode=method padding_mode=padding align_corners"),
    "integer.conv2d_dynamic": ("ConvInteger", "strides pads=padding dilations=dilation group=groups"),
    "nn.batch_flatten": ("Flatten", "axis"),
    "nn.layer_norm": ("LayerNormalization", "axis epsilon"),
    "nn.log_softmax": ("LogSoftmax", "axis"),
    "scatter_elements": ("ScatterElements", "axis reduction"),
    "take": ("Gather", "axis"),
    "take_along_axis": ("GatherElements", "axis"),
    "transpose": ("Transpose", "perm=axes"),
}

_WITH_SIZES = {
    "expand_dims": ("Unsqueeze", "axes", ""),
    "max": ("ReduceMax", "axes", "keepdims"),
    "mean": ("ReduceMean", "axes", "keepdims"),
    "min": ("ReduceMin", "axes", "keepdims"),
    "prod": ("ReduceProd", "axes", "keepdims"),
    "squeeze": ("Squeeze", "axes", ""),
    "sum": ("ReduceSum", "axes", "keepdims"),
    "tile": ("Tile", "repeats=reps", ""),
    "topk": ("TopK", "k", "axis largest"),
    "triangle": ("Trilu", "k", "upper"),
}
"""Their names in ONNX, the attribute that is the last input there, and those that are attributes there too."""


@exporter(*_PLAIN)
def plain(writer: Writer, node: Node) -> None:
    """An op without attributes."""
    writer.emit(_PLAIN[node.op], writer.inputs(node), node.outputs, node.name)


@exporter(*_WITH_ATTRIBUTES)
def with_attributes(writer: Writer, node: Node) -> None:
    """An op with attributes."""
    name, listed = _WITH_ATTRIBUTES[node.op]
    attrs = _attributes(writer.op(node, Op), listed)
    writer.emit(name, writer.inputs(node), node.outputs, node.name, **attrs)


@exporter(*_WITH_SIZES)
def with_sizes(writer: Writer, node: Node) -> None:
    """An op with sizes, or axes, as its last input."""
    op, (name, last, listed) = writer.op(node, Op), _WITH_SIZES[node.op]
    ((what, ours),) = attribute_names(last)
    value: Dim | tuple[Dim, ...] = getattr(op, ours)
    inputs = [*writer.inputs(node), sizes(writer, node, what, value if isinstance(value, tuple) else [value])]
    writer.emit(name, inputs, node.outputs, node.name, **_attributes(op, listed))


def _attributes(op: Op, listed: str) -> dict[str, object]:
    """Truth values are numbers in ONNX."""
    values = {theirs: getattr(op, ours) for theirs, ours in attribute_names(listed)}
    return {theirs: int(value) if isinstance(value, bool) else value for theirs, value in values.items()}
