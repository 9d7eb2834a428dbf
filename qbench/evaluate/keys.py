"""What a value depends on, as one hash: equal keys mean equal arrays, whatever graph and pass made them."""

import hashlib
from collections.abc import Mapping
from functools import partial

from qbench.ir.graph import Graph, Node
from qbench.ir.memo import Memo
from qbench.ir.qparams import QParams


def value_keys(graph: Graph, memo: Memo | None = None, known_as: Mapping[str, str] | None = None) -> dict[str, str]:
    """A Merkle hash of each value of the graph: its op, attributes, qparams and, in turn, its inputs.

    Names play no part (but those of graph inputs), so a value keeps its key through any pass that keeps its meaning.
    The data is not in the key: beside it, a cache needs the digest of the data that is fed.

    Parameters
    ----------
    graph
        Any graph.
    memo
        Of earlier calls: long lists of scales are not put into words again.
    known_as
        By value name: what nodes that read the value take for its key, in place of what it is made of.

    Returns
    -------
    dict
        By value name, for inputs, constants and node outputs.
    """
    memo = memo or Memo()
    if known_as is None:
        place = "value keys", bool(graph.qparams)
        return memo.recall(place, (graph,), partial(_value_keys, graph, memo, {}))
    return _value_keys(graph, memo, known_as)


def _value_keys(graph: Graph, memo: Memo, known_as: Mapping[str, str]) -> dict[str, str]:
    keys = {name: _hash(*_words("input", name, str(graph.types[name]))) for name in graph.inputs}
    keys |= {name: constant.digest for name, constant in graph.constants.items()}
    for node in graph.nodes:
        qparams = tuple(map(graph.qparams.get, (*node.inputs, *node.outputs)))
        read = tuple([known_as.get(name) or keys[name] for name in node.inputs])
        # a float graph and its integer graph share names
        place = "key", node.name, node.op, qparams[-1] is None, not known_as
        keys |= memo.recall(place, (node, qparams, read), partial(_made, node, qparams, read, memo))
    return keys


def _made(node: Node, qparams: tuple[QParams | None, ...], read: tuple[str, ...], memo: Memo) -> dict[str, str]:
    place = "meaning", node.name, node.op, qparams[-1] is None
    meaning = memo.recall(place, (node, qparams), partial(_meaning, node, qparams))
    common = _hash(meaning, *_words(*read))
    return {name: f"{common}.{index}" for index, name in enumerate(node.outputs)}


def _meaning(node: Node, qparams: tuple[QParams | None, ...]) -> bytes:
    (meaning,) = _words(f"{node.op} {sorted(node.attrs.items())} {[*qparams]}")
    return meaning


def _words(*texts: str) -> list[bytes]:
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    return [len(data).to_bytes(8, "little") + data for data in encoded]


def _hash(*words: bytes) -> str:
    return hashlib.sha256(b"".join(words)).hexdigest()
