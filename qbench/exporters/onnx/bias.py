"""The bias that a layer takes with it, as integers where the layer's operands are integers."""

from __future__ import annotations

import numpy as np

from qbench.errors import ExportError, shown
from qbench.exporters.onnx.writer import Writer
from qbench.ir.graph import Graph, Node
from qbench.passes.accumulators import accumulator_qparams, quantized_bias

__all__ = ["bias_after", "bias_input"]

_AXES = {"nn.conv2d": 1, "nn.conv2d_transpose": 1, "nn.dense": 1}
_LARGEST = 2**31 - 1


def bias_after(graph: Graph, node: Node) -> Node | None:
    """The bias_add that follows a layer alone and adds a constant to each channel; None where there is none."""
    if node.op not in _AXES or node.output in graph.outputs or len(graph.consumers[node.output]) != 1:
        return None
    if node.op == "nn.dense" and graph.types[node.output].rank != 2:
        return None
    follower = graph.consumers[node.output][0]
    if follower.op != "nn.bias_add" or follower.inputs[0] != node.output or follower.inputs[1] not in graph.constants:
        return None
    rank = graph.types[node.output].rank
    axis = follower.attrs.get("axis", 1)
    return follower if isinstance(axis, int) and axis % rank == _AXES[node.op] else None


def bias_input(writer: Writer, bias: Node, layer: Node) -> str:
    """What the layer reads as its bias: int32 with a DequantizeLinear at the product of the scales, or reals.

    Raises
    ------
    ExportError
        A bias beyond int32. (Real numbers in its place would not help: runtimes quantize them, and let them saturate.)
    """
    name = bias.inputs[1]
    data, weight = (writer.qparams.get(value) for value in layer.inputs)
    if data is None or weight is None:
        return writer.read(name)
    sums = accumulator_qparams(data, weight, 0)
    integers = quantized_bias(writer.graph.constants[name].array, sums)
    if np.abs(integers).max(initial=0) > _LARGEST:
        channel = int(np.abs(integers).argmax())
        raise ExportError(
            f"layer {shown(layer.name)}: the bias of channel {channel}, in units of the scales of data and weight, is "
            f"{integers[channel]}, which does not fit into int32; give the weight a larger scale"
        )
    return writer.dequantized(name, integers.astype(np.int32), sums)
