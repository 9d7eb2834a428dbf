"""Running graphs in machine code: `run` the short way, `plan` for whoever runs one often or wants more than outputs."""

from collections import deque
from collections.abc import Iterable, Mapping
from types import NoneType

from qbench.errors import GraphError, check_kind, nearest, shown
from qbench.ir.build import rebuild
from qbench.ir.graph import Graph, check_graph
from qbench.ir.op import Array, is_op
from qbench.ir.specialize import open_symbols
from qbench.kernels.levels import Level
from qbench.ops.float.einsum import Einsum
from qbench.ops.float.norm import BatchNorm
from qbench.passes.canonicalize.contractions import einsum_to_matmul
from qbench.passes.fold_batch_norm import FoldBatchNormPass
from qbench.passes.fold_constants import FoldConstantsPass
from qbench.passes.prepare import prepare
from qbench.passes.rewrite import Rewriter
from qbench.runtime import programs
from qbench.runtime.interpreter import named_feeds
from qbench.runtime.program import Program

_KEPT = 4
_recent: deque[tuple[Graph, programs.Programs]] = deque(maxlen=_KEPT)
"""The graphs that were run last, and their programs."""


def run(graph: Graph, x: Array | Mapping[str, Array]) -> Array | dict[str, Array]:
    """Run a graph on all processors, in machine code; the programs of the last four graphs are kept.

    `qbench.interpret` gives the same integers, bit for bit, and floats within 1e-5 relative: slowly, in NumPy.

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
        A missing or unknown input, a wrong dtype or shape, NaN or infinity, or a single array where the graph has
        several inputs.
    """
    feeds = named_feeds(graph, x)
    known = next((found for one, found in [*_recent] if one is graph), None)
    if known is None:
        known = programs.Programs(_simplified(graph, ()))
        _recent.append((graph, known))
    outputs = known.of(feeds).run(feeds)
    return outputs[graph.outputs[0]] if len(graph.outputs) == 1 else outputs


def plan(
    graph: Graph,
    *,
    keep: Iterable[str] = (),
    sizes: Mapping[str, int] | None = None,
    level: Level | None = None,
) -> Program:
    """Lay a graph out for this machine: as few ops as do the same, fused steps, packed weights.

    A float graph is prepared as sessions prepare it: batch norms are folded; activation functions and normalizations
    that an exporter wrote as several ops are one.

    Parameters
    ----------
    graph
        Float, integer or mixed; any valid graph. Quantized ops are planned as the integer ops that they stand for.
    keep
        Values that a run may be asked for besides the outputs: nothing is fused behind them.
    sizes
        Numbers for the open sizes of the inputs. The symbol that counts samples on axis 0 needs none: the program is
        planned for one sample and runs any number of them.
    level
        What the processor can do; by default what :func:`qbench.kernels.levels.current` says.

    Returns
    -------
    Program
        Which runs any number of samples; nothing is compiled for it but kernels that no program before it needed.

    Raises
    ------
    GraphError
        An open size without a number, a number for what is none, or `keep` names no value.
    """
    check_graph(graph)
    check_kind(sizes, (Mapping, NoneType), GraphError, "sizes= takes numbers by the names of open sizes, not {}")
    check_kind(level, (Level, NoneType), GraphError, "level= takes a qbench.kernels.levels.Level, not {}")
    known = sorted(open_symbols(graph))
    for symbol in (sizes or {}).keys() - known:
        has = ", ".join(known) or "none"
        raise GraphError(f"the inputs have no open size {shown(symbol)}{nearest(symbol, known)} (they have {has})")
    keep = tuple(keep)
    return programs.plan(_simplified(graph, keep), keep=keep, sizes=sizes, level=level)


def _simplified(graph: Graph, keep: tuple[str, ...]) -> Graph:
    """A float graph as sessions prepare it; of one that computes integers, batch norms and einsums made into what has
    kernels: it keeps every bit.

    What is kept stays what it is.
    """
    wanted = tuple(dict.fromkeys((*graph.outputs, *(name for name in keep if name in graph.types))))
    if _is_float(graph):
        return rebuild(prepare(rebuild(graph, outputs=wanted)).graph, outputs=graph.outputs)
    if not any(is_op(node, BatchNorm, Einsum) for node in graph.nodes):
        return graph
    rewriter = Rewriter(FoldBatchNormPass()(FoldConstantsPass()(rebuild(graph, outputs=wanted))))
    for node in [*rewriter]:
        if is_op(node, Einsum):
            einsum_to_matmul(rewriter, node)
    return rebuild(rewriter.finish(), outputs=graph.outputs)


def _is_float(graph: Graph) -> bool:
    """Whether integers of fixed scales are constants, or picked from them, and nothing else."""
    stored = {*graph.constants}
    for node in graph.nodes:
        if any(value in graph.qparams for value in node.outputs):
            read = {value for value in node.inputs if value in graph.qparams}
            if not read or not read <= stored:
                return False
            stored.update(node.outputs)
    return graph.qparams.keys().isdisjoint(graph.inputs)
