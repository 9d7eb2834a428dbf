from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from qbench.calibration.statistics import Statistics
from qbench.data.dataset import Dataset
from qbench.data.load import load_data
from qbench.errors import DataError, SessionError
from qbench.frontends import load
from qbench.ir.build import rebuild
from qbench.ir.frozen import Constant
from qbench.quant.config import QuantConfig
from qbench.session import quantizer
from qbench.session.arrays import load_dataset, load_statistics, save_dataset, save_statistics, stored_arrays
from qbench.session.session import Session
from qbench.views.state import State
from qbench.views.workbench import workbench_view
from tests.networks import mlp, residual, samples
from tests.passes.graphs import array, graph, node, ops

GRAPH = mlp()
X, Y = samples(40, seed=2), np.random.default_rng(3).integers(0, 5, 40)
ROOT = Path(__file__).resolve().parents[2]


def session(path: Path, **options: object) -> Session:
    return Session(GRAPH, samples(30), (X, Y), path=path, **options)


def contents(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}


def test_everything_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    s = session(tmp_path / "s")
    s.override("dense_1", threshold=1.5)
    s.run()
    s.snapshot("good")
    s.override("dense_1", threshold=0.1)
    s.undo()
    monkeypatch.setattr(quantizer, "collect_blocks", None)  # statistics must come from the folder
    again = Session.resume(tmp_path / "s")
    assert again.history == s.history
    assert again.source == GRAPH
    assert again.report == s.report
    assert not again.is_stale
    assert again.snapshots == s.snapshots
    assert again.statistics == s.statistics
    report = again.run()
    assert (report.by_layer, report.output) == (s.report.by_layer, s.report.output)
    again.redo()
    assert again.encodings["relu_1"].threshold == 0.1


def test_a_session_that_was_never_run(tmp_path: Path):
    session(tmp_path / "s", config=QuantConfig().with_value("weights.axis", None))
    again = Session.resume(tmp_path / "s")
    assert again.config.weights.axis is None
    assert again.report is None
    assert again.run().output.top1 is not None


def test_the_same_model_goes_on_in_the_same_folder(tmp_path: Path):
    s = session(tmp_path / "s")
    s.override("dense_1", threshold=1.5)
    s.run()
    s.snapshot("tuned")
    tuned = s.config
    same = session(tmp_path / "s", config=tuned)
    assert same.history == s.history
    assert same.report == s.report
    assert same.snapshots == s.snapshots
    again = Session(GRAPH, samples(8), X[:5], path=tmp_path / "s")
    assert again.config == QuantConfig.of_preset()
    assert str(again.diff()) == "nothing changed"
    assert again.report is None, "it was of other data"
    assert again.compare("tuned").iloc[-1]["agreement_before"] <= 1
    again.undo()
    assert again.config == tuned
    resumed = Session.resume(tmp_path / "s")
    assert resumed.config == tuned
    assert resumed.run().output.samples == 5
    assert len(list((tmp_path / "s").glob("calibration-*"))) == 1


def test_another_models_session_is_refused_and_not_touched(tmp_path: Path):
    session(tmp_path / "s").run()
    before = contents(tmp_path / "s")
    other = rebuild(GRAPH, constants={**GRAPH.constants, "dense_0.bias": Constant(np.zeros(16, np.float32))})
    for model in (other, mlp(sizes=(12, 4))):
        with pytest.raises(SessionError, match="session of another model"):
            Session(model, samples(3), path=tmp_path / "s")
    assert contents(tmp_path / "s") == before


def test_a_foreign_folder_is_refused_and_not_touched(tmp_path: Path):
    (tmp_path / "thesis.tex").write_text("precious")
    for make in (lambda: session(tmp_path), lambda: Session.resume(tmp_path)):
        with pytest.raises(SessionError, match="holds no qbench session"):
            make()
    with pytest.raises(SessionError, match="holds no qbench session"):
        session(tmp_path / "thesis.tex")
    with pytest.raises(SessionError, match="holds no qbench session"):
        Session.resume(tmp_path / "nothing")
    assert contents(tmp_path) == {"thesis.tex": b"precious"}


