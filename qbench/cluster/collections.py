"""Dask's own collections."""

from typing import Any


def culled(collection: Any) -> Any:
    """The same collection, with no more than it is made of: what travels to a worker."""
    from dask.base import optimize

    return optimize(collection)[0]


def computed(collection: Any) -> Any:
    """What it holds, computed in this thread: work is spread by whoever asks."""
    return collection.compute(scheduler="synchronous")
