"""A quantized model that NaN stops on its way: what can still be measured, and what to say of the rest."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from qbench.data.dataset import Dataset
from qbench.errors import NotANumberError, shown
from qbench.ir.build import build
from qbench.ir.graph import Graph, Node
from qbench.ir.op import OPS, Array, QuantRule, is_op
from qbench.ops.qnn.border import Quantize
from qbench.quant.arithmetic import dequantize
from qbench.quantize.quantized import Quantized
from qbench.runtime.programs import Programs

_MOST_NAMES = 3


def up_to(quantized: Quantized, value: str) -> Quantized:
    """The model as far as it goes: without what depends on the integers of a value that holds NaN."""
    graph = quantized.graph
    gone: set[str] = set()
    for node in graph.nodes:
        if not gone.isdisjoint(node.inputs) or (is_op(node, Quantize) and node.inputs[0] == value):
            gone.update(node.outputs)
    nodes = [node for node in graph.nodes if gone.isdisjoint(node.outputs)]
    outputs = [value, *(name for name in graph.outputs if name not in gone and name != value)]
    return replace(
        quantized, graph=build(graph.name, graph.input_types(), outputs, nodes, graph.constants, graph.qparams)
    )


def told_of(quantized: Quantized, data: Dataset, error: NotANumberError) -> str:
    """Which layer makes the NaN, what it reads, and what helps.

    Parameters
    ----------
    quantized
        What :func:`up_to` gave.
    data
        Samples, with the one that it arises in.
    error
        What the run complained of.
    """
    graph = quantized.graph
    nodes = _leading_to(graph, error.value)
    programs = Programs(graph, [name for node in nodes for name in node.outputs])
    for number, feeds in enumerate(data.pieces_in_order()):
        values = {**feeds, **programs.of(feeds).run(feeds, keep=programs.keep)}
        values |= {name: constant.array for name, constant in graph.constants.items()}
        first = next((node for node in nodes if any(_has_nan(values[name]) for name in node.outputs)), None)
        if first is not None:
            reads = (name for name in first.inputs if name not in graph.constants)
            ranges = ", ".join(f"{shown(name)} from {_range(graph, name, values[name])}" for name in reads)
            makers = ", ".join(map(shown, _makers(quantized, first))) or shown(first.name)
            return (
                f"layer {shown(first.name)} ({first.op}) gives NaN in sample {number * data.layout.step}: it reads "
                f"{ranges}. Nothing after it was measured. Keep in float what makes these: "
                f"override({makers}, keep_float=True)"
            )
    return str(error)


def _leading_to(graph: Graph, value: str) -> list[Node]:
    wanted, names = [value], set[str]()
    for name in wanted:  # grows on the way
        node = graph.producers.get(name)
        if node is not None and node.name not in names:
            names.add(node.name)
            wanted.extend(node.inputs)
    return [node for node in graph.nodes if node.name in names]


def _makers(quantized: Quantized, node: Node) -> Iterable[str]:
    """The layers whose integers a float node reads, straight or through other float nodes; the nearest first."""
    graph, prepared = quantized.graph, quantized.prepared
    wanted, found = [*node.inputs], dict[str, None]()
    for name in wanted:  # grows on the way
        producer = graph.producers.get(name)
        maker = prepared.producers.get(name) if name in graph.qparams else None
        if maker is not None and OPS[maker.op].rule != QuantRule.SAME:
            found[maker.name] = None
        elif producer is not None:
            wanted.extend(value for value in producer.inputs if value not in wanted)
    return [*found][:_MOST_NAMES]


def _range(graph: Graph, name: str, array: Array) -> str:
    reals = dequantize(array, graph.qparams[name]) if name in graph.qparams else array
    return f"{np.min(reals):.4g} to {np.max(reals):.4g}"


def _has_nan(array: Array) -> bool:
    return array.dtype.kind == "f" and bool(np.isnan(array).any())
