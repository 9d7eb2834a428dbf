"""The steps of a program in the making: each with its lowering, or with the reason why the interpreter runs it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from weakref import WeakValueDictionary

from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph
from qbench.ir.op import Epilogue
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.kernels.levels import Level
from qbench.runtime.fuse import Fused, follows_as, fuse
from qbench.runtime.layout import Layout
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, absorbed, lowering_of


@dataclass(frozen=True)
class Task:
    """One step: nodes that run together.

    Parameters
    ----------
    step
        Its nodes.
    inputs
        Names of the values that it reads.
    lowering
        What makes its instructions; None where the interpreter runs it.
    reason
        Why it has none.
    """

    step: Fused
    inputs: tuple[str, ...]
    lowering: Lowering | None
    reason: str = ""

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        """How its values should lie; the interpreter takes any."""
        return self.lowering.layouts(home) if self.lowering else Layouts({}, {})


def tasks(graph: Graph, keep: Collection[str], level: Level) -> tuple[Task, ...]:
    """All steps of a graph whose sizes are known, in execution order."""
    return tuple(task for step in fuse(graph, keep, absorbed) for task in _tasks(step, graph, level))


@dataclass(frozen=True)
class _Excerpt:
    """What a step is, and all that it has to do with: equal excerpts have equal lowerings, in any graph."""

    step: Fused
    values: tuple[tuple[str, TensorType, Constant | None, QParams | None], ...]
    """Name, type, content and qparams of every value that a node of the step reads or makes."""

    @classmethod
    def of(cls, step: Fused, graph: Graph) -> _Excerpt:
        names = dict.fromkeys(name for node in step.nodes for name in (*node.inputs, *node.outputs))
        get, known = graph.constants.get, graph.qparams.get
        return cls(step, tuple((name, graph.types[name], get(name), known(name)) for name in names))

    def graph(self) -> Graph:
        """A graph of nothing but the step: what its lowering holds on to."""
        constants = {name: content for name, _, content, _ in self.values if content is not None}
        types = {name: kind for name, kind, _, _ in self.values}
        qparams = {name: q for name, _, _, q in self.values if q is not None}
        inside = {name for node in self.step.nodes for name in node.outputs}
        return Graph(
            name="",
            inputs=tuple(name for name in types if name not in inside and name not in constants),
            outputs=self.step.outputs,
            nodes=self.step.nodes,
            constants=FrozenMap(constants),
            types=FrozenMap(types),
            qparams=FrozenMap(qparams),
        )


def _tasks(step: Fused, graph: Graph, level: Level) -> Iterator[Task]:
    """The step as one task; where it is refused, cut before its last node or before the sum that clamps follow."""
    reads = step.inputs(graph)  # kernels read what has a place in memory, and constants have none
    lowering = _lowering(_Excerpt.of(step, graph), level) if reads else "it reads constants alone"
    if isinstance(lowering, Lowering):
        yield Task(step, reads, lowering)
    elif len(step.nodes) == 1:
        yield Task(step, reads, None, lowering)
    else:
        sums = (place for place, node in enumerate(step.nodes) if place and follows_as(node) is Epilogue.ADD)
        cut = next(sums, len(step.nodes) - 1)
        yield from _tasks(Fused(step.nodes[:cut]), graph, level)
        yield from _tasks(Fused(step.nodes[cut:]), graph, level)


_alive: WeakValueDictionary[tuple[_Excerpt, Level], Lowering] = WeakValueDictionary()
"""Lowerings that programs hold: an edit changes a few steps of a network, the others are found again."""


def _lowering(excerpt: _Excerpt, level: Level) -> Lowering | str:
    """What makes the instructions of a step, or the reason why nothing does."""
    known = _alive.get((excerpt, level))
    if known is not None:
        return known
    try:
        made = _alive[excerpt, level] = lowering_of(excerpt.step, excerpt.graph(), level)
    except Refused as refusal:
        return str(refusal)
    return made
