"""Ops that ONNX has as well, with the same operands."""

from qbench.exporters.onnx.writer import Writer, exporter
from qbench.formats.onnx import PLAIN, WITH_ATTRIBUTES, attribute_names
from qbench.ir.graph import Node
from qbench.ir.op import Op

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


@exporter(*_PLAIN)
def plain(writer: Writer, node: Node) -> None:
    """An op without attributes."""
    writer.emit(_PLAIN[node.op], writer.inputs(node), node.outputs, node.name)


@exporter(*_WITH_ATTRIBUTES)
def with_attributes(writer: Writer, node: Node) -> None:
    """An op with attributes; truth values are numbers in ONNX."""
    op, (name, listed) = writer.op(node, Op), _WITH_ATTRIBUTES[node.op]
    attrs: dict[str, object] = {}
    for theirs, ours in attribute_names(listed):
        value = getattr(op, ours)
        attrs[theirs] = int(value) if isinstance(value, bool) else value
    writer.emit(name, writer.inputs(node), node.outputs, node.name, **attrs)
