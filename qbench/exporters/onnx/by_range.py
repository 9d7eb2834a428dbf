"""Products of data that are quantized at run time: DynamicQuantizeLinear, MatMulInteger, Cast and Mul.

ONNX takes one range for all that a run is fed, here each sample has its own: the same where samples come alone.
"""

import numpy as np

from qbench.exporters.onnx.writer import Writer, exporter
from qbench.ir.graph import Node


@exporter("qnn.dynamic_fake_quantize")
def dynamic_quantize_linear(writer: Writer, node: Node) -> None:
    """Integers, scale and zero point, once for all layers that read them."""
    writer.emit("DynamicQuantizeLinear", writer.inputs(node), _parts(node.output), node.name)


def matmul_integer(writer: Writer, node: Node, bias: Node | None) -> None:
    """The sums of a dense layer as real numbers, and its bias."""
    data, weight = node.inputs
    integers, scale, zero_point = _parts(data)
    (name, stored), q = writer.weight(node), writer.qparams[weight]
    centred = (stored.astype(np.int64) - q.zero_point_array(stored.shape)).astype(np.int8)
    matrix = writer.store(name, np.ascontiguousarray(centred.T))
    steps = writer.store(f"{name}.scale", np.resize(np.asarray(q.scales, np.float32), len(centred)))
    sums = writer.step(node, "MatMulInteger", [integers, matrix, zero_point])
    scales = writer.step(node, "Mul", [scale, steps])
    made = node.output if bias is None else writer.fresh(f"{bias.output}.product")
    writer.emit("Mul", [writer.step(node, "Cast", [sums], to=1), scales], [made], node.name)
    if bias is not None:
        writer.emit("Add", [made, writer.read(bias.inputs[1])], bias.outputs, bias.name)


def _parts(value: str) -> list[str]:
    return [f"{value}.{part}" for part in ("integers", "scale", "zero_point")]
