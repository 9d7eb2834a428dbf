"""What a planner makes: all that an executor has to know about a graph, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.ir.graph import Graph
from qbench.runtime.step import Instruction, Place, Step


@dataclass(frozen=True, eq=False)
class Plan:
    """A graph laid out for the machine: fused steps, packed weights, offsets into one arena. It never changes.

    A graph whose values have a symbol as their first size, such as ``N``, is laid out for one sample: the symbol is 1
    in all places, and a run goes through its samples. All sizes of other graphs are fixed: a run has one sample.

    Parameters
    ----------
    graph
        What was planned.
    single
        The same for one sample, where more follows from constants alone: what steps of the interpreter do.
    steps
        In execution order.
    places
        Where each value lies that a step makes or reads; a value without a place was fused away.
    inputs, outputs
        Buffers of the graph's inputs and outputs that lie in the caller's memory: row-major arrays of the value's own
        type. Other outputs are copied out of their places.
    offsets
        int64[buffers]: where each buffer starts in the arena, or EXTERNAL for the caller's memory. Buffer 0 is
        address 0, for constants.
    arena_bytes
        Size of the arena.
    gaps
        Where nothing may be written in the arena, each from its first byte up to the one behind its last. Only where
        memory is guarded.
    constants
        The arrays whose addresses the instructions hold.
    borders
        What fills the padding around a value that lies inside of one; the steps that make it do this by themselves.
    lowerings
        What made the instructions: as long as this program lives, planning an edited graph finds them again.
    chains
        Steps one after the other that may run a few rows at a time.
    """

    graph: Graph
    single: Graph
    steps: tuple[Step, ...]
    places: Mapping[str, Place]
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    offsets: NDArray[np.int64]
    arena_bytes: int
    gaps: tuple[tuple[int, int], ...] = ()
    constants: tuple[NDArray[Any], ...] = ()
    borders: Mapping[str, tuple[Instruction, ...]] = field(default_factory=dict[str, tuple[Instruction, ...]])
    lowerings: tuple[object, ...] = ()
    chains: tuple[tuple[Step, ...], ...] = ()

    @property
    def fallbacks(self) -> dict[str, str]:
        """The steps that no kernel does, which the interpreter runs, and why."""
        return {step.name: step.reason for step in self.steps if step.reason}
