"""Which axis of an output counts samples: the first one, but where time comes first, as recurrent layers have it."""

import numpy as np

from qbench.ir.graph import Graph
from qbench.ir.op import Array


def sample_axis(graph: Graph, value: str) -> int:
    """The axis of a value that is as long as the inputs have samples: 0 where several are, or none.

    By a batch of an open size; of one sample, as recognizers of text lines are written, only in three dimensions.
    """
    shape = graph.types[value].shape
    batches = {kind.shape[0] for kind in graph.input_types().values() if kind.shape}
    axes = [axis for axis, size in enumerate(shape) if size in batches and (isinstance(size, str) or size == 1)]
    is_told = len(axes) == 1 and (isinstance(shape[axes[0]], str) or len(shape) == 3)
    return axes[0] if is_told else 0


def by_sample(graph: Graph, value: str, array: Array) -> Array:
    """What a graph gave of a value for some samples, one after the other along axis 0."""
    axis = sample_axis(graph, value)
    return np.moveaxis(array, axis, 0) if axis else array
