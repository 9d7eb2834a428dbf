"""Rows of arrays in files are those of one array, wherever they are read from, and by whom."""

from __future__ import annotations

import io
import os
import pickle
import sys
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr
from PIL import Image

from qbench.calibration.blocks import blocks_of
from qbench.data.dataset import Dataset
from qbench.data.known import KNOWN
from qbench.data.load import load_data
from qbench.data.shards import Shards
from qbench.errors import DataError, SessionError
from qbench.session.session import Session
from tests.networks import mlp, samples

X = samples(100)
CUTS = [7, 50]


@pytest.fixture(params=["npy", "npz", "zarr", "parquet", "tar", "url"])
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> object:
    write = {"zarr": write_zarr, "npz": write_npz, "parquet": write_parquet, "tar": write_tar}.get(
        request.param, write_npy
    )
    for number, rows in enumerate(np.split(X, CUTS)):
        write(tmp_path / f"{number}", rows)
    return f"file://{tmp_path}" if request.param == "url" else tmp_path


def write_npy(path: Path, rows: np.ndarray) -> None:
    np.save(path.with_suffix(".npy"), rows)


def write_npz(path: Path, rows: np.ndarray) -> None:
    np.savez_compressed(path.with_suffix(".npz"), x=rows)


def write_zarr(path: Path, rows: np.ndarray) -> None:
    zarr.create_array(path.with_suffix(".zarr"), data=rows, chunks=(5, 12))


def write_parquet(path: Path, rows: np.ndarray) -> None:
    column = pa.FixedSizeListArray.from_arrays(rows.ravel(), rows.shape[1])
    pq.write_table(pa.table({"x": column}), path.with_suffix(".parquet"), row_group_size=9)


def write_tar(path: Path, rows: np.ndarray, labels: bool = False) -> None:
    with tarfile.open(path.with_suffix(".tar"), "w") as archive:
        for number, row in enumerate(rows):
            add(archive, f"{number:04d}.npy", npy(row))
            if labels:
                add(archive, f"{number:04d}.cls", str(number % 5).encode())


def add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def png(seed: int) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (6, 8, 3), np.uint8)).save(stream, "PNG")
    return stream.getvalue()


def test_images_and_classes_in_tars_and_parquet_are_those_of_a_folder(tmp_path: Path):
    for name in ("images", "tars", "columns"):
        (tmp_path / name).mkdir()
    for number in range(6):
        (tmp_path / "images" / f"{number}.png").write_bytes(png(number))
    for shard in (0, 3):
        with tarfile.open(tmp_path / "tars" / f"{shard}.tar", "w") as archive:
            for number in range(shard, shard + 3):
                add(archive, f"./{number}.cls", str(number % 4).encode())
                add(archive, f"./{number}.png", png(number))
    encoded = [{"bytes": png(number), "path": None} for number in range(6)]
    pq.write_table(pa.table({"image": encoded, "label": [n % 4 for n in range(6)]}), tmp_path / "columns" / "a.parquet")
    wanted = [*load_data(tmp_path / "images", mean=127.5, std=128, size=4).x]
    for name in ("tars", "columns"):
        x, y = load_data(tmp_path / name, mean=127.5, std=128, size=4)
        assert np.array_equal(np.concatenate([*x]), np.concatenate(wanted))
        assert np.array_equal(y, np.arange(6) % 4)


def test_several_inputs_by_name(tmp_path: Path):
    a, b = X[:10], X[:10, :3]
    np.savez(tmp_path / "1.npz", a=a, b=b, y=np.arange(10) % 3)
    with tarfile.open(tmp_path / "2.tar", "w") as archive:
        for number in range(10):
            add(archive, f"{number}.a.npy", npy(a[number]))
            add(archive, f"{number}.b.npy", npy(b[number]))
            add(archive, f"{number}.cls", b"1")
    x, y = load_data(tmp_path)
    rows = [*x]
    assert np.array_equal(np.concatenate([row["a"] for row in rows]), np.concatenate([a, a]))
    assert np.array_equal(np.concatenate([row["b"] for row in rows]), np.concatenate([b, b]))
    assert y is not None and y.tolist() == [*(np.arange(10) % 3), *[1] * 10]


