from __future__ import annotations

import gc
import weakref

import pytest

from qbench.errors import SessionError
from qbench.session.session import Session
from qbench.session.watchers import Watchers
from tests.networks import mlp, samples


class Counter:
    def __init__(self) -> None:
        self.count = 0

    def told(self) -> None:
        self.count += 1


def test_who_watches_is_told_until_it_is_gone():
    watchers, one, two, log = Watchers(), Counter(), Counter(), list[int]()
    watchers.add(one.told)
    watchers.add(two.told)
    watchers.add(lambda: log.append(1))
    watchers.tell()
    watchers.remove(two.told)
    watchers.remove(two.told)
    watchers.tell()
    assert (one.count, two.count, log) == (2, 1, [1, 1])
    gone = weakref.ref(one)
    del one
    gc.collect()
    assert gone() is None
    watchers.tell()
    assert log == [1, 1, 1]


def test_a_session_tells_of_every_change():
    session, watcher = Session(mlp(), samples(20)), Counter()
    session.watch(watcher.told)
    changes = [
        lambda: session.run(),
        lambda: session.override("relu_0", threshold=0.5),
        lambda: session.snapshot("a"),
        lambda: session.undo(),
        lambda: session.restore("a"),
        lambda: session.go_to(0),
        lambda: session.forget("a"),
    ]
    for i, change in enumerate(changes):
        change()
        assert watcher.count == i + 1
    session.unwatch(watcher.told)
    session.run()
    assert watcher.count == len(changes)


def test_what_a_watcher_sees_is_the_change():
    session = Session(mlp(), samples(20))
    seen = []
    session.watch(lambda: seen.append(len(session.config.tensors)))
    session.override("relu_0", threshold=0.5)
    assert seen == [1]


def test_snapshots_are_restored_and_forgotten():
    session = Session(mlp(), samples(20))
    session.override("relu_0", threshold=0.5)
    session.snapshot("a")
    session.undo()
    session.restore("a")
    assert session.config.tensors["relu_0"].threshold == 0.5
    assert session.history.edits[-1].label == "restore snapshot 'a'"
    session.forget("a")
    assert session.snapshots == {}
    for ask in (session.forget, session.restore):
        with pytest.raises(SessionError, match="no snapshot 'a'"):
            ask("a")


def test_several_layers_are_reset_as_one_edit():
    session = Session(mlp(), samples(20))
    session.override_many(["relu_0", "relu_1", "dense_1.weight"], symmetric=True)
    session.override("dense_2", keep_float=True)
    edits = len(session.history.edits)
    session.reset_many(["dense_2", "relu_1", "dense_1.weight", "bias_2"])
    assert (set(session.config.tensors), set(session.config.layers)) == ({"relu_0"}, set())
    assert len(session.history.edits) == edits + 1
    with pytest.raises(SessionError, match="none of 'relu_1' and 1 more"):
        session.reset_many(["relu_1", "bias_2"])
    with pytest.raises(SessionError, match="nothing to reset"):
        session.reset_many([])
