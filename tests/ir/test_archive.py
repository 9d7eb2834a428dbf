"""What is saved comes back the same, to the last bit of every constant; damage is noticed."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qbench.errors import ExportError, ModelError
from qbench.ir import archive
from qbench.ir.build import build
from qbench.ir.dtypes import DTYPES, DType, integer_range, numpy_dtype
from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph, Node, print_graph
from qbench.ir.mapped import Place, release
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from tests.strategies import HOSTILE_NAMES, constants, graphs


def saved_and_loaded(graph: Graph) -> Graph:
    with tempfile.TemporaryDirectory() as folder:
        archive.save(graph, Path(folder) / "m.qbench")
        assert [path.name for path in Path(folder).iterdir()] == ["m.qbench"]
        return archive.load(Path(folder) / "m.qbench")


def constants_only(values: dict[str, Constant]) -> Graph:
    return build("m", {}, list(values), [], values)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    weights = {"w": Constant(np.arange(8, dtype=np.float32).reshape(2, 4))}
    nodes = [Node("y", "nn.dense", ("x", "w"), ("y",))]
    graph = build("m", {"x": TensorType(("N", 4), "float32")}, ["y"], nodes, weights, {"y": QParams(0.1, 3, "uint8")})
    archive.save(graph, tmp_path / "m.qbench")
    return tmp_path / "m.qbench"


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(graphs(hostile=True, quantized=True))
def test_graphs_come_back(graph: Graph) -> None:
    again = saved_and_loaded(graph)
    assert again == graph
    assert print_graph(again) == print_graph(graph)


@settings(max_examples=100, deadline=None)
@given(constants())
def test_constants_come_back_bit_for_bit(constant: Constant) -> None:
    assert saved_and_loaded(constants_only({"w": constant})).constants["w"] == constant


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 5), (2, 0, 3)])
def test_every_dtype_and_shape(dtype: DType, shape: tuple[int, ...]) -> None:
    array = (np.arange(np.prod(shape, dtype=int)) % 16 - 8).reshape(shape).astype(numpy_dtype(dtype))
    assert saved_and_loaded(constants_only({"w": Constant(array)})).constants["w"] == Constant(array)


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
def test_four_bit_constants_take_half_a_byte(tmp_path: Path, dtype: DType) -> None:
    low, high = integer_range(dtype)
    every = Constant(np.arange(low, high + 1).astype(numpy_dtype(dtype)))
    archive.save(constants_only({"w": every}), tmp_path / "m.qbench")
    stored = safetensors.numpy.load_file(tmp_path / "m.qbench" / "constants.safetensors")
    assert stored["w"].nbytes == 8
    assert archive.load(tmp_path / "m.qbench").constants["w"] == every


def test_hostile_names() -> None:
    graph = constants_only({name: Constant(np.full(2, i, np.int8)) for i, name in enumerate(HOSTILE_NAMES)})
    assert saved_and_loaded(graph) == graph


def test_saving_again_replaces_the_archive(small: Path) -> None:
    other = constants_only({"v": Constant(np.zeros(1, np.int4 if hasattr(np, "int4") else np.int8))})
    archive.save(other, small)
    assert archive.load(small) == other
    assert list(small.parent.iterdir()) == [small]


def test_a_folder_that_is_no_archive_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(ExportError, match="not a qbench archive"):
        archive.save(constants_only({}), tmp_path / "mine")
    assert (tmp_path / "mine" / "letter.txt").read_text() == "dear"


def test_a_failed_save_leaves_the_old_archive(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = archive.load(small)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(ExportError, match="No space left"):
        archive.save(constants_only({}), small)
    monkeypatch.undo()
    assert archive.load(small) == before
    assert list(small.parent.iterdir()) == [small]


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match="cannot write the archive"):
        archive.save(constants_only({}), tmp_path / "file" / "m.qbench")


@pytest.mark.parametrize("name", ["manifest.json", "graph.txt", "constants.safetensors"])
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_damage_is_noticed(small: Path, name: str, data: st.DataObject) -> None:
    path = small / name
    original = path.read_bytes()
    graph = archive.load(small)
    place = data.draw(st.integers(0, len(original) - 1))
    damaged = bytearray(original)
    if data.draw(st.booleans()):
        damaged[place] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del damaged[place:]
    path.write_bytes(damaged)
    try:
        again = archive.load(small)
        assert name != "graph.txt"
        assert again == graph  # a blank or a name in the manifest or header that changes nothing
    except ModelError as error:
        assert str(small) in str(error)
    finally:
        path.write_bytes(original)


@pytest.mark.parametrize("name", ["manifest.json", "graph.txt", "constants.safetensors"])
def test_a_missing_file_is_named(small: Path, name: str) -> None:
    (small / name).unlink()
    with pytest.raises(ModelError, match=rf"{name}: No such file.*a qbench archive is a folder with"):
        archive.load(small)


def test_a_newer_format_is_refused(small: Path) -> None:
    manifest = json.loads((small / "manifest.json").read_text())
    (small / "manifest.json").write_text(json.dumps({**manifest, "version": 3, "more": 1}))
    with pytest.raises(ModelError, match=r"format 3; this qbench reads up to 2: update it"):
        archive.load(small)


def test_unknown_manifest_entries_are_named(small: Path) -> None:
    manifest = json.loads((small / "manifest.json").read_text())
    (small / "manifest.json").write_text(json.dumps({**manifest, "more": 1}))
    with pytest.raises(ModelError, match="more: Extra inputs"):
        archive.load(small)


def test_edited_text_is_noticed(small: Path) -> None:
    text = (small / "graph.txt").read_text()
    (small / "graph.txt").write_text(text.replace("0.1", "0.2"))
    with pytest.raises(ModelError, match="was changed after it was saved"):
        archive.load(small)


@pytest.fixture
def mapped(tmp_path: Path) -> Path:
    """An archive of a constant that lies behind others in a file of the model's own."""
    np.arange(100, dtype=np.float32).tofile(tmp_path / "weights.bin")
    array = np.asarray(np.memmap(tmp_path / "weights.bin", np.float32, "r", 8, (5, 6)))[1:]
    archive.save(constants_only({"w": Constant(array)}), tmp_path / "m.qbench")
    return tmp_path / "m.qbench"


def test_constants_in_files_stay_there(mapped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (mapped / "constants.safetensors").stat().st_size < 4 * 24
    monkeypatch.setattr("qbench.ir.frozen.hashlib", None)  # nothing is read while the file looks as it was
    constant = archive.load(mapped).constants["w"]
    monkeypatch.undo()
    assert Place.of(constant.array) is not None
    assert constant == Constant(np.arange(8, 32, dtype=np.float32).reshape(4, 6))
    release(constant.array)
    assert constant.array[0, 0] == 8


def test_a_file_of_constants_that_is_touched_or_changed_or_gone(mapped: Path) -> None:
    weights, before = mapped.parent / "weights.bin", archive.load(mapped)
    os.utime(weights, ns=(1, 1))
    assert archive.load(mapped) == before
    np.arange(1, 101, dtype=np.float32).tofile(weights)
    with pytest.raises(ModelError, match=r"lies in '.*weights\.bin', which was changed after the archive was saved"):
        archive.load(mapped)
    weights.write_bytes(b"")
    with pytest.raises(ModelError, match=r"weights\.bin', which cannot be read: .*; put the file back"):
        archive.load(mapped)
    weights.unlink()
    with pytest.raises(ModelError, match=r"weights\.bin', which cannot be read: .*no such file.*; put the file back"):
        archive.load(mapped)
