"""Ops that ONNX has as well, with the same operands."""

from qbench.exporters.onnx.writer import Writer, exporter
from qbench.ir.graph import Node
from qbench.ir.op import Op

_PLAIN = {
    "abs": "Abs",
    "acos": "Acos",
    "acosh": "Acosh",
    "add": "Add",
    "asin": "Asin",
    "asinh": "Asinh",
    "atan": "Atan",
    "atanh": "Atanh",
    "ceil": "Ceil",
    "cos": "Cos",
    "cosh": "Cosh",
    "divide": "Div",
    "equal": "Equal",
    "erf": "Erf",
    "exp": "Exp",
    "floor": "Floor",
    "greater": "Greater",
    "greater_equal": "GreaterOrEqual",
    "integer.matmul_dynamic": "MatMulInteger",
    "is_nan": "IsNaN",
    "less": "Less",
    "less_equal": "LessOrEqual",
    "log": "Log",
    "logical_and": "And",
    "logical_not": "Not",
    "logical_or": "Or",
    "maximum": "Max",
    "minimum": "Min",
    "multiply": "Mul",
    "negative": "Neg",
    "nn.global_avg_pool2d": "GlobalAveragePool",
    "nn.global_max_pool2d": "GlobalMaxPool",
    "nn.hard_swish": "HardSwish",
    "nn.softplus": "Softplus",
    "power": "Pow",
    "qnn.dynamic_quantize": "DynamicQuantizeLinear",
    "reciprocal": "Reciprocal",
    "round": "Round",
    "sigmoid": "Sigmoid",
    "sign": "Sign",
    "sin": "Sin",
    "sinh": "Sinh",
    "sqrt": "Sqrt",
    "subtract": "Sub",
    "tan": "Tan",
    "tanh": "Tanh",
    "where": "Where",
}
"""Their names in ONNX, of ops that have no attributes there."""

_WITH_ATTRIBUTES = {
    "argmax": ("ArgMax", "axis keepdims"),
    "argmin": ("ArgMin", "axis keepdims"),
    "concatenate": ("Concat", "axis"),
    "gather_nd": ("GatherND", "batch_dims"),
    "image.grid_sample": ("GridSample", "mode=method padding_mode=padding align_corners"),
    "integer.conv2d_dynamic": ("ConvInteger", "strides pads=padding dilations=dilation group=groups"),
    "mod": ("Mod", "fmod"),
    "nn.depth_to_space": ("DepthToSpace", "blocksize=block_size mode"),
    "nn.elu": ("Elu", "alpha"),
    "nn.gelu": ("Gelu", "approximate"),
    "nn.hard_sigmoid": ("HardSigmoid", "alpha beta"),
    "nn.instance_norm": ("InstanceNormalization", "epsilon"),
    "nn.layer_norm": ("LayerNormalization", "axis epsilon"),
    "nn.leaky_relu": ("LeakyRelu", "alpha"),
    "nn.log_softmax": ("LogSoftmax", "axis"),
    "nn.lrn": ("LRN", "size alpha beta bias"),
    "nn.space_to_depth": ("SpaceToDepth", "blocksize=block_size"),
    "scatter_elements": ("ScatterElements", "axis reduction"),
    "scatter_nd": ("ScatterND", "reduction"),
    "take": ("Gather", "axis"),
    "take_along_axis": ("GatherElements", "axis"),
}
"""Their names in ONNX, and their attributes there: with ours where it has another name."""


@exporter(*_PLAIN)
def plain(writer: Writer, node: Node) -> None:
    """An op without attributes."""
    writer.emit(_PLAIN[node.op], writer.inputs(node), node.outputs, node.name)


@exporter(*_WITH_ATTRIBUTES)
def with_attributes(writer: Writer, node: Node) -> None:
    """An op with attributes; truth values are numbers in ONNX."""
    op, (name, listed) = writer.op(node, Op), _WITH_ATTRIBUTES[node.op]
    attrs: dict[str, object] = {}
    for theirs, _, ours in (each.partition("=") for each in listed.split()):
        value = getattr(op, ours or theirs)
        attrs[theirs] = int(value) if isinstance(value, bool) else value
    writer.emit(name, writer.inputs(node), node.outputs, node.name, **attrs)
