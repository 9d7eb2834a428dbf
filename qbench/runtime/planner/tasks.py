"""The steps of a program in the making: each with its lowering, or with the reason why the interpreter runs it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from qbench.ir.graph import Graph
from qbench.kernels.levels import Level
from qbench.runtime.planner.fuse import Fused, fuse
from qbench.runtime.planner.layout import Layout
from qbench.runtime.planner.lowering import LOWERINGS, Layouts, Lowering, Refused

__all__ = ["Task", "tasks"]


@dataclass(frozen=True)
class Task:
    """One step: nodes that run together.

    Parameters
    ----------
    step
        Its nodes.
    lowering
        What makes its instructions; None where the interpreter runs it.
    reason
        Why it has none.
    """

    step: Fused
    lowering: Lowering | None
    reason: str = ""

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        """How its values should lie; the interpreter takes any."""
        return self.lowering.layouts(home) if self.lowering else Layouts({}, {})


def tasks(graph: Graph, keep: Collection[str], level: Level) -> tuple[Task, ...]:
    """All steps of a graph whose sizes are known, in execution order."""
    return tuple(task for step in fuse(graph, keep) for task in _lowered(step, graph, level))


def _lowered(step: Fused, graph: Graph, level: Level) -> Iterator[Task]:
    """The step as one task, or where it is refused each of its nodes as its own."""
    reason = f"there is no kernel for {step.head.op}"
    for _, family in LOWERINGS.get(step.head.op, ()):
        try:
            yield Task(step, family(step, graph, level))
            return
        except Refused as refusal:
            reason = str(refusal)
    if len(step.nodes) == 1:
        yield Task(step, None, reason)
    else:
        for node in step.nodes:
            yield from _lowered(Fused((node,)), graph, level)