def test_an_empty_folder_is_used(tmp_path: Path):
    (tmp_path / "s").mkdir()
    session(tmp_path / "s")
    assert Session.resume(tmp_path / "s").source == GRAPH
    assert [p.name for p in tmp_path.iterdir()] == ["s"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_folder_that_cannot_be_written(tmp_path: Path):
    tmp_path.chmod(0o500)
    with pytest.raises(SessionError, match="cannot save the session"):
        session(tmp_path / "s")


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    s = session(tmp_path / "s")
    s.override("dense_1", threshold=1.5)
    saved = s.history

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        with pytest.raises(SessionError, match="No space left on device"):
            s.override("dense_1", threshold=2.5)
    assert Session.resume(tmp_path / "s").history == saved
    assert s.config.tensors["relu_1"].threshold == 2.5, "in memory the edit is made"
    s.snapshot("later")
    s.undo()
    s.redo()
    assert Session.resume(tmp_path / "s").config == s.config


def test_statistics_that_cannot_be_saved_are_kept_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    s = session(tmp_path / "s")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(quantizer, "save_statistics", full)
        with pytest.raises(SessionError, match=r"cannot save the session's statistics: .*No space left on device"):
            s.run()
    monkeypatch.setattr(quantizer, "collect_blocks", None)  # not again
    assert s.run() == Session.resume(tmp_path / "s").report


def test_a_second_session_at_the_same_path_loses_nothing_of_the_first(tmp_path: Path):
    a = session(tmp_path / "s")
    b = Session.resume(tmp_path / "s")
    a.override("dense_1", threshold=1.5)
    a.snapshot("mine")
    for change in (lambda: b.override("dense_1", threshold=2.5), b.undo, lambda: b.snapshot("other")):
        with pytest.raises(SessionError, match="was changed by another session"):
            change()
    assert b.run().layer("dense_1").threshold != 1.5, "in memory it goes on"
    a.override("dense_0", threshold=3.0)
    again = Session.resume(tmp_path / "s")
    assert (again.history, again.snapshots) == (a.history, a.snapshots)


def test_a_link_to_an_empty_folder_is_followed(tmp_path: Path):
    (tmp_path / "there").mkdir()
    (tmp_path / "here").symlink_to("there")
    session(tmp_path / "here").run()
    assert (tmp_path / "here").is_symlink()
    assert Session.resume(tmp_path / "there").report == Session.resume(tmp_path / "here").report


@pytest.mark.parametrize("how", ["truncated", "empty", "noise", "missing"])
def test_each_damaged_file_is_one_clear_error(tmp_path: Path, how: str):
    s = session(tmp_path / "s")
    s.run()
    s.snapshot("a")
    for name, data in contents(tmp_path / "s").items():
        if (name in ("report.json", "snapshots.json") and how == "missing") or (
            name.startswith("statistics") and how == "missing"
        ):
            continue  # as if it had not been written yet
        path = tmp_path / "s" / name
        damaged = {"truncated": data[: len(data) // 2], "empty": b"", "noise": b"\x80noise" * 40}.get(how)
        if damaged is None:
            path.unlink()
        else:
            path.write_bytes(damaged)
        with pytest.raises(SessionError):
            len(Session.resume(tmp_path / "s").statistics)
        path.write_bytes(data)
    assert Session.resume(tmp_path / "s").report == s.report


def test_a_newer_format_says_so(tmp_path: Path):
    session(tmp_path / "s")
    manifest = tmp_path / "s" / "session.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"version": 2}))
    with pytest.raises(SessionError, match="version"):
        Session.resume(tmp_path / "s")


def test_changed_data_is_noticed(tmp_path: Path):
    session(tmp_path / "s")
    for name in ("calibration", "evaluation"):
        (file,) = (tmp_path / "s").glob(f"{name}-*/00000000.npz")
        good = file.read_bytes()
        np.savez(file, input0=-X)
        with pytest.raises(SessionError, match=f"the {name} data was changed"):
            Session.resume(tmp_path / "s")
        file.write_bytes(good)
    (labels,) = (tmp_path / "s").glob("evaluation-*/labels.npy")
    np.save(labels, np.zeros(40, np.int64))
    with pytest.raises(SessionError, match="labels were changed"):
        Session.resume(tmp_path / "s")


@pytest.mark.parametrize("data", [X, [X[:7], X[7:]], [{"x": X[i : i + 1]} for i in range(40)]])
def test_data_sets_come_back(tmp_path: Path, data: object):
    saved = Dataset(GRAPH, data, Y)
    save_dataset(saved, tmp_path / "d")
    loaded = load_dataset(GRAPH, tmp_path / "d", "calibration", saved.digest)
    assert (loaded.digest, loaded.labels_digest, loaded.samples) == (saved.digest, saved.labels_digest, 40)


def test_statistics_come_back(tmp_path: Path):
    statistics = {
        "<script>/../\n" + "n" * 10_000: Statistics.of(X),
        "": Statistics.of(np.zeros(3, np.float32)),
        "tiny": Statistics.of(np.array([1e-45, -1e-40], np.float32)),
    }
    save_statistics(statistics, tmp_path / "s.npz")
    assert load_statistics(tmp_path / "s.npz") == statistics
    save_statistics({}, tmp_path / "s.npz")
    assert load_statistics(tmp_path / "s.npz") == {}


@pytest.mark.parametrize(("seed", "imported"), [(0, ()), (1, ()), (2, ("imported",))])
def test_a_killed_process_loses_nothing_that_it_was_told_is_done(tmp_path: Path, seed: int, imported: tuple[str, ...]):
    """Killed at any moment: while it starts and first saves, calibrates, runs, or saves an edit."""
    path, chance, done = tmp_path / "s", random.Random(seed), 0
    for attempt in range(5):
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.session.killed", str(path), *imported],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        said = "".join(child.stdout.readline() for _ in range(attempt - 1))  # made, edited, ran: the later the further
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=chance.uniform(0, 0.4) if said else chance.uniform(0.5, 2))
        child.kill()
        said += child.communicate()[0]
        told = [int(line.split()[1]) for line in said.splitlines() if line.startswith("edited ")]
        if not path.exists():
            assert not told
            continue
        session = Session.resume(path)
        thresholds = [edit.config.tensors["relu_1"].threshold for edit in session.history.edits[1:]]
        assert thresholds == [(i + 1) / 8 for i in range(len(thresholds))]
        assert len(thresholds) - max([done, *told]) in (0, 1)  # killed after the edit was saved, before it was told
        done = len(thresholds)
        assert session.run().layer("relu_1").chosen_by
    assert done > 0


def test_what_8_bits_can_hold_is_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    calls: list[float] = []

    def measured(*_: object) -> float:
        calls.append(24.0)
        return 24.0

    monkeypatch.setattr("qbench.session.quantizer.measure_least_db", measured)
    s = session(tmp_path / "s")
    assert s.quantized().config.activations.least_db == 24.0 and s.config.activations.least_db == "measured"
    s.override("relu_1", threshold=0.5)
    s.run()
    again = Session.resume(tmp_path / "s")
    assert again.quantized().config.activations.least_db == 24.0 and len(calls) == 1
    again.config = again.config.with_value("activations.least_db", None)
    assert again.quantized().config.activations.least_db is None and len(calls) == 1


def test_weights_are_rounded_by_default_once_and_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("qbench.search.rounding._GOOD_DB", 200.0)
    monkeypatch.setattr("qbench.search.rounding.LEAST_GAIN_DB", -200.0)
    s = session(tmp_path / "s")
    first = s.quantized()
    assert "rounded sequentially" in first.encodings["dense_1.weight"].reason
    nearest = s.config.with_value("weights.rounding", "nearest")
    s.config, made = nearest, s.quantized
    assert made().graph != first.graph
    s.config = s.config.with_value("weights.rounding", "measured").override_tensor("dense_1.weight", dtype="int4")
    assert "rounded sequentially" not in made().encodings["dense_1.weight"].reason
    s.undo()
    s.undo()
    monkeypatch.setattr(quantizer, "measure_rounding", None)  # what was found must come from the folder, and stay
    again = Session.resume(tmp_path / "s")
    assert again.quantized().graph == first.graph and again.encodings == s.encodings
    again.override("relu_0", threshold=0.7)
    assert again.encodings["dense_1.weight"] == first.encodings["dense_1.weight"]
    (saved,) = (tmp_path / "s").glob("*.rounded.npz")
    saved.write_bytes(saved.read_bytes()[:-40])
    with pytest.raises(SessionError, match=r"rounded weights cannot be read: .*they are rounded again"):
        Session.resume(tmp_path / "s").quantized()


def test_images_are_referred_to(tmp_path: Path):
    (tmp_path / "images").mkdir()
    for number in range(40):
        pixels = np.random.default_rng(number).integers(0, 256, (6, 7, 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / "images" / f"{number:02d}.png")
    x = load_data(tmp_path / "images", std=128).x
    session = Session(residual(), x, path=tmp_path / "s")
    report = session.run(False)
    assert not [*(tmp_path / "s").glob("calibration-*/*.npz")]
    again = Session.resume(tmp_path / "s")
    assert again.run(False).output == report.output
    (tmp_path / "images" / "39.png").unlink()
    missing = Session.resume(tmp_path / "s")  # reads no image
    missing.override("conv_1", threshold=1.0)
    with pytest.raises(DataError, match=r"39\.png"):
        missing.run(False)


def test_a_model_is_called_as_its_file_wherever_it_comes_from(tmp_path: Path):
    graph = replace(GRAPH, file="net.v2")
    assert (GRAPH.title, graph.title, graph.name) == ("mlp", "net.v2", "mlp")
    assert graph == GRAPH  # what it is called is no part of what it is
    Session(graph, samples(30), path=tmp_path / "s").run(False)
    assert workbench_view(State.of(Session.resume(tmp_path / "s"))).title == "net.v2"
    session(tmp_path / "s")  # goes on: it is the same model


def test_a_file_whose_name_is_no_text_comes_back(tmp_path: Path, data_dir: Path):
    path = tmp_path / os.fsdecode(b"n\xff<b>.onnx")
    path.write_bytes((data_dir / "mnist_mlp.onnx").read_bytes())
    graph = load(path)
    assert graph.title == "n?<b>"
    Session(graph, np.zeros((2, *map(int, graph.types[graph.inputs[0]].shape[1:])), np.float32), path=tmp_path / "s")
    assert Session.resume(tmp_path / "s").source.title == "n?<b>"


def test_a_session_of_before_a_pass_keeps_the_nodes_that_it_would_fold(tmp_path: Path):
    one = np.float32([2])
    scaled = node("l", "nn.dense", "x", "w"), node("m", "multiply", "l", "s"), node("y", "nn.relu", "m")
    g = graph(*scaled, x=("N", 5), w=array(6, 5), s=one)
    old = Session(g, samples(30)[:, :5], path=tmp_path / "s", fold_affine=False)
    old.override("l", threshold=1.5)
    report = old.run()
    manifest = tmp_path / "s" / "session.json"
    said = json.loads(manifest.read_text())
    assert said.pop("fold_affine") is False
    manifest.write_text(json.dumps(said))  # as it was written then
    again = Session.resume(tmp_path / "s")
    assert ops(again.prepared) == ["nn.dense", "multiply", "nn.relu"]
    assert again.run().output == report.output
    Session(g, samples(30)[:, :5], path=tmp_path / "new")
    assert ops(Session.resume(tmp_path / "new").prepared) == ["nn.dense", "nn.relu"]


@pytest.mark.parametrize(
    ("part", "more"), [("report.json", "it is measured again"), ("snapshots.json", ""), ("history.json", "")]
)
def test_a_damaged_part_is_named(tmp_path: Path, part: str, more: str):
    s = session(tmp_path / "s")
    s.run()
    s.snapshot("kept")
    (tmp_path / "s" / part).write_text('{"version": 1}')
    with pytest.raises(SessionError, match=rf"{part} of the session at '.*/s': .*cannot be read.*{more}"):
        Session.resume(tmp_path / "s")
    if more:
        (tmp_path / "s" / part).unlink()
        assert Session.resume(tmp_path / "s").run().output == s.report.output


def test_a_flipped_bit_in_the_directory_of_arrays_is_damage(tmp_path: Path):
    """It makes zipfile ask for a password, or for a way to unpack that nobody knows."""
    np.savez(tmp_path / "a.npz", x=np.arange(3))
    whole = (tmp_path / "a.npz").read_bytes()
    entry = whole.index(b"PK\x01\x02")
    for place, byte in ((entry + 8, whole[entry + 8] | 1), (entry + 10, 99)):
        (tmp_path / "a.npz").write_bytes(whole[:place] + bytes([byte]) + whole[place + 1 :])
        with pytest.raises(ValueError, match=r"a\.npz is damaged: "):
            stored_arrays(tmp_path / "a.npz")


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04"])
def test_damaged_statistics_say_what_to_do(tmp_path: Path, content: bytes):
    session(tmp_path / "s").run(progress=False)
    (path,) = (one for one in (tmp_path / "s").glob("statistics-*.npz") if "rounded" not in one.name)
    path.write_bytes(content)
    with pytest.raises(
        SessionError, match=rf"{path.name}.* is damaged: .*; without that file they are collected again"
    ):
        Session.resume(tmp_path / "s").run(progress=False)
    path.unlink()
    Session.resume(tmp_path / "s").run(progress=False)
