"""Where work runs, as the user says it: an executor, a cluster, or nothing at all."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any, cast

from qbench.errors import ClusterError

__all__ = ["executor_of"]


def executor_of(cluster: object, executor: Executor | None = None) -> Executor | None:
    """The workers of a cluster (a ``dask.distributed.Client``), or the executor itself; None: this process.

    Raises
    ------
    ClusterError
        Both are given, Dask is not installed, or `cluster` is no client.
    """
    if cluster is None:
        return executor
    if executor is not None:
        raise ClusterError("executor= and cluster= both say where work runs; give one of them")
    try:
        from qbench.cluster.workers import Workers  # with Dask behind it
    except ImportError as error:
        raise ClusterError("cluster= needs Dask: pip install 'qbench[cluster]'") from error
    return Workers(cast("Any", cluster))
