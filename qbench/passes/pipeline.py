"""A pass is a value: graph in, graph out. A pipeline runs several, checks each result and keeps the trace."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, Protocol, cast

from qbench.errors import QBenchError
from qbench.ir.graph import Graph
from qbench.ir.memo import Memo
from qbench.ir.verify import verify


class Pass(Protocol):
    """A frozen dataclass whose fields are the pass's options.

    A valid graph goes in and a valid graph comes out: the same object where the pass has nothing to do. Running a pass
    on its own result changes nothing.
    """

    name: ClassVar[str]
    """In kebab-case, such as ``fold-batch-norm``."""

    def __call__(self, graph: Graph) -> Graph:
        """The graph after the pass; `graph` itself is never changed."""
        ...


class Remembering(ABC):
    """A pass that takes a memo of earlier runs; the pass itself stays a value."""

    @abstractmethod
    def __call__(self, graph: Graph, memo: Memo | None = None) -> Graph:
        """As any pass; what has not changed since the memo's last run is not worked out again."""


@dataclass(frozen=True)
class Step:
    """What a graph was right after the pass of that name."""

    name: str
    graph: Graph


@dataclass(frozen=True)
class Trace:
    """The graph that went into a pipeline, and the one after each of its passes: what a diff view shows."""

    source: Graph
    steps: tuple[Step, ...] = ()

    @property
    def graph(self) -> Graph:
        """The graph after the last pass."""
        return self.steps[-1].graph if self.steps else self.source

    def then(self, step: Step) -> Trace:
        """The trace with one more step."""
        return Trace(self.source, (*self.steps, step))


@dataclass(frozen=True)
class Pipeline:
    """Passes in the order in which they run, the verifier around each one.

    Parameters
    ----------
    passes
        Any iterable of passes.
    verifies
        Without the verifier it takes less time: for trials, whose result is made again before anyone gets it.
    """

    passes: Iterable[Pass]
    verifies: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "passes", tuple(self.passes))

    def run(self, graph: Graph, on_step: Callable[[Step], None] | None = None, memo: Memo | None = None) -> Trace:
        """Run all passes.

        Parameters
        ----------
        graph
            A valid graph.
        on_step
            Called with each step as it is done, to show progress.
        memo
            Of earlier runs.

        Raises
        ------
        QBenchError
            From a pass or from the verifier, with a note that names the pass.
        """
        trace = Trace(graph)
        self._verify(graph)
        for run_pass in self.passes:
            try:
                kind = cast(object, run_pass)
                result = kind(trace.graph, memo) if isinstance(kind, Remembering) else run_pass(trace.graph)
                if result is not trace.graph:
                    self._verify(result)
            except QBenchError as error:
                error.add_note(f"in pass {run_pass.name}")
                raise
            step = Step(run_pass.name, result)
            trace = trace.then(step)
            if on_step is not None:
                on_step(step)
        return trace

    def _verify(self, graph: Graph) -> None:
        if self.verifies:
            verify(graph)
