"""Ways to run a batch: a runtime may be at its fastest on the whole, or on one sample in each thread."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.bench.engines import Outputs, Task, read_arrays

_TRIALS = 3


@dataclass(frozen=True)
class Strategy:
    """How a model is run, and what was set for it."""

    settings: Mapping[str, object]
    run: Callable[[], Outputs]


def fastest(strategies: Sequence[Strategy]) -> Strategy:
    """Try all of them, and choose."""
    return min(strategies, key=_seconds) if len(strategies) > 1 else strategies[0]


def _seconds(strategy: Strategy) -> float:
    strategy.run()
    times: list[float] = []
    for _ in range(_TRIALS):
        start = perf_counter()
        strategy.run()
        times.append(perf_counter() - start)
    return min(times)


def samples(task: Task) -> list[dict[str, NDArray[Any]]]:
    """The arrays of a task's batch, one sample each; none where the batch cannot be divided, or is a single sample."""
    arrays = read_arrays(task.inputs)
    counts = {len(arrays[name]) for name in task.batched}
    if len(counts) != 1 or counts == {1}:
        return []
    return [
        {name: array[i : i + 1] if name in task.batched else array for name, array in arrays.items()}
        for i in range(counts.pop())
    ]


def joined(pieces: Sequence[Outputs]) -> Outputs:
    """The outputs of the whole batch."""
    return [np.concatenate([np.atleast_1d(array) for array in arrays]) for arrays in zip(*pieces, strict=True)]
