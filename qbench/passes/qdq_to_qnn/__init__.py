"""Quantize and dequantize around float ops to ops on integers ("fake-quantize to integer")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qbench.ir.dtypes import is_float
from qbench.ir.graph import Graph, Node
from qbench.ir.op import OPS, QuantRule
from qbench.passes.dead_code import DeadCodePass
from qbench.passes.qdq_to_qnn.averages import average, average_pool
from qbench.passes.qdq_to_qnn.borders import cancel_or_requantize
from qbench.passes.qdq_to_qnn.elementwise import arithmetic, binary, extremum
from qbench.passes.qdq_to_qnn.joins import choose, join
from qbench.passes.qdq_to_qnn.moves import MOVES, argument, move
from qbench.passes.qdq_to_qnn.products import PRODUCTS, product
from qbench.passes.qdq_to_qnn.tables import clamp, softmax, table
from qbench.passes.qdq_to_qnn.work import Float, Pattern, Work
from qbench.passes.rewrite import Rewriter
from qbench.quant.semantics import Semantics

__all__ = ["QdqToQnnPass"]

PATTERNS: dict[str, Pattern] = {
    **dict.fromkeys(PRODUCTS, product),
    **dict.fromkeys(("add", "subtract", "multiply"), arithmetic),
    **dict.fromkeys(("maximum", "minimum"), extremum),
    **dict.fromkeys(("divide", "power"), binary),
    **dict.fromkeys(("mean", "nn.global_avg_pool2d"), average),
    **dict.fromkeys(MOVES, move),
    **dict.fromkeys(("argmax", "argmin"), argument),
    **dict.fromkeys(("clip", "nn.relu"), clamp),
    "concatenate": join,
    "nn.avg_pool2d": average_pool,
    "nn.softmax": softmax,
    "qnn.quantize": cancel_or_requantize,
    "where": choose,
}
"""What is tried at a node, by its op; functions of one element are tables."""


@dataclass(frozen=True)
class QdqToQnnPass:
    """Turn what is written as dequantize, float op, quantize into ops on the integers themselves.

    A node stays float where its operands or its result are real numbers, or where no integer form is known; it says why
    in `Node.reason`.

    Parameters
    ----------
    semantics
        Whose arithmetic the integers get.
    fused
        For ``onnx``: sums, products and softmax as the 8-bit kernels compute them that onnxruntime's default
        optimizations put in place of dequantize, op, quantize. Otherwise in float32, as without optimizations.
    """

    name: ClassVar[str] = "qdq-to-qnn"
    semantics: Semantics = "onnx"
    fused: bool = True

    def __call__(self, graph: Graph) -> Graph:
        rw = Rewriter(graph)
        work = Work(rw, self.semantics, self.fused)
        if not any(node.op in ("qnn.dequantize", "qnn.quantize") for node in graph.nodes):
            return graph
        _merge_equal_quantizes(rw)
        for name in [node.name for node in rw]:
            node = rw.find(name)
            if node is None:
                continue
            try:
                _pattern(node)(work, node)
            except Float as why:
                if not node.op.startswith("qnn.") and any(is_float(rw.types[value].dtype) for value in node.outputs):
                    rw.update(node, reason=str(why))
        return DeadCodePass()(rw.finish())


def _pattern(node: Node) -> Pattern:
    return PATTERNS.get(node.op) or (table if OPS[node.op].rule == QuantRule.TABLE else _no_pattern)


def _no_pattern(work: Work, node: Node) -> None:
    raise Float(OPS[node.op].float_reason)


def _merge_equal_quantizes(rw: Rewriter) -> None:
    """A tensor that is quantized twice with the same qparams is quantized once."""
    first: dict[object, Node] = {}
    for node in rw:
        if node.op != "qnn.quantize":
            continue
        known = first.setdefault((node.inputs, rw.qparams[node.output], node.attrs), node)
        if known is not node and node.output not in rw.outputs:
            rw.redirect(node.output, known.output)
            rw.remove(node)
