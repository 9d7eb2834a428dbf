"""The bias that a layer takes with it, as integers where the layer's operands are integers."""

import numpy as np

from qbench.errors import ExportError, shown
from qbench.exporters.onnx.writer import Writer
from qbench.forms.sums import bias_units, quantized_bias
from qbench.ir.graph import Graph, Node
from qbench.ir.op import bind, is_op
from qbench.ir.qparams import QParams
from qbench.ops.float.dense import BiasAdd, Dense

_LARGEST = 2**31 - 1


def bias_after(graph: Graph, node: Node) -> Node | None:
    """The bias_add that follows a layer alone and adds a constant to each channel; None where there is none."""
    layer = bind(node)
    if not layer.has_weight() or node.output in graph.outputs or len(graph.consumers[node.output]) != 1:
        return None
    follower, rank = graph.consumers[node.output][0], graph.types[node.output].rank
    if not is_op(follower, BiasAdd) or follower.inputs[0] != node.output or follower.inputs[1] not in graph.constants:
        return None
    if rank != 2 and is_op(node, Dense) and node.inputs[1] not in graph.qparams:
        return None  # in float, a MatMul and an Add, with both names
    axis = bind(follower).channel_axis_of("output", rank)
    return follower if axis == layer.channel_axis_of("output", rank) else None


def bias_input(writer: Writer, bias: Node, layer: Node) -> str:
    """What the layer reads as its bias: int32 with a DequantizeLinear at the product of the scales, or reals.

    Raises
    ------
    ExportError
        A bias beyond int32. (Real numbers in its place would not help: runtimes quantize them, and let them saturate.)
    """
    data, weight = (writer.qparams.get(value) for value in layer.inputs)
    if data is None or weight is None:
        return writer.read(bias.inputs[1])
    return _integers(writer, bias, bias_units(data, weight), (-1,))


def column_input(writer: Writer, node: Node, shape: tuple[int, ...]) -> str:
    """What an Add reads in place of a bias_add's constant, in the units that integer execution rounds it to."""
    name, sums = node.inputs[1], None if node.reason else _units(writer, node.inputs[0])
    if sums is None:
        return writer.store(name, writer.graph.constants[name].array.reshape(shape))
    return _integers(writer, node, sums, shape)


def _units(writer: Writer, value: str) -> QParams | None:
    """qparams of what a bias is added to; None where that is real."""
    if value in writer.qparams:
        return bias_units(writer.qparams[value])
    producer = writer.graph.producers.get(value)
    operands = [] if producer is None else [writer.qparams.get(operand) for operand in producer.inputs]
    if producer is None or producer.reason or len(operands) != 2 or None in operands:
        return None
    return bias_units(*(q for q in operands if q is not None))


def _integers(writer: Writer, node: Node, sums: QParams, shape: tuple[int, ...]) -> str:
    name = node.inputs[1]
    integers = quantized_bias(writer.graph.constants[name].array, sums)
    if np.abs(integers).max(initial=0) > _LARGEST:
        channel = int(np.abs(integers).argmax())
        raise ExportError(
            f"node {shown(node.name)}: the bias of channel {channel}, in units of the scales of data and weight, is "
            f"{integers[channel]}, which does not fit into int32; give the weight a larger scale"
        )
    return writer.dequantized(name, integers.astype(np.int32).reshape(shape), sums)
