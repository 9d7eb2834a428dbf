"""How a step becomes instructions: one class per family of ops, found by the op of the step's first node."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeVar
from weakref import WeakValueDictionary

import numpy as np

from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph
from qbench.ir.op import OPS, Array, Epilogue, Op
from qbench.kernels.kernel import Kernel
from qbench.kernels.levels import Level
from qbench.kernels.memory import reference
from qbench.runtime.fuse import Fused, follows_as
from qbench.runtime.layout import Layout
from qbench.runtime.memory import held
from qbench.runtime.step import Instruction, Place, Rows

Packed = TypeVar("Packed")


class Refused(Exception):
    """A lowering has no kernel for this step; the text says why. It is then cut shorter, or left to the interpreter."""


class Layouts(NamedTuple):
    """What a step wants of the values that it reads and makes; None where it takes any."""

    inputs: Mapping[str, Layout | None]
    outputs: Mapping[str, Layout | None]


@dataclass
class Site:
    """What a lowering sees when it makes its instructions.

    Parameters
    ----------
    graph
        Of nothing but the step; all sizes are known.
    places
        Where the values that the step reads and makes lie.
    layouts
        The layouts there.
    level
        The instructions that kernels may use.
    first_scratch
        Number of the first buffer that is free.
    """

    graph: Graph
    places: Mapping[str, Place]
    layouts: Mapping[str, Layout]
    level: Level
    first_scratch: int
    constants: list[Array] = field(default_factory=list[Array])
    scratch: list[int] = field(default_factory=list[int])

    def constant(self, array: Array) -> int:
        """The reference of an array that the Program keeps. It must be contiguous."""
        assert array.flags.c_contiguous
        self.constants.append(held(array))
        return self.constants[-1].ctypes.data

    def packed(self, constant: Constant, form: Hashable, pack: Callable[[], Array]) -> Array:
        """A constant in the form that kernels read; packed once for as long as a program holds it.

        Parameters
        ----------
        constant
            Its content.
        form
            What `pack` depends on besides the content.
        pack
            Makes it.
        """
        found = _packed.get((constant, form))
        if found is None:
            found = _packed[constant, form] = pack()
        return found

    def workspace(self, size: int) -> int:
        """The reference of so many bytes that are free for this step; what is in them is gone afterwards."""
        self.scratch.append(size)
        return reference(self.first_scratch + len(self.scratch) - 1)


class Lowering(ABC):
    """One step on its way to instructions. Making one raises :class:`Refused` where there is no kernel."""

    absorbs: ClassVar[frozenset[Epilogue]] = frozenset()
    """Which of what the ops absorb it can do."""
    takes_matrices: ClassVar[bool] = False
    """Whether it has kernels for a level with products of matrices; else it is given that of the vectors there."""
    by_rows: tuple[str, ...] = ()
    """Values that it reads row by row, each making a row of its one output; see `qbench.runtime.step.Rows`."""
    renames: ClassVar[bool] = False
    """Whether what it makes is the memory that it reads, whatever is stored there and whoever owns it."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        self.step, self.graph, self.level = step, graph, level
        self._lowered: tuple[object, tuple[Instruction, ...], Site] | None = None

    @cached_property
    def _made(self) -> _Made:
        return _Made.of(type(self), self.step, self.graph, self.level)

    @property
    def pointers(self) -> Mapping[str, tuple[int, ...]]:
        """The indices among its inputs that a run has to check, and what sizes their numbers point into."""
        return {}

    def before(self, layout: Layout) -> Layout:
        """How what it reads lies, of one that renames, where what it makes lies so."""
        return layout

    @abstractmethod
    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        """How the step wants its values to lie, given how those that it reads lie at home."""

    def lower(self, site: Site) -> tuple[Instruction, ...]:
        """The instructions; those of the last time where nothing has moved since."""
        where = dict(site.places), {name: site.layouts[name] for name in site.places}, site.first_scratch
        last = self._lowered
        if last is None or last[0] != where:
            made = tuple(self.instructions(site))
            self._lowered = last = where, made, site
        site.constants, site.scratch = last[2].constants, last[2].scratch
        return last[1]

    def once(self, form: Hashable, pack: Callable[[], Packed]) -> Packed:
        """What `pack` makes of the step's constants in a form: packed once, wherever places lie and whatever their
        sizes are; the form tells all else that it depends on."""
        if form not in self._made:
            self._made[form] = pack()
        return self._made[form]

    @abstractmethod
    def instructions(self, site: Site) -> Sequence[Instruction]:
        """The instructions, now that all places are known."""

    def alias(self, places: Mapping[str, Place], layouts: Mapping[str, Layout]) -> Mapping[str, Place] | None:
        """Where the outputs are if they are parts of the inputs' memory already; None if they need memory."""
        return None

    def joined(self) -> int | None:
        """For a concatenation: the axis along which inputs may be made in the output's memory at once."""
        return None


