"""Steps through which large values pass row by row: side by side, a few rows can go through all of them at a time."""

import math
from collections.abc import Sequence
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
        if isinstance(step, Copy) or step.task.lowering is None or step.task.lowering.by_rows is None:
            continue
        value = step.task.lowering.by_rows
        read = step.reads.get(value, "")  # no place has what is constant
        times = sum(node.inputs.count(value) for node in step.task.step.nodes)
        alone = readers.get(read) == [step] and times == 1 and read not in laid_out.graph.outputs
        chain = ends.get(read) if alone else None
        if chain is None:
            found.append(chain := [])
        chain.append(step)
        ends[step.task.step.outputs[0]] = chain
    return [chain for chain in found if any(_size(laid_out, step) >= LARGE for step in chain[:-1])]


def _size(laid_out: LaidOut, step: Laid) -> int:
    """Bytes of what a step makes."""
    graph, (made,) = laid_out.graph, step.task.step.outputs
    return math.prod(shape_of(graph, made)) * numpy_dtype(graph.types[made].dtype).itemsize


def side_by_side(steps: Sequence[Copy | Laid], chain: Sequence[Laid]) -> list[Copy | Laid]:
    """The steps of a chain one after the other: those in between do not read what these make, and come before."""
    first, last = steps.index(chain[0]), steps.index(chain[-1])
    between = [step for step in steps[first:last] if step not in chain]
    return [*steps[:first], *between, *chain, *steps[last + 1 :]]


def is_linked(steps: Sequence[Step]) -> bool:
    """Whether steps end in instructions that go by rows, and each of these reads the rows that the last one made."""
    walked: list[Instruction] = []
    for step in steps:
        own = [instruction for instruction in step.instructions if instruction.rows is not None]
        if not own or [*step.instructions[-len(own) :]] != own:
            return False
        walked += own
    return all(_follows(*pair) for pair in pairwise(walked))


def _follows(one: Instruction, other: Instruction) -> bool:
    made, read = one.rows, other.rows
    assert made is not None and read is not None
    place, pitch = one.arguments[0][made.makes], made.pitches[made.makes]
    alike = made.groups * made.count == read.groups * read.count
    return alike and (other.arguments[0][read.reads[0]], read.pitches[read.reads[0]]) == (place, pitch)
