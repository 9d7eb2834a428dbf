"""Graphs of the pipeline as boxes and arrows: what a drawing needs that puts them where they belong."""

from collections.abc import Mapping
from dataclasses import dataclass

from qbench.ir.graph import Graph
from qbench.views.ir_diff import graph_steps, owners
from qbench.views.state import State
from qbench.views.view import View


@dataclass(frozen=True)
class Box(View):
    """A node, or an input of the graph.

    Parameters
    ----------
    name, op
        Of the node; an input's op is ``input``.
    dtype
        Of what it makes.
    layer
        The layer of the reports that it belongs to; None where that is not one.
    reads
        Places of the boxes that it reads.
    """

    name: str
    op: str
    dtype: str
    layer: str | None
    reads: tuple[int, ...]


@dataclass(frozen=True)
class BoxesPane(View):
    """One graph of the pipeline, in execution order; `step` is its place among the steps."""

    step: int
    boxes: tuple[Box, ...]


@dataclass(frozen=True)
class BoxesView(View):
    """Graphs that are drawn beside each other.

    Parameters
    ----------
    steps
        Names of all steps of the pipeline; the first is the model as it came.
    prepared
        The place of the graph whose nodes are the layers of the reports.
    panes
        The graphs.
    """

    steps: tuple[str, ...]
    prepared: int
    panes: tuple[BoxesPane, ...]


def boxes_view(state: State, steps: tuple[int, ...] = ()) -> BoxesView:
    """Some steps of the pipeline as boxes.

    Parameters
    ----------
    state
        Of a session.
    steps
        Places of steps, 0 is the source model; none: the prepared float graph.

    Raises
    ------
    SessionError
        There is no step of that number.
    """
    found = graph_steps(state)
    layers = owners(state)
    panes = tuple(BoxesPane(step, _boxes(found.graph(step), layers)) for step in steps or (found.prepared,))
    return BoxesView(found.names, found.prepared, panes)


def _boxes(graph: Graph, layers: Mapping[str, str]) -> tuple[Box, ...]:
    inputs = [Box(name, "input", graph.types[name].dtype, None, ()) for name in graph.inputs]
    makers = {name: place for place, name in enumerate(graph.inputs)}
    nodes: list[Box] = []
    for place, node in enumerate(graph.nodes, len(inputs)):
        reads = tuple(dict.fromkeys(makers[name] for name in node.inputs if name in makers))
        nodes.append(Box(node.name, node.op, graph.types[node.outputs[0]].dtype, layers.get(node.name), reads))
        makers |= dict.fromkeys(node.outputs, place)
    return (*inputs, *nodes)
