"""Making graphs: order the nodes, drop what nothing uses, infer every type."""

import graphlib
from collections.abc import Iterable, Mapping

from qbench.errors import GraphError, shown
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.op import bind
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType

TAIL = "onnx tail"
"""The constant that holds what of an ONNX file lies behind the graph, where there is such: no node reads it, all passes
keep it, and the export puts it back. It is a whole ONNX model, with the file's outputs in ``metadata_props``."""


def build(
    name: str,
    inputs: Mapping[str, TensorType],
    outputs: Iterable[str],
    nodes: Iterable[Node],
    constants: Mapping[str, Constant] | None = None,
    qparams: Mapping[str, QParams] | None = None,
) -> Graph:
    """Make a graph from nodes in any order; types are inferred, what is unused dropped, but not :data:`TAIL`.

    Parameters
    ----------
    name
        The model's name.
    inputs
        Type of each input, by name, in the caller's order.
    outputs
        Names of the values that the graph gives.
    nodes
        Sorted so that each value is made before it is read; the given order is kept where that allows it.
    constants, qparams
        By value name.

    Raises
    ------
    GraphError
        A cycle, an undefined value, a name given twice, an unknown op, or types that do not fit.
    """
    ordered = _sorted(tuple(nodes), set(inputs) | set(constants or {}))
    outputs = tuple(outputs)
    used = {TAIL, *outputs} | {value for node in ordered for value in node.inputs}
    kept = {key: value for key, value in (constants or {}).items() if key in used}
    types = dict(inputs) | {key: value.type for key, value in kept.items()}
    qparams = qparams or {}
    for node in ordered:
        try:
            inferred = bind(node, qparams).infer_all(tuple([types[value] for value in node.inputs]))
        except GraphError as error:
            seen = ", ".join(f"{shown(value)}: {types[value]}" for value in node.inputs)
            error.add_note(
                f"at node {shown(node.name)}: {node.op}({seen}) from source {', '.join(map(shown, node.sources))}"
            )
            raise
        if len(inferred) != len(node.outputs):
            raise GraphError(
                f"node {shown(node.name)}: {node.op} makes {len(inferred)} values, not {len(node.outputs)}"
            )
        types.update(zip(node.outputs, inferred, strict=True))
    for value in outputs:
        if value not in types:
            raise GraphError(f"graph output {shown(value)} is made by no node")
    return Graph(
        name=name,
        inputs=tuple(inputs),
        outputs=outputs,
        nodes=ordered,
        constants=FrozenMap(kept),
        types=FrozenMap(types),
        qparams=FrozenMap({key: value for key, value in qparams.items() if key in types}),
    )


def rebuild(
    graph: Graph,
    *,
    nodes: Iterable[Node] | None = None,
    constants: Mapping[str, Constant] | None = None,
    qparams: Mapping[str, QParams] | None = None,
    outputs: Iterable[str] | None = None,
) -> Graph:
    """The same graph with other nodes, constants, qparams or outputs: how passes return their result."""
    return build(
        graph.name,
        graph.input_types(),
        graph.outputs if outputs is None else outputs,
        graph.nodes if nodes is None else nodes,
        graph.constants if constants is None else constants,
        graph.qparams if qparams is None else qparams,
    )


def _sorted(nodes: tuple[Node, ...], given: set[str]) -> tuple[Node, ...]:
    makers: dict[str, Node] = {}
    names: set[str] = set()
    for node in nodes:
        if node.name in names:
            raise GraphError(f"two nodes are called {shown(node.name)}")
        names.add(node.name)
        for value in node.outputs:
            if value in makers or value in given:
                raise GraphError(f"value {shown(value)} is defined twice, the second time by node {shown(node.name)}")
            makers[value] = node
    for node in nodes:
        for value in node.inputs:
            if value not in makers and value not in given:
                raise GraphError(f"node {shown(node.name)} reads {shown(value)}, which nothing defines")
    if _in_order(nodes, given):
        return nodes
    by_name = {node.name: node for node in nodes}
    reads = {node.name: [makers[value].name for value in node.inputs if value in makers] for node in nodes}
    try:
        return tuple(by_name[name] for name in graphlib.TopologicalSorter(reads).static_order())
    except graphlib.CycleError as error:
        circle = " -> ".join(map(shown, error.args[1]))
        raise GraphError(f"the graph has a cycle through {circle}") from None


def _in_order(nodes: tuple[Node, ...], given: set[str]) -> bool:
    seen = set(given)
    for node in nodes:
        if not seen.issuperset(node.inputs):
            return False
        seen.update(node.outputs)
    return True
