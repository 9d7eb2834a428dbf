"""The least and the largest number in each channel of some values, over the calibration data."""

from collections.abc import Mapping

import numpy as np

from qbench.data.dataset import Dataset
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Graph
from qbench.ir.op import Array
from qbench.progress import Cancel
from qbench.runtime.programs import Programs


def channel_extremes(
    graph: Graph, data: Dataset, axes: Mapping[str, int], cancel: Cancel | None = None
) -> FrozenMap[str, tuple[tuple[float, ...], tuple[float, ...]]]:
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
    found: dict[str, tuple[Array, Array]] = {}
    programs = Programs(graph, keep=tuple(axes))
    for chunk in data.chunks() if axes else ():
        values = programs.of(chunk.feeds).run(chunk.feeds, keep=tuple(axes), cancel=cancel)
        for name, axis in axes.items():
            rows = np.moveaxis(values[name], axis, 0).reshape(values[name].shape[axis], -1)
            low, high = rows.min(axis=1), rows.max(axis=1)
            before = found.get(name, (low, high))
            found[name] = np.minimum(before[0], low), np.maximum(before[1], high)
    return FrozenMap({name: (tuple(low.tolist()), tuple(high.tolist())) for name, (low, high) in found.items()})
