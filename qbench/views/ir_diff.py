"""Two graphs of the pipeline side by side, line by line, as :func:`qbench.ir.diff.diff` aligns them."""

from dataclasses import dataclass

from qbench.errors import SessionError
from qbench.ir.diff import Entry, diff
from qbench.ir.graph import Graph
from qbench.views.state import State
from qbench.views.view import View


@dataclass(frozen=True)
class DiffLine(View):
    """A line of each side, empty where there is none.

    Parameters
    ----------
    kind
        ``same``, ``changed``, ``added`` or ``removed``.
    section
        ``input``, ``node``, ``constant`` or ``output``.
    left, right
        The text.
    layer
        The layer of the reports that the line belongs to (a constant: that reads it); None where that is not one.
    notes
        What changed, or what it was merged into or made from.
    """

    kind: str
    section: str
    left: str
    right: str
    layer: str | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class IRDiffView(View):
    """The graph before and after some passes.

    Parameters
    ----------
    steps
        Names of all steps of the pipeline; the first is the model as it came.
    before, after
        Which of them are compared.
    lines
        Aligned.
    """

    steps: tuple[str, ...]
    before: int
    after: int
    lines: tuple[DiffLine, ...]


def ir_diff_view(state: State, before: int | None = None, after: int | None = None) -> IRDiffView:
    """The difference between two steps of the pipeline.

    Parameters
    ----------
    state
        Of a session.
    before, after
        Numbers of steps, 0 is the source model. None: the prepared float graph, and the integers.

    Raises
    ------
    SessionError
        There is no step of that number.
    """
    steps = graph_steps(state)
    before = steps.prepared if before is None else before
    after = len(steps.names) - 1 if after is None else after
    graphs, layers = (steps.graph(before), steps.graph(after)), owners(state)
    values = _of_values(graphs[0], layers) | _of_values(graphs[1], layers)
    lines = tuple(_line(entry, layers, values) for entry in diff(*graphs).entries)
    return IRDiffView(steps.names, before, after, lines)


@dataclass(frozen=True)
class GraphSteps:
    """The graphs of the pipeline by their places; `prepared` is that of the float graph whose nodes are the layers."""

    names: tuple[str, ...]
    graphs: tuple[Graph, ...]
    prepared: int

    def graph(self, step: int) -> Graph:
        """The graph after a step; SessionError where there is no such step."""
        if not 0 <= step < len(self.names):
            raise SessionError(f"there is no step {step} in a pipeline of {len(self.names)}: {', '.join(self.names)}")
        return self.graphs[step]


def graph_steps(state: State) -> GraphSteps:
    """The pipeline of a session's state, from the model as it came to integers."""
    trace, prepared = state.quantized.trace, state.quantized.prepared
    graphs = (trace.source, *(step.graph for step in trace.steps))
    place = next(place for place, graph in reversed(list(enumerate(graphs))) if graph is prepared)
    return GraphSteps(("source", *(step.name for step in trace.steps)), graphs, place)


def owners(state: State) -> dict[str, str]:
    """The layer by the name of any node that it was made from, or that was made from it."""
    trace, prepared = state.quantized.trace, state.quantized.prepared
    by_source = {source: node.name for node in prepared.nodes for source in (*node.sources, node.name)}
    found = dict(by_source)
    for step in trace.steps:
        for node in step.graph.nodes:
            if node.name not in found:
                owner = next((by_source[source] for source in node.sources if source in by_source), None)
                if owner is not None:
                    found[node.name] = owner
    return found | {node.name: node.name for node in prepared.nodes}


def _of_values(graph: Graph, owners: dict[str, str]) -> dict[str, str]:
    """The layer that first reads each input and constant, and the one that makes each output."""
    found: dict[str, str] = {}
    for name in (*graph.inputs, *graph.constants):
        reader = next((node.name for node in graph.consumers[name] if node.name in owners), None)
        if reader is not None:
            found[name] = owners[reader]
    makers = {name: graph.producers[name].name for name in graph.outputs if name in graph.producers}
    return found | {name: owners[node] for name, node in makers.items() if node in owners}


def _line(entry: Entry, owners: dict[str, str], values: dict[str, str]) -> DiffLine:
    names, known = (entry.right_name, entry.left_name), owners if entry.section == "node" else values
    layer = next((known[name] for name in names if name in known), None)
    verb = "merged into" if entry.kind == "removed" else "made from"
    notes = [f"{verb} {', '.join(entry.related)}"] if entry.related else [str(change) for change in entry.changes]
    return DiffLine(entry.kind, entry.section, entry.left, entry.right, layer, tuple(notes))
