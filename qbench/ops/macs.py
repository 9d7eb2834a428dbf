"""How much work a node is."""

from __future__ import annotations

import math

from qbench.ir.graph import Graph, Node
from qbench.ir.op import OPS, QuantRule, bind
from qbench.ir.types import dim_factors, numel

__all__ = ["macs"]

_INTEGER = frozenset({"integer.conv2d", "integer.dense", "integer.batch_matmul"})


def macs(graph: Graph, node: Node) -> int:
    """Multiply-accumulates of a sum of products per sample (per batch where that is fixed); 0 for other ops.

    Parameters
    ----------
    graph
        A float graph, or an integer graph.
    node
        One of its nodes.
    """
    if OPS[node.op].rule != QuantRule.MAC and node.op not in _INTEGER:
        return 0
    data, weight = (graph.types[name].shape for name in node.inputs[:2])
    made = numel(graph.types[node.output].shape)
    if node.op.endswith(".batch_matmul"):
        depth = data[-2] if getattr(bind(node), "transpose_lhs", False) else data[-1]
        return made * dim_factors(depth)[0]
    return made * math.prod(dim_factors(dim)[0] for dim in weight[1:])
