"""One cluster of two processes on this machine for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from distributed import Client

from qbench.cluster.connect import connected


@pytest.fixture(scope="package")
def client() -> Iterator[Client]:
    with connected("local:2") as client:
        yield client
