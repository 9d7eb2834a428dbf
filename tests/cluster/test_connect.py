"""Clusters on this machine, from beginning to end."""

from __future__ import annotations

import pytest

from qbench.cluster.connect import close


class Ending:
    """A cluster that ends with an error."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def close(self) -> None:
        raise self.error


def test_a_worker_that_died_does_not_spoil_the_end() -> None:
    close(Ending(KeyError("tcp://127.0.0.1:1")))
    with pytest.raises(OSError, match="gone"):
        close(Ending(OSError("gone")))