class _Made(dict[Hashable, Any]):
    """What lowerings of a step have made of its constants, for data of any size."""

    @classmethod
    def of(cls, kind: type[Lowering], step: Fused, graph: Graph, level: Level) -> _Made:
        """That of all lowerings of this kind, of equal steps, that are alive."""
        get, known = graph.constants.get, graph.qparams.get
        values = tuple((name, value.dtype, value.rank, get(name), known(name)) for name, value in graph.types.items())
        return _made.setdefault((kind, step, level, values), cls())


_made: WeakValueDictionary[Hashable, _Made] = WeakValueDictionary()

_packed: WeakValueDictionary[tuple[Constant, Hashable], Array] = WeakValueDictionary()
"""Packed constants by content and form, for as long as a program holds them."""

LOWERINGS: dict[str, list[tuple[int, type[Lowering]]]] = {}
"""By the op of a step's first node: what is tried, in this order."""

LoweringClass = TypeVar("LoweringClass", bound=type[Lowering])


def lowers(*kinds: type[Op], rank: int = 0) -> Callable[[LoweringClass], LoweringClass]:
    """Declare what steps a lowering is for.

    Parameters
    ----------
    kinds
        Declarations of the ops that a step may begin with, or what several of them are derived from.
    rank
        Where an op has several lowerings the lowest is tried first; those of higher rank take what it refuses. No two
        of an op have the same. :func:`dispatch` shows what comes of it.
    """

    def register(cls: LoweringClass) -> LoweringClass:
        wanted = {*kinds}
        for op in (op for op, declared in OPS.items() if not wanted.isdisjoint(declared.__mro__)):
            family = LOWERINGS.setdefault(op, [])
            family.append((rank, cls))
            family.sort(key=lambda entry: entry[0])
        return cls

    return register


def absorbed(op: str) -> frozenset[Epilogue]:
    """What some lowering can do behind an op within one step."""
    return frozenset[Epilogue]().union(*(cls.absorbs for _, cls in LOWERINGS.get(op, ())))


def lowering_of(step: Fused, graph: Graph, level: Level) -> Lowering:
    """The first lowering that takes a step; `graph` is of nothing but the step.

    Raises
    ------
    Refused
        There is none.
    """
    why = f"there is no kernel for {step.head.op}"
    for _, family in LOWERINGS.get(step.head.op, ()):
        if any(follows_as(node) not in family.absorbs for node in step.nodes[1:]):
            continue
        try:
            return family(step, graph, level if family.takes_matrices else level.vectors)
        except Refused as refusal:  # kept, it would hold on to all that its frames have
            why = str(refusal)
    raise Refused(why)


def dispatch() -> str:
    """The table of lowerings as text: each op that a step may begin with, and what is tried for it, in this order."""
    return "\n".join(f"{op}: {', '.join(cls.__name__ for _, cls in LOWERINGS[op])}" for op in sorted(LOWERINGS))


def instruction(kernel: Kernel, label: str, rows: Rows | None = None, /, **arguments: Any) -> Instruction:
    """One call of a kernel with all its arguments by name."""
    names = kernel.arguments.names or ()
    if set(arguments) != set(names):
        raise TypeError(f"{kernel.name} takes {sorted(names)}, not {sorted(arguments)}")
    values = np.recarray(1, kernel.arguments)
    values[0] = tuple(arguments[name] for name in names)
    return Instruction(kernel, values, label, rows)
