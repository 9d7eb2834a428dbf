"""Layers with weights, their biases, and normalizations."""

from qbench.exporters.onnx.bias import bias_after, bias_input, column_input
from qbench.exporters.onnx.by_range import matmul_integer
from qbench.exporters.onnx.halves import has_halves, product_of_halves
from qbench.exporters.onnx.nbits import matmul_nbits, packable
from qbench.exporters.onnx.sizes import sizes
from qbench.exporters.onnx.writer import Writer, exporter
from qbench.ir.graph import Node
from qbench.ops.float.conv import Conv2d, Conv2dTranspose
from qbench.ops.float.dense import BatchMatmul, BiasAdd
from qbench.ops.float.einsum import DENSE
from qbench.ops.float.norm import BatchNorm, L2Normalize, RMSNorm
from qbench.passes.annotate import has_range


@exporter("nn.conv2d", "nn.conv2d_transpose")
def convolution(writer: Writer, node: Node) -> None:
    """A convolution, transposed or not, together with the bias that follows it."""
    transposed = node.op == "nn.conv2d_transpose"
    op, bias = writer.op(node, Conv2dTranspose if transposed else Conv2d), bias_after(writer.graph, node)
    inputs = writer.inputs(node) + ([] if bias is None else [bias_input(writer, bias, node)])
    writer.emit(
        "ConvTranspose" if transposed else "Conv",
        inputs,
        (bias or node).outputs,
        node.name,
        strides=op.strides,
        pads=op.padding,
        dilations=op.dilation,
        group=op.groups,
        output_padding=op.output_padding if isinstance(op, Conv2dTranspose) else None,
        kernel_shape=writer.type(node.inputs[1]).shape[2:],
    )


@exporter("nn.dense")
def dense(writer: Writer, node: Node) -> None:
    """Gemm, since runtimes have integer kernels for it with its bias; MatMul in float where data is no matrix.

    A weight that is only stored never goes into a MatMul: onnxruntime takes that for leave to round its data to 8 bits.
    """
    data, weight = node.inputs
    shape, bias = writer.type(node.output).shape, bias_after(writer.graph, node)
    if has_range(writer.graph, node):
        matmul_integer(writer, node, bias)
        return
    if has_halves(writer, node):
        product_of_halves(writer, node, bias)
        return
    stored = weight in writer.qparams and bool(node.reason)
    if stored and writer.nbits and packable(writer, weight):
        matmul_nbits(writer, node, bias)
        return
    if len(shape) != 2 and stored:
        product = node.output if bias is None else writer.fresh(f"{bias.output}.product")
        writer.emit("Einsum", writer.inputs(node), [product], node.name, equation=DENSE)
        if bias is not None:
            writer.emit("Add", [product, writer.read(bias.inputs[1])], bias.outputs, bias.name)
        return
    if len(shape) != 2 and bias is None:
        turned = writer.parameter(weight, perm=(1, 0))
        if turned is None:
            turned = writer.step(node, "Transpose", [writer.read(weight)], perm=[1, 0])
        writer.emit("MatMul", [writer.read(data), turned], node.outputs, node.name)
        return
    last = bias or node
    inputs = writer.inputs(node) + ([] if bias is None else [bias_input(writer, bias, node)])
    if len(shape) == 2:
        writer.emit("Gemm", inputs, last.outputs, node.name, transB=1)
        return
    rows = sizes(writer, node, "rows", (-1, *writer.type(data).shape[-1:]))
    inputs[0] = writer.step(node, "Reshape", [inputs[0], rows])
    q = writer.qparams.get(data)
    if q is not None:  # right before the layer, as runtimes look for it
        flat, inputs[0] = inputs[0], writer.fresh(f"{inputs[0]}.q")
        writer.quantized(flat, inputs[0], q, data)
    product = writer.fresh(f"{last.output}.rows")
    writer.emit("Gemm", inputs, [product], node.name, transB=1)
    first = next((axis for axis, size in enumerate(shape) if isinstance(size, str)), len(shape))
    back = sizes(writer, node, "shape", [-1 if axis == first else size for axis, size in enumerate(shape)])
    writer.emit("Reshape", [product, back], last.outputs, last.name)