def test_an_added_shard_costs_only_itself(tmp_path: Path):
    """Blocks of samples that were seen are known by their content: they are those of before."""
    rows = samples(700)
    for number in (0, 1):
        np.save(tmp_path / f"{number}.npy", rows[number * 300 : number * 300 + 300])
    before = [block.digest for block in blocks_of(Dataset(mlp(), load_data(tmp_path).x))]
    np.save(tmp_path / "2.npy", rows[600:])
    after = [block.digest for block in blocks_of(Dataset(mlp(), load_data(tmp_path).x))]
    assert before[:2] == after[:2]
    assert len(after) == 3


def test_of_an_added_shard_nothing_else_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """By what the file system says; and what a session has found, the next one knows."""
    read, rows, path = list[int](), samples(700), tmp_path / "s"
    whole = Shards._read

    def counted(shards: Shards, row: int, most: int) -> Any:
        found = whole(shards, row, most)
        read.extend(range(row, row + len(found)))
        return found

    monkeypatch.setattr(Shards, "_read", counted)
    (tmp_path / "data").mkdir()

    def shard(number: int, *, changed: int = 0) -> None:
        file = tmp_path / "data" / f"{number}.npy"
        np.save(file, rows[number * 300 : number * 300 + 300] + np.float32(changed))
        os.utime(file, (1, 1 + changed))

    def surveyed() -> set[int]:
        read.clear()
        data = load_data(tmp_path / "data").x
        session, seen = Session(mlp(), data, path=path), {*read}
        assert session._quantizer.calibration.digest == Dataset(mlp(), [*data]).digest
        return seen

    shard(0)
    shard(1)
    assert surveyed() == {*range(600)}
    KNOWN.clear()
    assert not surveyed()
    shard(2)
    assert surveyed() == {*range(576, 700)}  # from the chunk of 32 on that was not full
    shard(1, changed=1)
    assert surveyed() == {*range(288, 608)}  # with the rest of the chunks at both ends
    path.joinpath("calibration-0").mkdir()
    path.joinpath("calibration-0/files.json").write_text("{")
    with pytest.raises(SessionError, match=r"files\.json cannot be read"):
        surveyed()


def test_the_same_data_as_in_one_array(folder: str | Path):
    data, whole = Dataset(mlp(), load_data(folder).x), Dataset(mlp(), X)
    assert (data.digest, data.samples) == (whole.digest, 100)
    assert np.array_equal(data.sample(57)["x"], X[57:58])


def test_parts_are_read_by_whoever_gets_them(folder: str | Path):
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


def test_slices_are_those_of_an_array(folder: str | Path):
    x = load_data(folder).x
    assert isinstance(x, Shards)
    for piece in (slice(16), slice(3, 60), slice(-7, None), slice(90, 200), slice(8, 3)):
        assert np.array_equal(np.concatenate([*x[piece], X[:0]]), X[piece])
    assert np.array_equal(Dataset(mlp(), x[40:60]).sample(19)["x"], X[59:60])
    assert np.array_equal(np.asarray(x[-1]), X[-1:])
    with pytest.raises(DataError, match=r"in one piece, x\[a:b\], not in steps of 2"):
        x[::2]
    with pytest.raises(IndexError, match="there are 100 samples, and none of number -101"):
        x[-101]


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
    for name, content in (("c.tar", b"no tar"), ("c.parquet", b"no columns"), ("c.npz", b"no archive")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=f"cannot read .*{name}"):
            len(Shards((tmp_path / name,)))
        (tmp_path / name).unlink()
    with pytest.raises(DataError, match="nothing://a"):
        load_data("nothing://a")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(DataError, match=r"pip install 'qbench\[parquet\]'"):
        len(Shards((tmp_path / "c.parquet",)))
    (tmp_path / "b.zarr").mkdir()
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(DataError, match=r"pip install 'qbench\[zarr\]'"):
        len(load_data(tmp_path / "b.zarr").x)
