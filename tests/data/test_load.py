"""Data from files: what comes out is what was stored, and what is wrong is said."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from qbench.data.images import ImageFolder
from qbench.data.load import load_data
from qbench.data.shards import Shards
from qbench.errors import DataError

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 8, 3), np.uint8)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    images = tmp_path / "images"
    (images / "b").mkdir(parents=True)
    Image.fromarray(PIXELS).save(images / "b" / "1.png")
    Image.fromarray(255 - PIXELS).save(images / "a.PNG")
    (images / "notes.txt").write_text("no image")
    return images


def array(data: Any, index: int = 1) -> np.ndarray:
    return data.x[index]


def test_npz_with_and_without_labels(tmp_path: Path) -> None:
    x, y = np.float32([[1], [2]]), np.uint8([3, 4])
    np.savez(tmp_path / "both.npz", x=x, y=y)
    np.savez_compressed(tmp_path / "alone.npz", x=x)
    np.savez(tmp_path / "named.npz", a=x, b=x, y=y)
    both, alone, named = (load_data(tmp_path / f"{name}.npz") for name in ("both", "alone", "named"))
    np.testing.assert_array_equal(both.x, x)
    np.testing.assert_array_equal(both.y, [3, 4])
    assert both.y is not None and both.y.dtype == np.int64
    assert alone.y is None
    assert isinstance(named.x, dict) and list(named.x) == ["a", "b"]


@pytest.mark.parametrize("dtype", ["float32", "uint8", "int64", "float16", "bool"])
def test_npy_keeps_its_dtype(tmp_path: Path, dtype: str) -> None:
    np.save(tmp_path / "x.npy", np.ones((2, 3), dtype))
    samples = load_data(str(tmp_path / "x.npy"))
    assert samples.y is None
    assert isinstance(samples.x, np.ndarray) and samples.x.dtype == dtype


def test_float64_becomes_float32(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([0.1, 1e300]))
    samples = load_data(tmp_path / "x.npy")
    np.testing.assert_array_equal(samples.x, np.float32([0.1, np.inf]))


@pytest.mark.parametrize("name", ["X.NPZ", "X.NPY"])
def test_names_in_capitals(tmp_path: Path, name: str) -> None:
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    with (tmp_path / name).open("wb") as file:
        np.savez(file, x=x) if name == "X.NPZ" else np.save(file, x)
    np.testing.assert_array_equal(load_data(tmp_path / name).x, x)
    folder = load_data(tmp_path).x
    assert isinstance(folder, Shards)
    np.testing.assert_array_equal(np.concatenate([*folder]), x)


@pytest.mark.parametrize("path", [None, np.zeros((3, 2))])
def test_what_is_no_path(path: Any) -> None:
    with pytest.raises(DataError, match=r"data is read from a path, not .*; a session takes arrays as they are"):
        load_data(path)


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return (pytest.fail, ("unpickled",))

    np.savez(tmp_path / "x.npz", x=np.array([{}, {}], object))
    np.save(tmp_path / "x.npy", np.array([{}, {}], object))
    (tmp_path / "p.npy").write_bytes(pickle.dumps(Bomb()))
    (tmp_path / "p.npz").write_bytes(pickle.dumps(Bomb()))
    for name in ("x.npz", "x.npy", "p.npy", "p.npz"):
        with pytest.raises(DataError, match=f"cannot read arrays from .*{name}"):
            load_data(tmp_path / name)


@pytest.mark.parametrize("name", ["x.npz", "x.npy"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_files_are_errors_at_worst(tmp_path: Path, name: str, data: st.DataObject) -> None:
    x = np.arange(20, dtype=np.float32)
    path = tmp_path / name
    if name == "x.npz":
        np.savez_compressed(path, x=x)
    else:
        np.save(path, x)
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        del content[place:]
    else:
        content[place] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        load_data(path)
    except DataError as error:
        assert name in str(error)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.npz", "cannot read arrays from .*missing.npz.*No such file"),
        (
            "missing",
            "nor a folder of images \\(and there is no such file or folder\\)",
        ),
        ("data.csv", "is neither .npz, .npy, .parquet, .tar nor a folder of images$"),
        ("only_y.npz", "has no array x"),
        ("text.npz", "text.npz: this is no .npz archive, or one that is cut off"),
        ("float_y.npz", "must be class numbers \\(integers\\), not float32 of shape \\(1,\\)"),
        ("empty", "has no images"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "data.csv").write_text("1,2")
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.npz").write_text("x")
    np.savez(tmp_path / "only_y.npz", y=[1])
    np.savez(tmp_path / "float_y.npz", x=[1.0], y=[0.5])
    with pytest.raises(DataError, match=message):
        load_data(tmp_path / name)


def test_images_come_by_name_with_the_batch_axis(folder: Path) -> None:
    samples = load_data(folder)
    assert isinstance(samples.x, ImageFolder)
    assert len(samples.x) == 2
    assert [image.shape for image in samples.x] == [(1, 3, 6, 8)] * 2
    np.testing.assert_array_equal(array(samples, 0)[0], (255 - PIXELS).transpose(2, 0, 1))
    np.testing.assert_array_equal(array(samples, 1)[0], PIXELS.transpose(2, 0, 1))
    assert samples.y is None
    np.testing.assert_array_equal(samples.x[1:][-1], samples.x[1])


def test_mean_and_std_are_in_units_of_pixels(folder: Path) -> None:
    image = array(load_data(folder, mean=(1, 2, 3), std=2.0, channels="BGR", layout="NHWC"))
    assert image.dtype == np.float32
    np.testing.assert_array_equal(image[0], (PIXELS[:, :, ::-1].astype(np.float32) - np.float32([1, 2, 3])) / 2)


def test_grey_and_uint8(folder: Path) -> None:
    grey = array(load_data(folder, channels="L", dtype="uint8"))
    assert (grey.shape, grey.dtype) == ((1, 1, 6, 8), np.uint8)
    np.testing.assert_array_equal(grey[0, 0], np.asarray(Image.fromarray(PIXELS).convert("L")))


def test_size_covers_then_crops_the_centre(tmp_path: Path) -> None:
    stripes = np.zeros((10, 30, 3), np.uint8)
    stripes[:, 10:20] = 200
    Image.fromarray(stripes).save(tmp_path / "x.png")
    np.testing.assert_array_equal(array(load_data(tmp_path, size=10), 0), np.full((1, 3, 10, 10), 200, np.float32))
    scaled = array(load_data(tmp_path, size=(20, 30), dtype="uint8"), 0)
    wide = Image.fromarray(stripes).resize((60, 20), Image.Resampling.BICUBIC).crop((15, 0, 45, 20))
    np.testing.assert_array_equal(scaled[0], np.asarray(wide).transpose(2, 0, 1))


@pytest.mark.parametrize(
    ("inside", "table"),
    [
        (True, "file,class_index\na.PNG,7\nb/1.png,-2\nother.png,3\n"),
        (True, "label,filename\n7,a.PNG\n-2,1.png\n"),
        (False, '\ufefffile,class_index,name\nimages/a.PNG,7,"x, y"\nimages/b/1.png,-2,z\n'),
    ],
)
def test_labels(folder: Path, inside: bool, table: str) -> None:
    path = folder / "labels.csv" if inside else folder.parent / "images_labels.csv"
    path.write_text(table, encoding="utf-8")
    np.testing.assert_array_equal(load_data(folder).y, [7, -2])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("file,class_index\na.PNG,7\n", "has no row for 'b/1.png'"),
        ("file,class_index\na.PNG,seven\n", "line 2: 'seven' is not a class number"),
        ("file,class_index\na.PNG\n", "line 2: 'None' is not a class number"),
        ("a.PNG,7\nb/1.png,2\n", "must have the columns one of file, .*; it has 'a.PNG', '7'"),
        (f"file,class_index\na.PNG,{10**20}\n", "line 2: '1000.*' is not a class number"),
        ("file,class_index\na.PNG,7\na.PNG,7\na.PNG,8\n", "gives 'a.PNG' class 7 in line 2, and 8 in line 4"),
        ("", "must have the columns .*; it has no rows"),
        ("\xff", "must have the columns"),
    ],
)
def test_wrong_labels(folder: Path, table: str, message: str) -> None:
    (folder / "labels.csv").write_text(table, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        load_data(folder)


def test_a_folder_is_found_wherever_the_process_goes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "labels.csv").write_text("file,class_index\na.PNG,7\nb/1.png,2\nb/2.jpeg,1\n", encoding="utf-8")
    monkeypatch.chdir(folder.parent)
    data, wanted = load_data(folder.name), load_data(folder)
    monkeypatch.chdir("/")
    np.testing.assert_array_equal(data.x[0], wanted.x[0])
    assert data.y is not None
    np.testing.assert_array_equal(data.y, wanted.y)


def test_labels_that_are_not_text(folder: Path) -> None:
    (folder / "labels.csv").write_bytes(b"file\xff\xfe\x00")
    with pytest.raises(DataError, match="cannot read the labels"):
        load_data(folder)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mean": (1, 2)}, "mean needs one number or one per channel of RGB, not 2"),
        ({"std": (1, 2, 3), "channels": "L"}, "std needs one number or one per channel of L, not 3"),
        ({"std": 0}, "std positive"),
        ({"mean": float("nan")}, "must be finite"),
        ({"mean": 1, "dtype": "uint8"}, "takes uint8 pixels as they are"),
        ({"dtype": "int8"}, "float32 or uint8, not int8"),
        ({"size": 0}, "must be positive"),
        ({"size": (4,)}, "must be positive: one whole number, or height and width"),
        ({"size": "4x4"}, r"size= is a number or \(height, width\), not str"),
        ({"mean": None}, "mean=None: give one number, or one for each channel"),
        ({"std": "imagenet"}, "std='imagenet': give one number"),
        ({"layout": "NCWH"}, "neither NCHW nor NHWC"),
        ({"channels": "rgb"}, "neither RGB, BGR nor L"),
    ],
)
def test_options_that_mean_nothing(folder: Path, options: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_data(folder, **options)


def test_a_damaged_image_is_named(folder: Path) -> None:
    data = load_data(folder)
    whole = (folder / "b" / "1.png").read_bytes()
    for damaged in (b"", b"not an image", whole[: len(whole) // 2]):
        (folder / "b" / "1.png").write_bytes(damaged)
        with pytest.raises(DataError, match=r"cannot read the image .*1\.png"):
            array(data)


def test_images_of_several_sizes_need_a_size(folder: Path) -> None:
    Image.fromarray(PIXELS[:, :4]).save(folder / "c.png")
    assert array(load_data(folder), 1).shape == (1, 3, 6, 8)
    with pytest.raises(DataError, match=r"c\.png is 6 by 4, but the first image is 6 by 8: give a size"):
        array(load_data(folder), 2)
    assert array(load_data(folder, size=4), 2).shape == (1, 3, 4, 4)
    assert load_data(folder, size=[4, 4]).x == load_data(folder, size=4).x  # pyright: ignore[reportArgumentType]


def test_the_shared_images_and_labels(shared_data: Path) -> None:
    data = load_data(shared_data / "imagenet" / "calib", mean=127, std=128)
    assert len(data.x) == 200
    assert array(data, 0).shape == (1, 3, 224, 224)
    assert data.y is not None and data.y[:3].tolist() == [2, 8, 12]
