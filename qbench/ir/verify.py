"""Every rule of the IR, checked on a finished graph without trusting the code that built it."""

from collections.abc import Iterable

from qbench.errors import GraphError, nearest, shown
from qbench.ir.dtypes import is_float
from qbench.ir.graph import Graph, Node, print_node
from qbench.ir.op import bind
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType

_AROUND = 3


def verify(graph: Graph) -> None:
    """Check that the graph is valid.

    Each value is defined once and before it is read, node names are unique, ops and attributes are as declared, types
    are those that the ops infer, constants have the types they claim, qparams fit the values they describe.

    Raises
    ------
    GraphError
        The first broken rule; where it concerns a node, a note shows the IR around it.
    """
    _check_given(graph)
    defined = {*graph.inputs, *graph.constants}
    names: set[str] = set()
    for index, node in enumerate(graph.nodes):
        try:
            if node.name in names:
                raise GraphError(f"two nodes are called {shown(node.name)}")
            names.add(node.name)
            _check_node(graph, node, defined)
        except GraphError as error:
            error.add_note(_around(graph, index))
            raise
        defined.update(node.outputs)
    for value in graph.outputs:
        if value not in defined:
            raise GraphError(f"graph output {shown(value)} is defined by nothing{nearest(value, defined)}")
    _check_known("types", graph.types, defined)
    _check_known("qparams", graph.qparams, defined)
    for value, qparams in graph.qparams.items():
        _check_qparams(value, graph.types[value], qparams)


def _check_given(graph: Graph) -> None:
    if len(set(graph.inputs)) < len(graph.inputs):
        raise GraphError("two inputs have the same name")
    for value in graph.inputs:
        if value in graph.constants:
            raise GraphError(f"{shown(value)} is an input and a constant")
        if value not in graph.types:
            raise GraphError(f"input {shown(value)} has no type")
    for value, constant in graph.constants.items():
        if graph.types.get(value) != constant.type:
            raise GraphError(f"constant {shown(value)} is {constant.type}, but its type says {graph.types.get(value)}")


def _check_node(graph: Graph, node: Node, defined: set[str]) -> None:
    types = graph.types
    if not defined.issuperset(node.inputs):
        value = next(value for value in node.inputs if value not in defined)
        raise _wrong(node, f" reads {shown(value)} before it is defined{nearest(value, defined)}")
    for index, value in enumerate(node.outputs):
        if value in defined or value in node.outputs[:index]:
            raise _wrong(node, f" defines {shown(value)}, which is defined already")
    inferred = bind(node, graph.qparams).infer_all(tuple([types[value] for value in node.inputs]))
    if len(inferred) != len(node.outputs):
        raise _wrong(node, f": {node.op} makes {len(inferred)} values, not {len(node.outputs)}")
    for value, kind in zip(node.outputs, inferred, strict=True):
        if types.get(value) != kind:
            raise _wrong(node, f": {shown(value)} is {kind}, but its type says {types.get(value)}")


def _wrong(node: Node, complaint: str) -> GraphError:
    return GraphError(f"node {shown(node.name)}{complaint}")


def _check_known(what: str, names: Iterable[str], defined: set[str]) -> None:
    if not defined.issuperset(names):
        for value in (value for value in names if value not in defined):
            raise GraphError(f"{what} of {shown(value)}, which nothing defines{nearest(value, defined)}")


def _check_qparams(value: str, kind: TensorType, qparams: QParams) -> None:
    if qparams.dtype != kind.dtype and not is_float(kind.dtype):  # a float value with qparams is fake-quantized
        raise GraphError(f"{shown(value)} is {kind}, but its qparams are for {qparams.dtype}")
    if qparams.axis is None:
        return
    if qparams.axis >= kind.rank:
        raise GraphError(f"the qparams of {shown(value)} run along axis {qparams.axis}, but it is {kind}")
    if not qparams.fits(kind.shape):
        blocks = "" if qparams.block is None else f" for blocks of {qparams.block}"
        many = f"{len(qparams.scales)} scales along axis {qparams.axis}{blocks}"
        raise GraphError(f"{shown(value)} is {kind}, but its qparams have {many}")


def _around(graph: Graph, index: int) -> str:
    first = max(0, index - _AROUND)
    lines = [print_node(graph, node) for node in graph.nodes[first : index + _AROUND + 1]]
    return "\n".join(f"{'>' if first + i == index else ' '} {line}" for i, line in enumerate(lines))
