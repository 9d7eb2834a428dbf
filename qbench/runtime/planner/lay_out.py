"""The pass that chooses how every value lies in memory, and adds the copies where two steps want it differently."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from qbench.ir.graph import Graph
from qbench.ir.op import OPS
from qbench.runtime.layout import Layout, natural, row_major, shape_of
from qbench.runtime.lowerings.lowering import Layouts, Lowering
from qbench.runtime.lowerings.rescaling import flip
from qbench.runtime.planner.tasks import Task


@dataclass(frozen=True)
class Copy:
    """A step that brings what lies at one place to another, in another layout."""

    source: str
    target: str


@dataclass(frozen=True)
class Laid:
    """A task, with the names of the places where it finds its inputs: the values', or copies in another layout."""

    task: Task
    layouts: Layouts
    reads: Mapping[str, str]


@dataclass
class LaidOut:
    """All steps, copies among them, and the layout at every place.

    A place goes by the name of its value; copies in another layout have names of their own.
    """

    graph: Graph
    steps: list[Copy | Laid] = field(default_factory=list["Copy | Laid"])
    layouts: dict[str, Layout] = field(default_factory=dict[str, Layout])
    values: dict[str, str] = field(default_factory=dict[str, str])
    """The value at each place."""
    external: set[str] = field(default_factory=set[str])
    """The inputs, and the outputs that are made, in the caller's memory."""

    def add(self, place: str, value: str, layout: Layout) -> str:
        """Note a place; gives its name."""
        self.layouts[place], self.values[place] = layout, value
        return place


def lay_out(graph: Graph, tasks: Sequence[Task]) -> LaidOut:
    """Choose the layouts: each step has a say in those of its values; what it leaves open goes by the readers."""
    return _LayOut(graph, tasks).run(tasks)


class _Home(dict[str, Layout]):
    """Layouts by value, for values not made yet the natural one."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self._graph = graph

    def __missing__(self, value: str) -> Layout:
        return natural(self._graph.types[value].rank)


class _LayOut:
    def __init__(self, graph: Graph, tasks: Sequence[Task]) -> None:
        self.graph, self.result, self.home = graph, LaidOut(graph), _Home(graph)
        self.foreign = {
            name for name in graph.inputs if graph.types[name].dtype in ("int8", "uint8", "int16", "uint16")
        }
        """Integers in the caller's memory: kernels read codes, and a few bytes behind them; neither is there."""
        self.readers: dict[str, list[Task]] = {}
        self.makers = {name: task for task in tasks for name in task.step.outputs}
        for task in tasks:
            for name in task.inputs:
                self.readers.setdefault(name, []).append(task)

    def run(self, tasks: Sequence[Task]) -> LaidOut:
        for name in self.graph.inputs:
            self._enter(name)
        for task in tasks:
            self._lay(task)
        for name in self.graph.outputs:
            self._leave(name)
        return self.result

    def _enter(self, name: str) -> None:
        self._make(name, self._row_major(name))
        self.result.external.add(name)

    def _leave(self, name: str) -> None:
        rows = self._row_major(name)
        maker = self.makers.get(name)
        made = maker is not None and maker.lowering is not None and not is_view(maker.lowering)
        if made and rows.same(self.home[name], self._shape(name)) and not flip(self.graph.types[name].dtype):
            self.result.external.add(name)

    def _lay(self, task: Task) -> None:
        layouts = task.layouts(self.home)
        renames = task.lowering is not None and task.lowering.renames and not self.foreign.isdisjoint(task.inputs)
        if renames:  # the reader copies what it needs, in its own layout
            self.foreign.update(task.step.outputs)
        reads = {name: name if renames else self._read(name, layouts.inputs.get(name)) for name in task.inputs}
        for name in task.step.outputs:
            layout = layouts.outputs.get(name) or self._wanted(name)
            self._make(name, layout if task.lowering else Layout(layout.axes))  # the interpreter fills no border
        self.result.steps.append(Laid(task, layouts, reads))

    def _make(self, value: str, layout: Layout) -> str:
        self.home[value] = layout
        return self.result.add(value, value, layout)

    def _read(self, name: str, wanted: Layout | None) -> str:
        """The place where a value lies as wanted, a copy of it if need be."""
        if wanted is None or (wanted.same(self.home[name], self._shape(name)) and name not in self.foreign):
            return name
        place = f"{name} as {wanted}"
        if place not in self.result.layouts:
            self.result.add(place, name, wanted)
            self.result.steps.append(Copy(name, place))
        return place

    def _wanted(self, name: str) -> Layout:
        """The layout that all readers of a value agree on, else the natural one."""
        wanted = {self._asked(task, name) for task in self.readers.get(name, ())}
        if name in self.graph.outputs:
            wanted.add(self._row_major(name))
        layout = wanted.pop() if len(wanted) == 1 else None
        return layout or self.home[name]

    def _asked(self, task: Task, name: str) -> Layout | None:
        """The layout that a reader of a value wants; of one that only renames its axes, what its own readers want."""
        lowering = task.lowering
        if lowering is None or not lowering.renames:
            return self._passed_on(task, name) or task.layouts(self.home).inputs.get(name)
        (made,) = task.step.outputs
        return lowering.before(self._wanted(made))

    def _passed_on(self, task: Task, name: str) -> Layout | None:
        """What is wanted of a value by the one that renames the axes of what steps make of it, each as it finds it.

        Pixels that are scaled and shifted before channels become their first axis stay the pixels that they are.
        """
        made, readers = task.step.outputs[0], self.readers.get(task.step.outputs[0], ())
        alike = self.graph.types[name].shape == self.graph.types[made].shape
        follows = task.lowering is not None and OPS[task.step.head.op].elementwise and alike
        if not follows or len(readers) != 1 or made in self.graph.outputs:
            return None
        (reader,) = readers
        renames = reader.lowering is not None and reader.lowering.renames
        wanted = self._asked(reader, made) if renames else self._passed_on(reader, made)
        if wanted is None:
            return None
        home = _Home(self.graph)
        home.update({**self.home, name: wanted})
        layouts = task.layouts(home)
        return wanted if layouts.inputs.get(name) == layouts.outputs.get(made, wanted) == wanted else None

    def _row_major(self, name: str) -> Layout:
        return row_major(self.graph.types[name].rank)

    def _shape(self, name: str) -> tuple[int, ...]:
        return shape_of(self.graph, name)


def is_view(lowering: Lowering | None) -> bool:
    """Whether what a lowering makes may lie in the memory of what it reads."""
    return lowering is not None and type(lowering).alias is not Lowering.alias
