"""What a value depends on, as one hash: equal keys mean equal arrays, whatever graph and pass made them."""

from __future__ import annotations

import hashlib

from qbench.ir.graph import Graph, Node

__all__ = ["value_keys"]


def value_keys(graph: Graph) -> dict[str, str]:
    """A Merkle hash of each value of the graph: its op, attributes, qparams and, in turn, its inputs.

    Names play no part (but those of graph inputs), so a value keeps its key through any pass that keeps its meaning.
    The data is not in the key: beside it, a cache needs the digest of the data that is fed.

    Returns
    -------
    dict
        By value name, for inputs, constants and node outputs.
    """
    keys = {name: _hash("input", name, str(graph.types[name])) for name in graph.inputs}
    keys |= {name: constant.digest for name, constant in graph.constants.items()}
    for node in graph.nodes:
        common = _hash(_meaning(graph, node), *(keys[name] for name in node.inputs))
        keys |= {name: f"{common}.{index}" for index, name in enumerate(node.outputs)}
    return keys


def _meaning(graph: Graph, node: Node) -> str:
    qparams = [graph.qparams.get(name) for name in (*node.inputs, *node.outputs)]
    return f"{node.op} {sorted(node.attrs.items())} {qparams}"


def _hash(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()
