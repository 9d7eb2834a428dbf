"""What goes wrong on a cluster is told in one sentence, with what to do."""

from __future__ import annotations

import sys

import pytest

from qbench.cluster import connect, workers
from qbench.cluster.connect import connected
from qbench.cluster.parcel import Missing, Parcel, call, versions
from qbench.cluster.where import executor_of
from qbench.errors import ClusterError


def test_no_scheduler_there(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connect, "_SECONDS", 0.1)
    with (
        pytest.raises(ClusterError, match=r"no Dask scheduler answers at 'tcp://127\.0\.0\.1:9': start one"),
        connected("tcp://127.0.0.1:9"),
    ):
        pass


def test_no_address():
    with pytest.raises(ClusterError, match="'here' is neither local, local:N nor an address"), connected("here"):
        pass


def test_another_version_is_named():
    with pytest.raises(ClusterError, match=r"a worker has numpy .* instead of 0\.1: install the same versions"):
        call({**versions(), "numpy": "0.1"}, Parcel("", None))


def test_a_function_that_workers_cannot_import():
    with pytest.raises(ClusterError, match="a worker cannot import 'nowhere': put the module where"):
        call(versions(), Parcel("nowhere", b"cnowhere\nf\n."))


def test_what_was_taken_back_is_missing():
    with pytest.raises(Missing):
        call(versions(), Parcel("never delivered", None))


def test_a_worker_without_the_extra():
    told = workers.told(ModuleNotFoundError("No module named 'cloudpickle'", name="cloudpickle"))
    assert str(told) == "a worker has no module cloudpickle: pip install 'qbench[cluster]' there"


def test_no_dask_here(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "qbench.cluster.workers")
    with pytest.raises(ClusterError, match=r"pip install 'qbench\[cluster\]'"), connected("local"):
        pass
    with pytest.raises(ClusterError, match=r"pip install 'qbench\[cluster\]'"):
        executor_of(object())
