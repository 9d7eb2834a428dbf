"""Rows of arrays in files are those of one array, wherever they are read from, and by whom."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

from qbench.data.dataset import Dataset
from qbench.data.load import load_data
from qbench.data.shards import Shards
from qbench.errors import DataError
from tests.networks import mlp, samples

X = samples(100)
CUTS = [7, 50]


@pytest.fixture(params=["npy", "zarr"])
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    for number, rows in enumerate(np.split(X, CUTS)):
        if request.param == "npy":
            np.save(tmp_path / f"{number}.npy", rows)
        else:
            zarr = pytest.importorskip("zarr")
            zarr.create_array(tmp_path / f"{number}.zarr", data=rows, chunks=(5, 12))
    return tmp_path


def test_the_same_data_as_in_one_array(folder: Path):
    data, whole = Dataset(mlp(), load_data(folder).x), Dataset(mlp(), X)
    assert (data.digest, data.samples) == (whole.digest, 100)
    assert np.array_equal(data.sample(57)["x"], X[57:58])


def test_parts_are_read_by_whoever_gets_them(folder: Path):
    x = load_data(folder).x
    assert isinstance(x, Shards)
    for first, last in ((0, 100), (3, 8), (49, 51), (50, 100)):
        part = x.part(first, last)
        assert len(part) == last - first
        assert np.array_equal(np.concatenate([*part]), X[first:last])
        assert np.array_equal(np.concatenate([*part.part(1, 2)]), X[first + 1 : first + 2])
        sent = pickle.dumps(part)
        assert len(sent) < 1000
        assert np.array_equal(np.concatenate([*pickle.loads(sent)]), X[first:last])  # noqa: S301  our own


def test_labels_beside_them(tmp_path: Path):
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "y.npy", np.arange(100) % 5)
    x, y = load_data(tmp_path)
    assert len(x) == 100
    assert np.array_equal(y, np.arange(100) % 5)


def test_they_are_taken_as_they_are(tmp_path: Path):
    np.save(tmp_path / "a.npy", X)
    with pytest.raises(DataError, match="leave out mean and std"):
        load_data(tmp_path, mean=127.5)


def test_doubles_become_floats(tmp_path: Path):
    np.save(tmp_path / "a.npy", X.astype(np.float64))
    assert next(iter(load_data(tmp_path).x)).dtype == np.float32


def test_what_is_damaged_or_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "a.npy").write_bytes(b"nothing of the kind")
    with pytest.raises(DataError, match=r"cannot read .*a\.npy"):
        len(load_data(tmp_path).x)
    np.save(tmp_path / "a.npy", np.float32(1))
    with pytest.raises(DataError, match="holds one number"):
        len(load_data(tmp_path).x)
    (tmp_path / "a.npy").rename(tmp_path / "y.npy")
    with pytest.raises(DataError, match=r"nothing but y\.npy"):
        load_data(tmp_path)
    (tmp_path / "b.zarr").mkdir()
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(DataError, match=r"pip install 'qbench\[zarr\]'"):
        len(load_data(tmp_path / "b.zarr").x)
