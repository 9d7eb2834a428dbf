"""Samples through a float graph, counted as they pass: the work of a calibration, wherever it is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from qbench.calibration.statistics import Statistics, count
from qbench.errors import DataError
from qbench.ir.graph import Graph
from qbench.ir.memo import Memo
from qbench.ir.op import OPS, Array, QuantRule, bind
from qbench.runtime.program import Program
from qbench.runtime.programs import Programs
from qbench.runtime.tallies import Tally

__all__ = ["Counter", "Found", "Numbered"]

Numbered = tuple[int, Mapping[str, Array]]
Found = dict[str, Statistics]


class Counter:
    """Runs samples and counts what it sees; goes to other threads, processes and machines."""

    def __init__(self, graph: Graph, names: tuple[str, ...]) -> None:
        self.graph, self.names = graph, names
        self._programs = Programs(graph, keep=[name for name in names if name not in graph.inputs])
        axes = _channel_axes(graph)
        self._places = {name: (axes.get(name), _channels(graph, name, axes.get(name))) for name in names}

    def __reduce__(self) -> tuple[Callable[..., Counter], tuple[object, ...]]:
        return _received, (self.graph, self.names)

    def __call__(self, numbered: list[Numbered]) -> tuple[int, Found]:
        """How many samples there were, and their statistics."""
        tallies = self.tallies()
        self.count(numbered, tallies)
        return len(numbered), self.statistics(tallies)

    def tallies(self) -> dict[str, Tally]:
        """What samples can be counted into."""
        return {name: Tally(*place) for name, place in self._places.items()}

    def count(self, numbered: list[Numbered], tallies: dict[str, Tally]) -> None:
        """Run samples; DataError where values are not finite, which leaves the tallies useless."""
        for number, feeds in numbered:
            try:
                program = self._programs.of(feeds)
                program.run(feeds, observe=tallies)
                if any(tally["bad"] for tally in tallies.values()):
                    self._complain(program, feeds)
            except DataError as error:
                raise DataError(f"calibration sample {number}: {error}") from error

    def statistics(self, tallies: dict[str, Tally]) -> Found:
        """Of each value that was not always empty."""
        return {name: Statistics.taken(tally) for name, tally in tallies.items() if tally["count"]}

    def _complain(self, program: Program, feeds: Mapping[str, Array]) -> None:
        """Raise DataError: it names the first tensor that is not finite, and where."""
        values = {**feeds, **program.run(feeds, keep=self._programs.keep)}
        for name in self.names:
            if values[name].size:
                count(values[name], Tally(), name)


def _received(graph: Graph, names: tuple[str, ...]) -> Counter:
    """What another process gets for each of its tasks: the same one, planned once."""
    return _latest.recall("counter", (graph, names), lambda: Counter(graph, names))


_latest = Memo()


def _channels(graph: Graph, name: str, axis: int | None) -> int:
    size = 0 if axis is None else graph.types[name].shape[axis]
    return size if isinstance(size, int) else 0


def _channel_axes(graph: Graph) -> dict[str, int]:
    """The channel axis of each tensor that a convolution or dense layer reads, where all that read it agree."""
    found: dict[str, set[int]] = {}
    for node in graph.nodes:
        declared = OPS[node.op]
        if declared.rule is QuantRule.MAC and declared.has_weight() and node.inputs[1] in graph.constants:
            axis = bind(node).channel_axis_of("data", graph.types[node.inputs[0]].rank)
            if axis is not None:
                found.setdefault(node.inputs[0], set()).add(axis)
    return {tensor: axes.pop() for tensor, axes in found.items() if len(axes) == 1}
