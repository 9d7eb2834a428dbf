"""Batches as a whole, or sample by sample: the same outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qbench.bench.engines import Task, engine, strategy, write_arrays
from qbench.bench.engines.strategy import Strategy, fastest, joined, samples
from qbench.frontends import load
from qbench.runtime.interpreter import call
from tests.frontends.models import classifier

X = np.arange(3 * 3 * 8 * 8, dtype=np.float32).reshape(3, 3, 8, 8) % 7


def task(folder: Path, threads: int = 2) -> Task:
    write_arrays(folder / "x.npz", {"x": X, "file": np.ones(2, np.float32)})
    return Task("", "float32", threads, str(folder / "x.npz"), {"N": 3}, ("x",))


def test_samples_are_cut_and_outputs_joined(tmp_path: Path) -> None:
    pieces = samples(task(tmp_path))
    assert [piece["x"].shape for piece in pieces] == [(1, 3, 8, 8)] * 3
    assert all(piece["file"].tolist() == [1, 1] for piece in pieces)
    np.testing.assert_array_equal(joined([[piece["x"]] for piece in pieces])[0], X)


def test_the_fastest_way_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    choices = [Strategy({"seconds": seconds}, list) for seconds in (3, 1, 2)]
    monkeypatch.setattr(strategy, "_seconds", lambda strategy: strategy.settings["seconds"])
    assert fastest(choices) is choices[1]
    assert fastest(choices[:1]) is choices[0]


@pytest.mark.parametrize("peer", ["onnxruntime", "openvino"])
@pytest.mark.parametrize("number", [0, 1])
def test_every_way_of_a_peer_gives_the_same(
    peer: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = pytest.importorskip(f"qbench.bench.engines.{peer}")
    pytest.importorskip(peer)
    monkeypatch.setattr(module, "fastest", lambda strategies: strategies[number])
    path = classifier(tmp_path)
    write_arrays(tmp_path / "x.npz", {"x": X})
    made = engine(peer, Task(str(path), "float32", 2, str(tmp_path / "x.npz"), {"N": 3}, ("x",)))
    np.testing.assert_allclose(made.run()[0], call(load(path), X), rtol=1e-4)
    np.testing.assert_allclose(made.run()[0], call(load(path), X), rtol=1e-4)
