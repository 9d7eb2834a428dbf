"""What a config says of nodes: which stay in float, and how each rounds."""

from __future__ import annotations

from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.quant.config import QuantConfig
from qbench.quant.rounding import Rounding

__all__ = ["excluded_nodes", "included_nodes", "node_roundings"]


def excluded_nodes(graph: Graph, config: QuantConfig) -> FrozenMap[str, str]:
    """The nodes of a prepared graph that a config keeps in float, each with the reason."""
    return FrozenMap({name: reason for name, reason in _decided(graph, config).items() if reason})


def included_nodes(graph: Graph, config: QuantConfig) -> frozenset[str]:
    """The nodes that a config takes out of float: no default keeps them there."""
    return frozenset(name for name, reason in _decided(graph, config).items() if not reason)


def _decided(graph: Graph, config: QuantConfig) -> dict[str, str]:
    """Why a node stays in float; empty where a rule or an override says that it does not."""
    found: dict[str, str] = {}
    for node in graph.nodes:
        for number, rule in enumerate(config.rules):
            if rule.keep_float is not None and rule.matches(node.op, _names(node)):
                found[node.name] = f"excluded by rule {number}" if rule.keep_float else ""
        layer = config.layers.get(node.name)
        if layer is not None and layer.keep_float is not None:
            found[node.name] = "excluded by the user" if layer.keep_float else ""
    return found


def node_roundings(graph: Graph, config: QuantConfig) -> FrozenMap[str, Rounding]:
    """The nodes of a prepared graph whose rounding a rule or an override names."""
    found: dict[str, Rounding] = {}
    for node in graph.nodes:
        rounding = None
        for rule in config.rules:
            if rule.rounding is not None and rule.matches(node.op, _names(node)):
                rounding = rule.rounding
        layer = config.layers.get(node.name)
        if layer is not None and layer.rounding is not None:
            rounding = layer.rounding
        if rounding is not None:
            found[node.name] = rounding
    return FrozenMap(found)


def _names(node: Node) -> tuple[str, ...]:
    return (node.name, *node.outputs)
