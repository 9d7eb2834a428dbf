"""The largest number in each channel of some values, over the calibration data."""

from collections.abc import Mapping

import numpy as np

from qbench.data.dataset import Dataset
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Graph
from qbench.ir.op import Array
from qbench.progress import Cancel
from qbench.runtime.programs import Programs


def channel_peaks(
    graph: Graph, data: Dataset, axes: Mapping[str, int], cancel: Cancel | None = None
) -> FrozenMap[str, tuple[float, ...]]:
    """Run a float graph over all data.

    Parameters
    ----------
    graph, data
        A prepared graph, and what it is fed.
    axes
        By value name: the axis of its channels.
    cancel
        To stop it.

    Raises
    ------
    Cancelled
        `cancel` was set.
    """
    found: dict[str, Array] = {}
    programs = Programs(graph, keep=tuple(axes))
    for chunk in data.chunks() if axes else ():
        values = programs.of(chunk.feeds).run(chunk.feeds, keep=tuple(axes), cancel=cancel)
        for name, axis in axes.items():
            peaks = np.moveaxis(values[name], axis, 0).reshape(values[name].shape[axis], -1).max(axis=1)
            found[name] = np.maximum(found[name], peaks) if name in found else peaks
    return FrozenMap({name: tuple(peaks.tolist()) for name, peaks in found.items()})
