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
    layers = _Layers(quantized)
    outputs = {value: layers.add(value, tensor, reads) for value, (tensor, reads) in wanted.items()}
    exact = quantized.prepared
    types = {name: exact.types[tensor] for name, tensor in layers.inputs.items()}
    ends = [*dict.fromkeys(outputs.values())]
    made = build("ideal", types, ends, layers.nodes.values(), exact.constants, layers.qparams)
    return made, layers.inputs, outputs


class _Layers:
    """The float nodes of some layers, each under names of its own, and the roundings of what they read."""

    def __init__(self, quantized: Quantized) -> None:
        self._exact, self._given = quantized.prepared, quantized.graph.qparams
        self.inputs: dict[str, str] = {}
        self.nodes: dict[str, Node] = {}
        self.qparams: dict[str, QParams] = {}

    def add(self, value: str, tensor: str, reads: Mapping[str, str]) -> str:
        """Add the layer that makes a tensor of what it reads, as `ideal_graph` wants it; gives its output."""
        made = self._behind(reads, tensor)
        own = {name: f"{value}: {name}" for node in made for name in node.outputs}

        def read(name: str) -> str:
            if name in self._exact.inputs:  # no layer makes it: rounding it is the work of those that read it
                return self._input(name)
            if name in reads and name not in own:
                return self._rounded(name, reads[name])
            return own.get(name, name)

        for node in made:
            label = f"{value}: {node.name}"
            ins, outs = tuple(map(read, node.inputs)), tuple(own[name] for name in node.outputs)
            self.nodes[label] = replace(node, name=label, inputs=ins, outputs=outs)
        return own[tensor]

    def _behind(self, reads: Mapping[str, str], tensor: str) -> list[Node]:
        """The nodes between what a layer reads and the tensor that it makes."""
        todo, made = [tensor], dict[str, Node]()
        while todo:
            node = self._exact.producers[todo.pop()]
            if node.name in made:
                continue
            made[node.name] = node
            todo += [name for name in node.inputs if name not in reads and name in self._exact.producers]
        return [*made.values()]

    def _input(self, tensor: str) -> str:
        self.inputs[f"exact {tensor}"] = tensor
        return f"exact {tensor}"

    def _rounded(self, tensor: str, value: str) -> str:
        """An exact tensor as the integers of a value stand for it."""
        given, made, name = self._input(tensor), f"integers {value}", f"rounded {value}"
        if value not in self._given:
            return given
        if name not in self.nodes:
            self.nodes[made] = Node(made, Quantize.name, (given,), (made,))
            self.nodes[name] = Node(name, Dequantize.name, (made,), (name,))
            self.qparams[made] = self._given[value]
        return name
