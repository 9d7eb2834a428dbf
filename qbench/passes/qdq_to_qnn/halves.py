"""Products of data of 16 bits that a file has as two of bytes: what they stand for."""

import dataclasses

import numpy as np

from qbench.ir.graph import Node
from qbench.ir.op import Op, is_op
from qbench.ir.qparams import QParams
from qbench.ops.float.dense import BiasAdd, Dense
from qbench.ops.float.elementwise import Add, Subtract
from qbench.ops.integer.products import IntegerDense
from qbench.ops.qnn.border import Dequantize, Quantize
from qbench.passes.canonicalize.rule import scalar
from qbench.passes.rewrite import Rewriter
from qbench.quant.halves import below_upper, halves


def join_halves(rw: Rewriter, node: Node) -> bool:
    """(upper @ w + lower @ w) * steps is the product of 16-bit data and weights of these steps.

    So `qbench.exporters.onnx.halves` writes it; what is written otherwise stays what it is.
    """
    steps, together = rw.array(node.inputs[1]), _maker(rw, node.inputs[0], Add)
    if steps is None or together is None:
        return False
    upper, lower = (_product(rw, value) for value in together.inputs)
    if upper is None or lower is None:
        return False
    data, weight, same = _data(rw, upper, lower), rw.array(upper.inputs[1]), rw.array(lower.inputs[1])
    if data is None or weight is None or same is None or not np.array_equal(weight, same):
        return False
    stored = rw.constant(f"{node.output}.weight", weight)
    scales = tuple(map(float, steps.ravel()))
    per_row = QParams(scales, (0,) * len(scales), "int8", 0)
    rw.qparams[stored] = per_row if steps.ndim else QParams(scales[0], 0, "int8")
    real = rw.fresh(f"{stored}.dequantized")
    weights = Node(real, Dequantize.name, (stored,), (real,), sources=node.sources)
    rw.replace(node, (weights, dataclasses.replace(node, op=Dense.name, inputs=(data, real))))
    _take_bias(rw, node.output)
    return True


def _maker(rw: Rewriter, value: str, op: type[Op]) -> Node | None:
    """The node that makes a value, where it has this op."""
    node = rw.producer(value)
    return node if node is not None and is_op(node, op) else None


def _product(rw: Rewriter, value: str) -> Node | None:
    """The product of a byte and weights without a zero point that a value is, in units of the byte's scale."""
    real = _maker(rw, value, Dequantize)
    product = None if real is None else _maker(rw, real.inputs[0], IntegerDense)
    if real is None or product is None or product.inputs[0] not in rw.qparams:
        return None
    q, sums = rw.qparams[product.inputs[0]], rw.qparams[real.inputs[0]]
    zeros = rw.attr(product, "data_zero_point"), rw.attr(product, "weight_zero_point")
    return product if (q.scale, (q.zero_point, 0)) == (sums.scale, zeros) else None


def _data(rw: Rewriter, upper: Node, lower: Node) -> str | None:
    """The dequantized 16 bits whose bytes two products read."""
    bytes_ = upper.inputs[0], lower.inputs[0]
    makers = [_maker(rw, value, Quantize) for value in bytes_]
    taken = [None if maker is None else _maker(rw, maker.inputs[0], Subtract) for maker in makers]
    if taken[0] is None or taken[1] is None or taken[0].inputs[0] != taken[1].inputs[0]:
        return None
    data, (below, again) = taken[0].inputs[0], (each.inputs[1] for each in taken if each is not None)
    known, back = _maker(rw, data, Dequantize), _maker(rw, again, Dequantize)
    if known is None or back is None or back.inputs != (bytes_[0],):
        return None
    q = rw.qparams[known.inputs[0]]
    fits = q.dtype in ("int16", "uint16") and q.axis is None and scalar(rw, below) == below_upper(q)
    return data if fits and halves(q) == tuple(rw.qparams[value] for value in bytes_) else None


def _take_bias(rw: Rewriter, product: str) -> None:
    """A vector that alone is added to a layer's output is its bias."""
    reader, rank = rw.sole_consumer(product), rw.types[product].rank
    if reader is None or not is_op(reader, Add) or reader.inputs[0] != product:
        return
    vector = rw.types[reader.inputs[1]]
    if vector.shape == rw.types[product].shape[-1:]:
        rw.update(reader, op=BiasAdd.name, attrs=BiasAdd.given(axis=rank - 1))
