"""A program: a graph laid out for the machine, and how it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.ir.graph import Graph
from qbench.runtime.step import EXTERNAL, Instruction, Place, Step

__all__ = ["EXTERNAL", "Instruction", "Place", "Program", "Step"]


@dataclass(frozen=True, eq=False)
class Program:
    """A graph laid out for the machine: fused steps, packed weights, offsets into one arena. It never changes.

    A graph whose values have a symbol as their first size, such as ``N``, is laid out for one sample: the symbol is 1
    in all places, and a run goes through its samples. All sizes of other graphs are fixed: a run has one sample.

    Parameters
    ----------
    graph
        What was planned.
    steps
        In execution order.
    places
        Where each value lies that a step makes or reads; a value without a place was fused away.
    inputs, outputs
        Buffers of the graph's inputs and outputs that lie in the caller's memory: row-major arrays of the value's own
        type. An output that is not here is an input, a constant, or made by the interpreter.
    offsets
        int64[buffers]: where each buffer starts in the arena, or EXTERNAL for the caller's memory. Buffer 0 is
        address 0, for constants.
    arena_bytes
        Size of the arena; 128 bytes more are always readable.
    constants
        The arrays whose addresses the instructions hold.
    """

    graph: Graph
    steps: tuple[Step, ...]
    places: Mapping[str, Place]
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    offsets: NDArray[np.int64]
    arena_bytes: int
    constants: tuple[NDArray[Any], ...] = ()
