"""A cluster by its address, or on this machine."""

import re
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

from qbench.errors import ClusterError, shown

_SECONDS = 10  # that a scheduler has to answer
_PATIENCE = "1000 days"  # behind a death Dask gives a place up for good if its process happens to be away just then


@contextmanager
def connected(address: str) -> Generator[Any]:
    """A Dask client for as long as it is needed.

    Parameters
    ----------
    address
        Of a scheduler, such as ``tcp://10.0.0.1:8786``; or ``local`` or ``local:N``: N processes on this machine, which
        nobody else can reach (as many as it has processors).

    Raises
    ------
    ClusterError
        No such address, nobody there, or Dask is not installed.
    """
    try:
        import dask.config
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise ClusterError("a cluster needs Dask: pip install 'qbench[cluster]'") from error
    local = re.fullmatch(r"local(?::(\d+))?", address)
    if local is not None:
        workers = None if local[1] is None else max(1, int(local[1]))
        here: dict[str, Any] = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
        with dask.config.set({"distributed.deploy.lost-worker-timeout": _PATIENCE}):
            cluster = LocalCluster(n_workers=workers, threads_per_worker=1, **here)
            try:
                with Client(cluster) as client:
                    yield client
            finally:
                close(cluster)
        return
    if "://" not in address:
        raise ClusterError(
            f"--cluster {shown(address)} is neither local, local:N nor an address such as tcp://host:8786"
        )
    try:
        client = Client(address, timeout=_SECONDS)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"no Dask scheduler answers at {shown(address)}: start one there with `dask scheduler`, and workers with "
            "`dask worker ADDRESS`"
        ) from error
    with client:
        yield client


def close(cluster: Any) -> None:
    """Close a Dask cluster, workers of which may have died.

    At the end Dask raises a KeyError where it hears of a death when it has forgotten the worker already
    (``SpecCluster._update_worker_status`` of distributed 2026.8); its processes have ended by then.
    """
    with suppress(KeyError):
        cluster.close()
