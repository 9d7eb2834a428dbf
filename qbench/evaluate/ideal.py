"""Float layers on inputs that are rounded to their encodings: what a layer would make if it added no error itself."""

from collections.abc import Mapping
from dataclasses import replace

from qbench.ir.build import build
from qbench.ir.graph import Graph, Node
from qbench.ir.qparams import QParams
from qbench.ops.qnn.border import Dequantize, Quantize
from qbench.quantize.quantized import Quantized


def read_by(graph: Graph, cuts: Mapping[str, str], value: str) -> dict[str, str]:
    """What the layer that makes a value of the integer graph reads: the float tensors, and the values in their place.

    Parameters
    ----------
    graph
        Integer.
    cuts
        The float tensor of each value between layers, by the value's name.
    value
        Made by a node of the graph.
    """
    found: dict[str, str] = {}
    todo = [graph.producers[value]]
    done: set[str] = set()
    while todo:
        node = todo.pop()
        if node.name in done:
            continue
        done.add(node.name)
        for name in node.inputs:
            if name in cuts:
                found[cuts[name]] = name
            elif name in graph.producers:
                todo.append(graph.producers[name])
    return found


def ideal_graph(
    quantized: Quantized, wanted: Mapping[str, tuple[str, Mapping[str, str]]]
) -> tuple[Graph, dict[str, str], dict[str, str]]:
    """A graph that makes float tensors from exact ones, each rounded as the integer graph rounds it.

    Parameters
    ----------
    quantized
        Of both graphs.
    wanted
        By value of the integer graph: the float tensor that it stands for, and what its layer reads (see `read_by`).

    Returns
    -------
    graph
        Its inputs are exact tensors.
    inputs
        The float tensor of each input.
    outputs
        The output of each wanted value.
    """
    exact, graph = quantized.prepared, quantized.graph
    inputs: dict[str, str] = {}
    nodes: dict[str, Node] = {}
    qparams: dict[str, QParams] = {}

    def rounded(tensor: str, value: str) -> str:
        given, name = f"exact {tensor}", f"rounded {value}"
        inputs[given] = tensor
        if value not in graph.qparams:
            return given
        if name not in nodes:
            made = f"integers {value}"
            nodes[made] = Node(made, Quantize.name, (given,), (made,))
            nodes[name] = Node(name, Dequantize.name, (made,), (name,))
            qparams[made] = graph.qparams[value]
        return name

    def layer(value: str, tensor: str, reads: Mapping[str, str]) -> str:
        """Add the float nodes of one layer, under names of its own."""
        todo, made = [tensor], dict[str, Node]()
        while todo:
            node = exact.producers[todo.pop()]
            if node.name in made:
                continue
            made[node.name] = node
            todo += [name for name in node.inputs if name not in reads and name in exact.producers]
        own = {name: f"{value}: {name}" for node in made.values() for name in node.outputs}

        def read(name: str) -> str:
            if name in exact.inputs:  # no layer makes it: rounding it is the work of those that read it
                inputs[f"exact {name}"] = name
                return f"exact {name}"
            if name in reads and name not in own:
                return rounded(name, reads[name])
            return own.get(name, name)

        for node in made.values():
            label = f"{value}: {node.name}"
            ins, outs = tuple(map(read, node.inputs)), tuple(own[name] for name in node.outputs)
            nodes[label] = replace(node, name=label, inputs=ins, outputs=outs)
        return own[tensor]

    outputs = {value: layer(value, *of) for value, of in wanted.items()}
    types = {name: exact.types[tensor] for name, tensor in inputs.items()}
    made = build("ideal", types, [*dict.fromkeys(outputs.values())], nodes.values(), exact.constants, qparams)
    return made, inputs, outputs
