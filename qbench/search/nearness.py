"""How near a graph's outputs are to the float model's on a few samples: each output on its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qbench.data.portions import Feeds
from qbench.errors import DataError
from qbench.ir.dtypes import is_float
from qbench.ir.graph import Graph
from qbench.runtime.programs import Programs


@dataclass(frozen=True, eq=False)
class Exact:
    """What the float model answers.

    Parameters
    ----------
    feeds
        Samples.
    outputs
        By name of each output of real numbers: its values in all samples.
    """

    feeds: Sequence[Feeds]
    outputs: dict[str, NDArray[np.float64]]

    @classmethod
    def of(cls, graph: Graph, feeds: Sequence[Feeds]) -> Exact:
        """Run a float graph."""
        names = [name for name in graph.outputs if is_float(graph.types[name].dtype)]
        return cls(feeds, _outputs(graph, names, feeds))

    def decibels(self, graph: Graph) -> dict[str, float]:
        """SQNR of each output that another graph gives; minus infinity where NaN arises on the way.

        What is not finite in the float model, as a mask is, does not count.
        """
        try:
            given = _outputs(graph, [*self.outputs], self.feeds)
        except DataError:
            return dict.fromkeys(self.outputs, -math.inf)
        return {name: _decibels(wanted, given[name]) for name, wanted in self.outputs.items()}


def evenly(pieces: int, most: int) -> list[int]:
    """Numbers of so many pieces at most, evenly spread."""
    return np.linspace(0, pieces - 1, min(most, pieces)).round().astype(int).tolist()


def _outputs(graph: Graph, names: Sequence[str], feeds: Sequence[Feeds]) -> dict[str, NDArray[np.float64]]:
    programs = Programs(graph)
    runs = [programs.of(feed).run(feed) for feed in feeds]
    return {name: np.concatenate([run[name].astype(np.float64).ravel() for run in runs]) for name in names}


def _decibels(wanted: NDArray[np.float64], given: NDArray[np.float64]) -> float:
    finite = np.isfinite(wanted)
    signal, noise = float(np.square(wanted[finite]).sum()), float(np.square((wanted - given)[finite]).sum())
    if not math.isfinite(noise):
        return -math.inf
    return math.inf if noise == 0 else 10 * math.log10(signal / noise) if signal else -math.inf
