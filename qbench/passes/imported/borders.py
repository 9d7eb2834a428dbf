"""Integer inputs and outputs of an imported graph, made real and back again."""

from functools import partial

from qbench.ir.build import build
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Attr, Graph, Node
from qbench.ir.names import claimed, fresh
from qbench.ir.op import is_op
from qbench.ops.qnn.border import Dequantize, Quantize
from qbench.quant.arithmetic import Ties

Borders = FrozenMap[str, str]
"""By the name of an input or output that was made real: the value inside that holds its integers."""


def real_borders(graph: Graph, ties: Ties) -> tuple[Graph, Borders]:
    """The graph with real inputs and outputs in place of quantized ones; the reals have their names.

    Parameters
    ----------
    graph
        An imported graph.
    ties
        How the quantize nodes at its inputs round.
    """
    new = partial(claimed, taken={*graph.types, *graph.by_name})
    inside: dict[str, str] = {}
    nodes: list[Node] = []

    for name in dict.fromkeys((*graph.inputs, *graph.outputs)):
        if name not in graph.qparams or name in graph.constants:
            continue
        inside[name] = new(f"{name}.quantized")
        if name in graph.inputs:
            attrs = FrozenMap[str, Attr]({"ties": ties} if ties != "even" else {})
            nodes.append(Node(new(f"{name}.quantize"), Quantize.name, (name,), (inside[name],), attrs))
        else:
            sources = graph.producers[name].sources
            nodes.append(Node(new(f"{name}.dequantize"), Dequantize.name, (inside[name],), (name,), sources=sources))
    if not inside:
        return graph, FrozenMap()
    inputs = {k: t.with_dtype("float32") if k in inside else t for k, t in graph.input_types().items()}
    qparams = {inside.get(value, value): q for value, q in graph.qparams.items()}
    nodes += [node.renamed(inside) for node in graph.nodes]
    return build(graph.name, inputs, graph.outputs, nodes, graph.constants, qparams), FrozenMap(inside)


def integer_borders(graph: Graph, borders: Borders) -> Graph:
    """The graph with integers as inputs and outputs again, but for outputs that float layers make now."""
    names: dict[str, str] = {}
    inputs, dropped = graph.input_types(), set[str]()
    qparams = dict(graph.qparams)
    for name, integers in borders.items():
        maker = graph.producers.get(integers if name in graph.inputs else name)
        if maker is None or not is_op(maker, Quantize, Dequantize) or integers not in graph.types:
            continue
        dropped.add(maker.name)
        names[integers] = name
        qparams[name] = qparams.pop(integers)
        if name in graph.inputs:
            inputs[name] = graph.types[integers]
        elif graph.consumers[name]:
            names[name] = fresh(f"{name}.dequantized", graph.types)
            dropped.remove(maker.name)
    nodes = [node.renamed(names) for node in graph.nodes if node.name not in dropped]
    return build(graph.name, inputs, graph.outputs, nodes, graph.constants, qparams) if names else graph
