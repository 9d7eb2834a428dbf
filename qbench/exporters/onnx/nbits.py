"""Weights of few bits as onnxruntime's own op takes them: com.microsoft.MatMulNBits."""

import numpy as np

from qbench.exporters.onnx.writer import Writer
from qbench.ir.bits import packed
from qbench.ir.graph import Node

DOMAIN = "com.microsoft"
_BLOCK = 32
"""For scales that have a channel each: they are repeated."""
_FLOAT32 = 1
"""The accuracy level at which data stay in float32."""


def packable(writer: Writer, weight: str) -> bool:
    """Whether the integers of a weight of a dense layer are of a type, and in blocks of a size, that the op takes."""
    q = writer.qparams[weight]
    block = q.block or _BLOCK
    return q.dtype in ("int4", "uint4", "int8", "uint8") and block >= 16 and not block & (block - 1)


def matmul_nbits(writer: Writer, node: Node, bias: Node | None) -> None:
    """A dense layer that reads its data in float32; the bias, where there is one, is added by a node of its own."""
    data, value = node.inputs
    (name, stored), q = writer.weight(node), writer.qparams[value]
    bits = 4 if q.dtype.endswith("4") else 8
    integers = stored.astype(np.int64) - (q.qmin if q.qmin < 0 else 0)
    (units, depth), block = integers.shape, q.block or _BLOCK
    blocks = -(-depth // block)
    padded = np.zeros((units, blocks * block), np.uint8)
    padded[:, :depth] = integers
    scales = np.broadcast_to(np.asarray(q.scales, np.float32).reshape(-1, blocks if q.block else 1), (units, blocks))
    zeros = np.asarray(q.zero_points, np.int64).reshape(-1, blocks if q.block else 1) - min(q.qmin, 0)
    inputs = [
        writer.read(data),
        writer.store(f"{name}.packed", packed(padded, bits).reshape(units, blocks, -1)),
        writer.store(f"{name}.scales", np.ascontiguousarray(scales).reshape(-1)),
    ]
    if (zeros != 2 ** (bits - 1)).any():
        table = np.broadcast_to(zeros, (units, blocks)).astype(np.uint8)
        inputs.append(writer.store(f"{name}.zero_points", packed(table, bits).reshape(-1)))
    product = node.output if bias is None else writer.fresh(f"{bias.output}.product")
    attrs = {"K": depth, "N": units, "bits": bits, "block_size": block, "accuracy_level": _FLOAT32}
    writer.emit("MatMulNBits", inputs, [product], node.name, domain=DOMAIN, **attrs)
    if bias is not None:
        writer.emit("Add", [product, writer.read(bias.inputs[1])], bias.outputs, bias.name)
