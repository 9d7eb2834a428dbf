"""Quantize and dequantize around float ops to ops on integers ("fake-quantize to integer")."""

from dataclasses import dataclass
from typing import ClassVar

from qbench.forms import Arithmetic, NoForm, form_of
from qbench.ir.dtypes import is_float
from qbench.ir.graph import Graph, Node
from qbench.ops.float.elementwise import Multiply
from qbench.ops.float.logic import Where
from qbench.passes.canonicalize.rule import apply_rules, by_op
from qbench.passes.canonicalize.softmax import guarded_integers_to_themselves, guarded_softmax_to_safe
from qbench.passes.dead_code import DeadCodePass
from qbench.passes.qdq_to_qnn.halves import join_halves
from qbench.passes.qdq_to_qnn.match import integers_behind, match
from qbench.passes.qdq_to_qnn.place import place
from qbench.passes.rewrite import Rewriter
from qbench.quant.semantics import Semantics

_FIRST = by_op({guarded_softmax_to_safe: (Where,), guarded_integers_to_themselves: (Where,), join_halves: (Multiply,)})
"""What is one op, written as several; and guards where there is nothing to guard against."""


@dataclass(frozen=True)
class QdqToQnnPass:
    """Turn what is written as dequantize, float op, quantize into ops on the integers themselves.

    A node stays float where its operands or its result are real numbers, or where no integer form is known; it says why
    in `Node.reason`.

    Parameters
    ----------
    semantics
        Whose arithmetic the integers get.
    """

    name: ClassVar[str] = "qdq-to-qnn"
    semantics: Semantics = "onnx"

    def __call__(self, graph: Graph) -> Graph:
        rw = Rewriter(graph)
        if not any(node.op in ("qnn.dequantize", "qnn.quantize") for node in graph.nodes):
            return graph
        apply_rules(rw, _FIRST)
        _merge_equal_quantizes(rw)
        arithmetic = Arithmetic(self.semantics)
        for name in [node.name for node in rw]:
            node = rw.find(name)
            if node is not None:
                _convert(rw, node, arithmetic)
        return DeadCodePass()(rw.finish())


def _convert(rw: Rewriter, node: Node, arithmetic: Arithmetic) -> None:
    if node.op == "qnn.quantize" and _is_canceled(rw, node):
        return
    try:
        found = match(rw, node, arithmetic)
        place(rw, found, form_of(found.site))
    except NoForm as why:
        if not node.op.startswith("qnn.") and any(is_float(rw.types[value].dtype) for value in node.outputs):
            rw.update(node, reason=str(why))


def _is_canceled(rw: Rewriter, node: Node) -> bool:
    """Whether a quantize of what was dequantized alike could be taken out."""
    source = integers_behind(rw, node.inputs[0])
    return source is not None and rw.qparams[source] == rw.qparams[node.output] and rw.bypass(node, source)


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
