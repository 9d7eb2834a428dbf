"""Steps through which large values pass row by row: side by side, a few rows can go through all of them at a time."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from qbench.ir.dtypes import numpy_dtype
from qbench.runtime.layout import shape_of
from qbench.runtime.planner.lay_out import Copy, Laid, LaidOut
from qbench.runtime.step import Instruction, Step

LARGE = 1 << 20
"""Bytes of a value from which on it pays: what is smaller stays in the cache as a whole."""


def find_chains(laid_out: LaidOut) -> list[list[Laid]]:
    """Steps each of which reads row by row what the one before makes, and nobody else reads; some of it is large."""
    readers: dict[str, list[Copy | Laid]] = {}
    for step in laid_out.steps:
        for place in {step.source} if isinstance(step, Copy) else {*step.reads.values()}:
            readers.setdefault(place, []).append(step)
    found: list[list[Laid]] = []
    ends: dict[str, list[Laid]] = {}
    for step in laid_out.steps:
        if isinstance(step, Copy) or step.task.lowering is None or not step.task.lowering.by_rows:
            continue
        chain = next(filter(None, (ends.get(read) for read in _alone(laid_out, step, readers))), None)
        if chain is None:
            found.append(chain := [])
        chain.append(step)
        ends[step.task.step.outputs[0]] = chain
    return [chain for chain in found if any(_size(laid_out, step) >= LARGE for step in chain[:-1])]


def _alone(laid_out: LaidOut, step: Laid, readers: Mapping[str, Sequence[Copy | Laid]]) -> Iterator[str]:
    """Where those of the values lie that a step reads by rows which nobody else needs, nor the step a second time."""
    assert step.task.lowering is not None
    for value in step.task.lowering.by_rows:
        place = step.reads.get(value)  # None where it is a constant
        times = sum(node.inputs.count(value) for node in step.task.step.nodes)
        if place is not None and readers[place] == [step] and times == 1 and place not in laid_out.graph.outputs:
            yield place


def _size(laid_out: LaidOut, step: Laid) -> int:
    """Bytes of what a step makes."""
    graph, (made,) = laid_out.graph, step.task.step.outputs
    return math.prod(shape_of(graph, made)) * numpy_dtype(graph.types[made].dtype).itemsize


def side_by_side(steps: Sequence[Copy | Laid], chain: Sequence[Laid]) -> list[Copy | Laid]:
    """The steps of a chain one after the other: those in between do not read what these make, and come before."""
    first, last = steps.index(chain[0]), steps.index(chain[-1])
    between = [step for step in steps[first:last] if step not in chain]
    return [*steps[:first], *between, *chain, *steps[last + 1 :]]


def linked(steps: Sequence[Step]) -> Iterator[tuple[int, int]]:
    """First and last of the steps that pass on rows, as long as they do, by number.

    All but the first begin with what has nothing to do with rows, and end in instructions that go by them, each of
    which reads the rows that the last one made.
    """
    first = 0
    for number, pair in enumerate(pairwise([*steps, None]), 1):
        if not _passes_on(*pair):
            if number - first > 1:
                yield first, number - 1
            first = number


def _passes_on(one: Step | None, other: Step | None) -> bool:
    if one is None or other is None:
        return False
    first, second = _walked(one), _walked(other)
    both = [*first, *second]
    return bool(first and second) and all(b.reads_rows_of(a) is not None for a, b in pairwise(both))


def _walked(step: Step) -> Sequence[Instruction]:
    """The instructions at the end of a step that go by rows; nothing if there are others among them."""
    own = [instruction for instruction in step.instructions if instruction.rows is not None]
    return own if own and [*step.instructions[-len(own) :]] == own else ()
