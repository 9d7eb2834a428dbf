"""Products of data of 16 bits with weights of 8, as two products of bytes, which add up to the same.

onnxruntime has none of 16 bits. Between QuantizeLinear and DequantizeLinear it would multiply real numbers, or, as its
MatMulNBits, round the data to 8 bits first.
"""

import numpy as np

from qbench.exporters.onnx.bias import bias_input
from qbench.exporters.onnx.writer import Writer
from qbench.ir.graph import Node
from qbench.ir.qparams import QParams
from qbench.quant.halves import below_upper, halves

_LARGEST = 1e36
"""Scale of data: that of the upper byte, too, is a number."""


def has_halves(writer: Writer, node: Node) -> bool:
    """Whether a dense layer's data have 16 bits, and its weights 8 without a zero point."""
    data, weight = (writer.qparams.get(value) for value in node.inputs)
    if data is None or weight is None or data.dtype not in ("int16", "uint16") or data.scales[0] > _LARGEST:
        return False
    return weight.dtype == "int8" and weight.block is None and not any(weight.zero_points)


def product_of_halves(writer: Writer, node: Node, bias: Node | None) -> None:
    """The sums of both halves as real numbers of the data's scale, times the scale of each row of the weights.

    Asked for exact sums, onnxruntime makes int8 constants unsigned, and fails where two nodes read the same one: one
    product reads it as what a Reshape makes, which becomes a constant of its own there.
    """
    data, weight = node.inputs
    name, stored = writer.weight(node)
    matrix = writer.store(name, np.ascontiguousarray(stored.T))
    steps = writer.store(f"{name}.scale", np.asarray(writer.qparams[weight].scale, np.float32))
    parts = _parts(writer, node, writer.qparams[data])
    again = writer.step(node, "Reshape", [matrix, writer.integers(node, "weight.shape", stored.T.shape)])
    sums = list[str]()
    for weights, (integers, scale, zero_point) in zip((matrix, again), parts, strict=True):
        product = writer.step(node, "MatMulInteger", [integers, weights, zero_point])
        sums.append(writer.step(node, "DequantizeLinear", [product, scale]))
    made = node.output if bias is None else writer.fresh(f"{bias.output}.product")
    writer.emit("Mul", [writer.step(node, "Add", sums), steps], [made], node.name)
    if bias is not None:
        writer.emit("Add", [made, bias_input(writer, bias, node)], bias.outputs, bias.name)


def _parts(writer: Writer, node: Node, q: QParams) -> list[tuple[str, str, str]]:
    """Integers, scale and zero point of the upper half of the data, and of the lower; once for all layers."""
    data = node.inputs[0]
    if data not in writer.halves:
        x, (upper, lower) = writer.read(data), halves(q)
        shifted = writer.step(node, "Sub", [x, writer.number(node, "below_upper", below_upper(q))])
        first = _rounded(writer, node, shifted, "upper", upper)
        rest = writer.step(node, "Sub", [x, writer.step(node, "DequantizeLinear", first)])
        writer.halves[data] = [first, _rounded(writer, node, rest, "lower", lower)]
    return writer.halves[data]


def _rounded(writer: Writer, node: Node, x: str, name: str, q: QParams) -> tuple[str, str, str]:
    data = node.inputs[0]
    scale = writer.store(f"{data}.{name}.scale", np.asarray(q.scale, np.float32))
    zero_point = writer.store(f"{data}.{name}.zero_point", np.asarray(q.zero_point, np.uint8))
    return writer.step(node, "QuantizeLinear", [x, scale, zero_point]), scale, zero_point
