"""Samples through a float graph, counted as they pass: the work of a calibration, wherever it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from qbench.calibration.statistics import Statistics, count
from qbench.data.dataset import Dataset
from qbench.data.samples import Data, samples
from qbench.errors import DataError
from qbench.ir.graph import Graph
from qbench.ir.memo import Memo
from qbench.ir.op import OPS, Array, QuantRule, bind
from qbench.runtime.program import Program
from qbench.runtime.programs import Programs
from qbench.runtime.tallies import Tally

__all__ = ["Counter", "Found", "Numbered", "Seen", "counter_of", "merged"]

Numbered = tuple[int, Mapping[str, Array]]
Found = dict[str, Statistics]


Seen = tuple[int, Found]
"""A number of samples, and what was found in them."""


class Counter:
    """Runs samples and counts what it sees; goes to other threads, processes and machines."""

    def __init__(self, graph: Graph, names: tuple[str, ...]) -> None:
        self.graph, self.names = graph, names
        self._programs = Programs(graph, keep=[name for name in names if name not in graph.inputs])
        axes = _channel_axes(graph)
        self._places = {name: (axes.get(name), _channels(graph, name, axes.get(name))) for name in names}

    def __reduce__(self) -> tuple[Callable[..., Counter], tuple[object, ...]]:
        return counter_of, (self.graph, self.names)

    def __call__(self, start: int, data: Data | Dataset) -> Seen:
        """How many samples there are in the data, and their statistics; the first one is called sample `start`."""
        tallies = self.tallies()
        pieces = data.checked() if isinstance(data, Dataset) else samples(self.graph, data)
        return self.count(enumerate(pieces, start), tallies), self.statistics(tallies)

    def tallies(self) -> dict[str, Tally]:
        """What samples can be counted into."""
        return {name: Tally(*place) for name, place in self._places.items()}

    def count(self, numbered: Iterable[Numbered], tallies: dict[str, Tally]) -> int:
        """Run samples, and say how many; DataError where values are not finite, which leaves the tallies useless."""
        done = 0
        for number, feeds in numbered:
            try:
                program = self._programs.of(feeds)
                program.run(feeds, observe=tallies)
                if any(tally["bad"] for tally in tallies.values()):
                    self._complain(program, feeds)
                done += 1
            except DataError as error:
                raise DataError(f"calibration sample {number}: {error}") from error
        return done

    def statistics(self, tallies: dict[str, Tally]) -> Found:
        """Of each value that was not always empty."""
        return {name: Statistics.taken(tally) for name, tally in tallies.items() if tally["count"]}

    def _complain(self, program: Program, feeds: Mapping[str, Array]) -> None:
        """Raise DataError: it names the first tensor that is not finite, and where."""
        values = {**feeds, **program.run(feeds, keep=self._programs.keep)}
        for name in self.names:
            if values[name].size:
                count(values[name], Tally(), name)


def counter_of(graph: Graph, names: tuple[str, ...]) -> Counter:
    """The same one as last time for the same graph: it is planned once, in each process."""
    return _latest.recall("counter", (graph, names), lambda: Counter(graph, names))


def merged(*parts: Seen) -> Seen:
    """What was seen in all parts together."""
    found: Found = {}
    for _, part in parts:
        found |= {name: found[name].merge(new) if name in found else new for name, new in part.items()}
    return sum(samples for samples, _ in parts), found


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