@exporter("nn.batch_matmul")
def batch_matmul(writer: Writer, node: Node) -> None:
    """MatMul, after transposing the last two axes where asked; integers are quantized again after that."""
    op = writer.op(node, BatchMatmul)
    operands: list[str] = []
    for value, name, turn in zip(node.inputs, writer.inputs(node), (op.transpose_lhs, op.transpose_rhs), strict=True):
        if turn:
            rank, q = writer.type(value).rank, writer.qparams.get(value)
            raw = writer.step(node, "Transpose", [name], perm=[*range(rank - 2), rank - 1, rank - 2])
            name = raw if q is None else writer.fresh(f"{raw}.q")
            if q is not None:
                writer.quantized(raw, name, q, raw)
        operands.append(name)
    writer.emit("MatMul", operands, node.outputs, node.name)


@exporter("nn.bias_add")
def bias_add(writer: Writer, node: Node) -> None:
    """A bias that no layer took with it: Add, with the vector shaped to broadcast along its axis."""
    data, bias = node.inputs
    rank = writer.type(data).rank
    shape = (-1, *[1] * (rank - 1 - writer.op(node, BiasAdd).axis % rank))
    if bias in writer.graph.constants:
        vector = column_input(writer, node, shape)
    else:
        wanted = writer.integers(node, "bias.shape", shape)
        vector = writer.step(node, "Reshape", [writer.read(bias), wanted])
    writer.emit("Add", [writer.read(data), vector], node.outputs, node.name)


@exporter("nn.batch_norm")
def batch_norm(writer: Writer, node: Node) -> None:
    """ONNX's channels are axis 1: others are moved there and back."""
    op, rank = writer.op(node, BatchNorm), writer.type(node.inputs[0]).rank
    axis = op.axis % rank
    data, *parameters = writer.inputs(node)
    if axis == 1:
        inputs = [data, *parameters]
        writer.emit("BatchNormalization", inputs, node.outputs, node.name, epsilon=op.epsilon)
        return
    there = [i for i in range(rank) if i != axis]
    there.insert(1, axis)
    back = [there.index(i) for i in range(rank)]
    moved = writer.step(node, "Transpose", [data], perm=there)
    normal = writer.fresh(f"{node.output}.BatchNormalization")
    writer.emit("BatchNormalization", [moved, *parameters], [normal], node.name, epsilon=op.epsilon)
    writer.emit("Transpose", [normal], node.outputs, writer.fresh(f"{node.name}.back"), perm=back)


@exporter("nn.l2_normalize")
def l2_normalize(writer: Writer, node: Node) -> None:
    """In parts, as exporters write it: LpNormalization has no epsilon."""
    op, data = writer.op(node, L2Normalize), writer.read(node.inputs[0])
    norm = writer.step(node, "ReduceL2", [data, writer.integers(node, "axes", [op.axis])])
    least = writer.step(node, "Max", [norm, writer.number(node, "epsilon", op.epsilon)])
    writer.emit("Div", [data, least], node.outputs, node.name)


@exporter("nn.rms_norm")
def rms_norm(writer: Writer, node: Node) -> None:
    """By the root of the mean square over `axis` and all axes after it: in parts, since opset 21 has no such op."""
    op, (data, gamma) = writer.op(node, RMSNorm), writer.inputs(node)
    rank = writer.type(node.inputs[0]).rank
    square = writer.step(node, "Mul", [data, data])
    axes = writer.integers(node, "axes", [*range(op.axis % rank, rank)])
    mean = writer.step(node, "ReduceMean", [square, axes])
    raised = writer.step(node, "Add", [mean, writer.number(node, "epsilon", op.epsilon)])
    normal = writer.step(node, "Div", [data, writer.step(node, "Sqrt", [raised])])
    writer.emit("Mul", [normal, gamma], node.outputs, node.name)
