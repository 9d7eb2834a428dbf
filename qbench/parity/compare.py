"""Why two runs of the same network disagree: value by value, each op by itself and all together."""

from collections.abc import Mapping
from dataclasses import dataclass

from qbench.data.dataset import Dataset
from qbench.errors import Cancelled, DataError, nearest, shown
from qbench.ir.build import build
from qbench.ir.graph import Graph
from qbench.ir.op import Array, is_op
from qbench.ops.float.reshape import Transpose
from qbench.parity.comparison import Comparison, LayerComparison
from qbench.parity.difference import TOLERANCE, Differences
from qbench.parity.expected import Expected, requantize_of
from qbench.parity.graph_runner import GraphRunner, Segment, segments
from qbench.parity.runner import Portion, Runner
from qbench.parity.theory import Mode
from qbench.progress import Cancel, Progress, stopped
from qbench.runtime.program import Program

Comparable = Graph | Program | Runner
"""What can be compared: a graph or its program, or a :class:`~qbench.parity.Runner` such as ``lab.LiteRT(path)``."""


def compare(
    left: Comparable,
    right: Comparable,
    data: object,
    *,
    tolerance: float = TOLERANCE,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Comparison:
    """Run the same data through both, and compare every value that both have.

    Parameters
    ----------
    left, right
        Two of `Comparable`. Values are the same where they have the same name.
    data
        As for a session: an array, arrays by input name, or an iterable of those.
    tolerance
        Real numbers are the same where they differ by no more than this, relative to the largest one of their tensor.
    progress
        Told how many samples are done.
    cancel
        Stops between portions of the data.

    Returns
    -------
    Comparison
        Where one of the two is a graph, each of its ops is also fed with the other side's own values: ``different``
        then says what that op does otherwise, and ``end_to_end`` what came of it.

    Raises
    ------
    DataError
        Data that do not fit, or two sides without a value in common.
    Cancelled
        `cancel` was set.
    """
    sides = _runner(left), _runner(right)
    if isinstance(sides[0], GraphRunner) and isinstance(sides[1], GraphRunner) and sides[0].label == sides[1].label:
        sides = (
            GraphRunner(sides[0].graph, sides[0].executor, "left"),
            GraphRunner(sides[1].graph, sides[1].executor, "right"),
        )
    graph = next((side.graph for side in sides if isinstance(side, GraphRunner)), None)
    dataset = Dataset(graph or _inputs_of(sides[0]), data, what="input")
    work = _Work(sides, graph, tolerance)
    for chunk in dataset.chunks():
        if stopped(cancel):
            raise Cancelled(f"stopped after {chunk.start} of {dataset.samples} samples")
        work.add(Portion(chunk.feeds, chunk.start, chunk.stop, dataset.samples))
        if progress is not None:
            progress(chunk.stop, dataset.samples)
    return work.done(dataset.samples)


def _runner(given: object) -> Runner:
    if isinstance(given, Runner):
        return given
    if isinstance(given, (Graph, Program)):
        return GraphRunner(graph_of(given))
    raise DataError(
        f"cannot compare a {type(given).__name__}: give a graph, a program, lab.LiteRT, lab.OnnxRuntime or lab.Recorded"
    )


def graph_of(program: Graph | Program) -> Graph:
    """What a program runs."""
    return program.graph if isinstance(program, Program) else program


def _inputs_of(side: Runner) -> Graph:
    """A graph that only says what is to be fed."""
    return build(side.label, side.inputs, tuple(side.inputs), ())


@dataclass
class _Layer:
    """One value, while it is compared."""

    found: Differences
    whole: Differences
    segment: Segment | None
    modes: tuple[Mode, Mode] | None
    expected: Expected | None


class _Work:
    """A comparison on its way."""

    def __init__(self, sides: tuple[Runner, Runner], graph: Graph | None, tolerance: float) -> None:
        self._sides, self._graph, self._tolerance = sides, graph, tolerance
        # the side that is fed with the other's values; a recording or a runtime cannot be
        self._fed = next((i for i, side in enumerate(sides) if isinstance(side, GraphRunner)), None)
        self._missing: list[tuple[str, str]] = []
        self._names = self._common()
        found = {} if graph is None else segments(graph, self._names)
        self._layers = {name: self._layer(name, found.get(name)) for name in self._names}

    def _common(self) -> tuple[str, ...]:
        first, second = (side.made for side in self._sides)
        common: list[str] = []
        for name, made in first.items():
            other = second.get(name)
            if other is not None and other.dtype == made.dtype:
                common.append(name)
            elif other is not None:
                self._missing.append((name, f"{made.dtype} and {other.dtype}"))
        for index in (0, 1):
            # of a graph's own helpers, such as accumulators, a runtime knows nothing
            mine, others = self._sides[index].made, self._sides[1 - index].made
            if not isinstance(self._sides[index], GraphRunner):
                absent = [name for name in mine if name not in others]
                self._missing += [(name, f"only {self._sides[index].label} has it") for name in absent]
        if not common:
            names = [next(iter(made), "") for made in (first, second)]
            hint = nearest(names[0], second) if names[0] else ""
            labels = " and ".join(side.label for side in self._sides)
            raise DataError(
                f"{labels} have no value in common (they begin with {' and '.join(map(shown, names))}{hint}): "
                "are they the same model?"
            )
        return tuple(common)

    def _layer(self, name: str, segment: Segment | None) -> _Layer:
        made = self._sides[0].made[name]
        axis = None if self._graph is None else _channel_axis(self._graph, name)
        found, whole = (Differences("float" in made.dtype, axis, self._tolerance) for _ in range(2))
        modes: tuple[Mode, Mode] | None = None
        expected: Expected | None = None
        node = None if segment is None else requantize_of(segment)
        if self._graph is not None and segment is not None and node is not None:
            left = self._sides[0].rounding(segment.head, node)
            right = self._sides[1].rounding(segment.head, node)
            if left is not None and right is not None:
                modes = (left, right)
                expected = Expected(self._graph, segment, node, modes, axis)
        return _Layer(found, whole, segment, modes, expected)

    def add(self, portion: Portion) -> None:
        """Run some more samples."""
        values = [self._checked(side, side.run(portion, self._names)) for side in self._sides]
        apart = list(values)
        if self._fed is not None:
            fed = self._sides[self._fed]
            assert isinstance(fed, GraphRunner)
            apart[self._fed] = fed.run_apart(portion, values[1 - self._fed])
        for name, layer in self._layers.items():
            layer.whole.add(values[0][name], values[1][name])
            layer.found.add(apart[0][name], apart[1][name])
            if layer.expected is not None:
                layer.expected.add(values[1][name])

    def _checked(self, side: Runner, values: Mapping[str, Array]) -> Mapping[str, Array]:
        if self._graph is None:
            return values
        for name in self._names:
            wanted, array = self._graph.types[name], values[name]
            fits = array.ndim == wanted.rank and all(
                isinstance(dim, str) or dim == size for dim, size in zip(wanted.shape, array.shape, strict=True)
            )
            if not fits:
                raise DataError(f"{side.label} gives {shown(name)} the shape {array.shape}, but it is {wanted} here")
        return values

    def done(self, samples: int) -> Comparison:
        """What was found."""
        return Comparison(
            left=self._sides[0].label,
            right=self._sides[1].label,
            layers=tuple(self._finished(name, layer) for name, layer in self._layers.items()),
            samples=samples,
            fed="" if self._fed is None else ("left", "right")[self._fed],
            missing=tuple(self._missing),
            caveats=tuple(side.caveat for side in self._sides if side.caveat),
        )

    def _finished(self, name: str, layer: _Layer) -> LayerComparison:
        made, segment = self._sides[0].made[name], layer.segment
        return LayerComparison(
            name=name if segment is None else segment.name,
            op=made.op if segment is None else segment.head.op,
            tensor=name,
            dtype=made.dtype,
            found=layer.found.done(),
            end_to_end=layer.whole.done(),
            roundings=layer.modes,
            predicted=None if layer.expected is None else layer.expected.rate(),
        )


def _channel_axis(graph: Graph, name: str) -> int | None:
    """Where a value's channels lie: where its scales do, else axis 1, unless a transpose has moved that."""
    q, rank = graph.qparams.get(name), graph.types[name].rank
    if q is not None and q.axis is not None:
        return q.axis
    producer = graph.producers.get(name)
    axes = producer.attrs.get("axes") if producer is not None and is_op(producer, Transpose) else None
    if isinstance(axes, tuple) and rank == 4:
        return axes.index(1)
    return 1 if rank >= 2 else None
