"""Where the largest lies, and elements picked by their numbers."""

import numpy as np

from qbench.exporters.tflite.writer import Inexpressible, Writer, closed, exporter
from qbench.ir.graph import Node

_EXTREMES = {"argmax": ("ARG_MAX", "ArgMaxOptions"), "argmin": ("ARG_MIN", "ArgMinOptions")}


@exporter(*_EXTREMES)
def extreme(writer: Writer, node: Node) -> None:
    """ARG_MAX and ARG_MIN; RESHAPE where the axis stays."""
    op, data = writer.op(node), node.inputs[0]
    code, table = _EXTREMES[node.op]
    axis = op.axis % writer.rank(data)
    inputs = [writer.read(data), writer.constant("axis", np.asarray([axis], np.int32))]
    made = writer.make(node.output)
    if not op.keepdims:
        writer.emit(code, inputs, [made], table, output_type="int64")
        return
    shape = writer.tensors[made].shape
    place = writer.scratch(f"{node.name}.place", made, None, shape=shape[:axis] + shape[axis + 1 :])
    writer.emit(code, inputs, [place], table, output_type="int64")
    whole = writer.integers(writer.graph.types[node.output].shape)
    writer.emit("RESHAPE", [place, whole], [made], "ReshapeOptions", new_shape=shape)


@exporter("topk")
def topk(writer: Writer, node: Node) -> None:
    """TOPK_V2 along the last axis; it counts in 32 bits."""
    op, data = writer.op(node), node.inputs[0]
    if not op.largest or op.axis % writer.rank(data) != writer.rank(data) - 1:
        raise Inexpressible("the smallest ones, or along another axis than the last")
    count = writer.constant("count", np.asarray(*closed(op.k), dtype=np.int32))
    values, places = (writer.make(value) for value in node.outputs)
    narrow = writer.scratch(f"{node.name}.places", places, None, "int32")
    writer.emit("TOPK_V2", [writer.read(data), count], [values, narrow], "TopKV2Options")
    writer.emit("CAST", [narrow], [places], "CastOptions")


@exporter("gather_nd")
def gather_nd(writer: Writer, node: Node) -> None:
    """GATHER_ND."""
    if writer.op(node).batch_dims:
        raise Inexpressible("elements that are picked in each sample apart")
    writer.write(node, "GATHER_ND", "GatherNdOptions", layout="plain")


@exporter("cumsum")
def cumsum(writer: Writer, node: Node) -> None:
    """CUMSUM along one axis."""
    op, data = writer.op(node), node.inputs[0]
    if data in writer.graph.qparams:
        raise Inexpressible("integers that are summed as they stand")
    inputs = [writer.read(data), writer.constant("axis", np.asarray(op.axis % writer.rank(data), np.int32))]
    options = {"exclusive": op.exclusive, "reverse": op.reverse}
    writer.emit("CUMSUM", inputs, [writer.make(node.output)], "CumsumOptions", **options)


@exporter("broadcast_to")
def broadcast_to(writer: Writer, node: Node) -> None:
    """BROADCAST_TO a known shape."""
    inputs = [writer.read(node.inputs[0]), writer.integers(writer.op(node).shape)]
    writer.emit("BROADCAST_TO", inputs, [writer.make(node.output)], "BroadcastToOptions")
