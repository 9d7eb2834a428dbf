"""Samples through a float graph, counted as they pass: the work of a calibration, wherever it is done."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import islice

import numpy as np

from qbench.calibration.stages import stages_of
from qbench.calibration.statistics import Statistics, count
from qbench.data.dataset import Dataset
from qbench.data.samples import Data, samples
from qbench.errors import DataError
from qbench.forms.scores import floors
from qbench.ir.dtypes import dtype_of, is_float
from qbench.ir.graph import Graph
from qbench.ir.mapped import release
from qbench.ir.memo import Memo
from qbench.ir.op import Array, bind
from qbench.ops.products import is_layer
from qbench.runtime.program import Program
from qbench.runtime.programs import Programs
from qbench.runtime.tallies import Tally

Numbered = tuple[int, Mapping[str, Array]]
Found = dict[str, Statistics]
Places = Mapping[str, tuple[int | None, int, float]]
"""By value: its channel axis, how many channels there are, and up to where masks hide what is in it."""

_CARRIED = 1 << 28  # bytes of values between two stages


Seen = tuple[int, Found]
"""A number of samples, and what was found in them."""


class Counter:
    """Runs samples and counts what it sees; goes to other threads, processes and machines."""

    def __init__(self, graph: Graph, names: tuple[str, ...], places: Places | None = None) -> None:
        self.graph, self.names = graph, names
        self._programs = Programs(graph, keep=[name for name in names if name not in graph.inputs])
        self._places = places or _places(graph, names)
        self.stages = stages_of(graph, names) if places is None else []
        """Of a model that is too large to be planned as a whole."""

    def __reduce__(self) -> tuple[Callable[..., Counter], tuple[object, ...]]:
        return counter_of, (self.graph, self.names)

    def __call__(self, start: int, data: Data | Dataset) -> Seen:
        """How many samples there are in the data, and their statistics; the first one is called sample `start`."""
        pieces = data.checked() if isinstance(data, Dataset) else samples(self.graph, data)
        if self.stages:
            return self.staged(enumerate(pieces, start))
        tallies = self.tallies()
        return self.count(enumerate(pieces, start), tallies), self.statistics(tallies)

    def tallies(self) -> dict[str, Tally]:
        """What samples can be counted into."""
        return {name: Tally(*self._places[name]) for name in self.names}

    def count(self, numbered: Iterable[Numbered], tallies: dict[str, Tally]) -> int:
        """Run samples, and say how many; DataError where values are not finite, which leaves the tallies useless."""
        done = 0
        for number, feeds in numbered:
            self._run(number, feeds, tallies)
            done += 1
        return done

    def staged(self, numbered: Iterable[Numbered], look: Callable[[], object] = lambda: None) -> Seen:
        """The same of a large model: as many samples as can be carried go through one stage after the other.

        `look` is called before each of them.
        """
        few = max(1, _CARRIED // max(1, *(stage.carried for stage in self.stages)))
        coming, total, found = iter(numbered), 0, Found()
        while some := [(number, {**feeds}) for number, feeds in islice(coming, few)]:
            for stage in self.stages:
                look()
                counter = Counter(stage.graph, stage.observed, self._places)
                tallies = counter.tallies()
                for number, values in some:
                    feeds = {name: values[name] for name in stage.graph.inputs}
                    values |= counter._run(number, feeds, tallies)
                    for name in stage.done:
                        values.pop(name, None)
                _, found = merged((0, found), (0, counter.statistics(tallies)))
                for constant in stage.graph.constants.values():
                    release(constant.array)
            total += len(some)
        return total, found

    def _run(self, number: int, feeds: Mapping[str, Array], tallies: dict[str, Tally]) -> Mapping[str, Array]:
        """The outputs of one sample."""
        try:
            program = self._programs.of(feeds)
            outputs = program.run(feeds, observe=tallies)
            if any(tally["bad"] for tally in tallies.values()):
                self._hide(program, feeds, tallies)
            return outputs
        except DataError as error:
            raise DataError(f"calibration sample {number}: {error}") from error

    def statistics(self, tallies: dict[str, Tally]) -> Found:
        """Of each value that was not always empty."""
        return {name: Statistics.taken(tally) for name, tally in tallies.items() if tally["count"]}

    def _hide(self, program: Program, feeds: Mapping[str, Array], tallies: dict[str, Tally]) -> None:
        """Count as 0 what is NaN where no output is: a quotient by zero that another number is chosen for.

        Else raise DataError: it names the first tensor that is not finite, and where.
        """
        values = {**feeds, **program.run(feeds, keep=self._programs.keep)}
        hidden = not any(_nan_in(values[name]).any() for name in self.graph.outputs)
        for name in self.names:
            tally, array = tallies[name], values[name]
            if not array.size or not (found := _nan_in(array)).any():
                continue
            if not hidden or tally.axis is not None:
                count(array, Tally(), name)
            tally.found["bad"] = 0
            tally.add(np.where(found, array.dtype.type(0), array))


def counter_of(graph: Graph, names: tuple[str, ...]) -> Counter:
    """The same one as last time for the same graph: it is planned once, in each process."""
    return _latest.recall("counter", (graph, names), lambda: Counter(graph, names))


def _nan_in(array: Array) -> Array:
    return np.isnan(array) if is_float(dtype_of(array.dtype)) else np.zeros((), bool)


def merged(*parts: Seen) -> Seen:
    """What was seen in all parts together."""
    found: Found = {}
    for _, part in parts:
        found |= {name: found[name].merge(new) if name in found else new for name, new in part.items()}
    return sum(samples for samples, _ in parts), found


_latest = Memo()


def _places(graph: Graph, names: Iterable[str]) -> Places:
    axes, hidden = _channel_axes(graph), floors(graph)
    return {
        name: (axes.get(name), _channels(graph, name, axes.get(name)), hidden.get(name, -math.inf)) for name in names
    }


def _channels(graph: Graph, name: str, axis: int | None) -> int:
    size = 0 if axis is None else graph.types[name].shape[axis]
    return size if isinstance(size, int) else 0


def _channel_axes(graph: Graph) -> dict[str, int]:
    """The channel axis of each tensor that a convolution or dense layer reads, where all that read it agree."""
    found: dict[str, set[int]] = {}
    for node in graph.nodes:
        if is_layer(graph, node):
            axis = bind(node).channel_axis_of("data", graph.types[node.inputs[0]].rank)
            if axis is not None:
                found.setdefault(node.inputs[0], set()).add(axis)
    return {tensor: axes.pop() for tensor, axes in found.items() if len(axes) == 1}
