"""The NumPy interpreter: runs any graph, float or integer, node by node. Slow and obviously right."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

import qbench.ops  # noqa: F401  # pyright: ignore[reportUnusedImport] fills the registry that bind() reads
from qbench.errors import DataError, GraphError, nearest, shown
from qbench.ir.graph import Graph, Node, check_graph
from qbench.ir.op import Array, bind
from qbench.ir.open_attributes import with_sizes
from qbench.ir.specialize import specialize
from qbench.runtime.feeds import check_feeds


def run(
    graph: Graph,
    feeds: Mapping[str, Array],
    keep: Iterable[str] = (),
    observe: Callable[[str, Array], None] | None = None,
) -> dict[str, Array]:
    """Run a graph.

    Parameters
    ----------
    graph
        Any valid graph.
    feeds
        One array per input, of the input's dtype and shape; symbols such as ``N`` may be any size.
    keep
        Names of further values wanted. All others are freed after their last use.
    observe
        Told the name and array of each input and each node's outputs, in execution order, before they are freed.

    Returns
    -------
    dict
        The graph's outputs, then the kept values, by name. Do not write into them: they may share memory.

    Raises
    ------
    DataError
        A missing or unknown input, a wrong dtype or shape, NaN or infinity; it names the input.
    GraphError
        `keep` names no value of the graph.
    """
    sizes = check_feeds(graph, feeds)
    wanted = dict.fromkeys((*graph.outputs, *keep))
    for name in wanted:
        if name not in graph.types:
            raise GraphError(f"the graph has no value {shown(name)} to keep{nearest(name, graph.types)}")
    graph = specialized(graph, sizes)
    values: dict[str, Array] = {name: feeds[name] for name in graph.inputs}
    values |= {name: constant.array for name, constant in graph.constants.items()}
    seen = observe or _ignore
    for name in graph.inputs:
        seen(name, feeds[name])
    last_use = {name: node.name for node in graph.nodes for name in node.inputs}
    for node in graph.nodes:
        results = step(graph, node, [values[name] for name in node.inputs])
        for name, result in zip(node.outputs, results, strict=True):
            values[name] = result
            seen(name, result)
        for name in (*node.inputs, *node.outputs):
            if name not in wanted and last_use.get(name, node.name) == node.name:
                values.pop(name, None)
    return {name: values[name] for name in wanted}


def specialized(graph: Graph, sizes: Mapping[str, int]) -> Graph:
    """The graph with these sizes where attributes of its nodes hang on them; any size fits all others."""
    if all(with_sizes(node, sizes) is node for node in graph.nodes):
        return graph
    known: dict[frozenset[tuple[str, int]], Graph] = vars(graph).setdefault("_specialized", {})
    key = frozenset(sizes.items())
    if key not in known:
        if len(known) >= _REMEMBERED:
            known.clear()
        known[key] = specialize(graph, sizes)
    return known[key]


_REMEMBERED = 8


def _ignore(name: str, array: Array) -> None:
    """Nobody observes."""


def step(graph: Graph, node: Node, arrays: Sequence[Array]) -> tuple[Array, ...]:
    """Run one node on the arrays of its inputs, in the order of its operands."""
    try:
        return bind(node, graph.qparams).compute_all(tuple(arrays))
    except Exception as error:
        given = ", ".join(
            f"{shown(name)}: {array.dtype}{list(array.shape)}" for name, array in zip(node.inputs, arrays, strict=False)
        )
        error.add_note(f"while running node {shown(node.name)}: {node.op}({given})")
        raise


def call(graph: Graph, x: Array | Mapping[str, Array]) -> Array | dict[str, Array]:
    """Run a graph node by node, the short way; `qbench.interpret`.

    Parameters
    ----------
    graph
        Any valid graph.
    x
        The array for a graph with one input, or arrays by input name.

    Returns
    -------
    Array or dict
        The output, or the outputs by name where there are several.

    Raises
    ------
    DataError
        As `run`, and for a single array where the graph has several inputs.
    """
    outputs = run(graph, named_feeds(graph, x))
    return outputs[graph.outputs[0]] if len(graph.outputs) == 1 else outputs


def named_feeds(graph: Graph, x: Array | Mapping[str, Array]) -> Mapping[str, Array]:
    """What is fed, by input name; DataError for a single array where the graph has several inputs."""
    check_graph(graph)
    if isinstance(x, Mapping):
        return x
    if len(graph.inputs) != 1:
        raise DataError(
            f"the model has {len(graph.inputs)} inputs ({', '.join(map(shown, graph.inputs))}): feed a dict"
        )
    return {graph.inputs[0]: np.asarray(x)}
