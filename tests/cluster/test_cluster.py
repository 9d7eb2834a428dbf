"""One machine and a cluster of processes give the same, bit for bit, whatever happens to the workers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from distributed import Client
from PIL import Image

from qbench.cli import main
from qbench.cluster.workers import Workers
from qbench.data.dataset import Dataset
from qbench.data.load import load_data
from qbench.errors import Cancelled, ClusterError, DataError
from qbench.ir.archive import save
from qbench.passes.prepare import prepare
from qbench.quantize.sequential import round_sequentially
from qbench.session.session import Session
from tests.cluster.killing import Killer, check, found, images, ran
from tests.networks import mlp, residual, samples


def test_workers_killed_in_calibration_evaluation_and_search_change_nothing(client: Client):
    data = images()
    alone = ran(data)
    alone.run(False)
    killed = check(client, data, alone, found(alone), seed=0)
    assert {*killed} >= {"calibration", "evaluation", "search"}


def test_an_edit_a_sweep_and_a_search_on_a_cluster(client: Client):
    x = samples(300)
    both = [Session(mlp(), x, (x, np.arange(300) % 5), **where) for where in ({}, {"cluster": client})]
    for session in both:
        session.run(False)
        session.override("dense_1", threshold=1.5)
    reports = [session.run(False) for session in both]
    assert reports[0].by_layer == reports[1].by_layer
    assert reports[0].output == reports[1].output
    assert both[0].sensitivity(progress=False).equals(both[1].sensitivity(progress=False))
    tables = [session.repairs(progress=False).filter(regex="repair|sqnr|metric") for session in both]  # times differ
    assert len(tables[0].columns) > 2
    assert tables[0].equals(tables[1])


def write_images(folder: Path, count: int) -> Path:
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(count):
        Image.fromarray(rng.integers(0, 256, (6, 7, 3), np.uint8)).save(folder / f"{number:03d}.png")
    return folder


def test_workers_read_images_themselves(client: Client, tmp_path: Path):
    folder = load_data(write_images(tmp_path / "images", 70), std=128).x
    alone, there = (Session(residual(), folder, **where) for where in ({}, {"cluster": client}))
    assert len(pickled(there._quantizer.calibration)) < 20_000  # names of files, no pixels
    assert alone.run(False) == there.run(False)


def test_weights_are_rounded_by_what_workers_add_up_whoever_dies(client: Client, tmp_path: Path):
    images, graph = load_data(write_images(tmp_path / "images", 70), std=128).x, prepare(residual()).graph
    encodings = Session(residual(), images).encodings
    weights = {name: encoding for name, encoding in encodings.items() if name in graph.constants}
    data, killer, told = Dataset(graph, images), Killer(client.cluster, seed=0), list[int]()

    def tell(done: int, total: int) -> None:
        told.append(done)
        killer("rounding", done, total)

    alone = round_sequentially(graph, weights, data)
    assert alone
    assert round_sequentially(graph, weights, data, progress=tell, executor=Workers(client)) == alone
    assert told == [*range(1, len(alone) + 1)]  # no weight is rounded twice
    assert killer.killed


def pickled(data: Dataset) -> bytes:
    from qbench.cluster.parcel import packed

    return b"".join(packed(part)[0] for part in data.portions(32))


def test_a_file_that_changes_between_two_passes_is_named(client: Client, tmp_path: Path):
    folder = load_data(write_images(tmp_path / "images", 40), std=128).x
    session = Session(residual(), folder, cluster=client)
    changing, first = tmp_path / "images" / "035.png", tmp_path / "images" / "003.png"
    before = changing.read_bytes()
    Image.new("RGB", (7, 6)).save(changing)
    with pytest.raises(DataError, match=r"changed between two readings \(near sample 32\)"):
        session.run(False)
    changing.write_bytes(before)
    first.unlink()
    with pytest.raises(DataError, match=r"on a worker: .*003\.png.*at the same place on each machine"):
        session.run(False)


def test_what_cannot_be_sent_is_told(client: Client):
    with pytest.raises(ClusterError, match=r"cannot be sent to the workers of a cluster: .*lock"):
        Session(mlp(), Unsendable(), cluster=client)


class Unsendable:
    """Says that its parts can be sent, and has a lock in each."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter(samples(40)[:, None])

    def __len__(self) -> int:
        return 40

    def part(self, first: int, last: int) -> Unsendable:
        return self


def test_cancel(client: Client):
    event, session = threading.Event(), Session(residual(), images(), cluster=client)
    with pytest.raises(Cancelled):
        session.run(lambda stage, done, total: event.set(), cancel=event)
    event.clear()
    assert session.run(False, cancel=event) == ran_alone()


def ran_alone():
    return Session(residual(), images()).run(False)


def test_where_work_runs_is_said_once(client: Client):
    with pytest.raises(ClusterError, match="give one of them"):
        Session(mlp(), samples(4), cluster=client, executor=client.get_executor())
    with pytest.raises(ClusterError, match=r"takes a dask\.distributed\.Client, not str"):
        Session(mlp(), samples(4), cluster="tcp://127.0.0.1:1")


def test_the_whole_job_on_the_command_line(client: Client, tmp_path: Path):
    save(mlp(), tmp_path / "m.qbench")
    np.savez(tmp_path / "x.npz", x=samples(60), y=np.arange(60) % 5)
    data = str(tmp_path / "x.npz")
    words = [str(tmp_path / "m.qbench"), "--calibration", data, "--evaluation", data]
    told: list[list[object]] = []
    for where in ([], ["--cluster", client.scheduler.address]):
        out = tmp_path / f"out{len(where)}"
        assert main(["quantize", *words, "--out", str(out), *where]) == 0
        assert main(["tune", *words, "--at-least", "20", "--out", str(out / "tuned"), *where]) == 0
        right = str(out / "accuracy.json")
        assert main(["accuracy", words[0], "--images", data, "--json", right, *where]) == 0
        rows = json.loads((out / "tuned" / "front.json").read_text())["rows"]
        report = json.loads((out / "report.json").read_text())
        told.append([report, {row["metric"] for row in rows}])  # of configs that are as good, the clock takes one
        told[-1] += [(out / name).read_bytes() for name in ("model.qdq.onnx", "accuracy.json")]
    assert told[0] == told[1]
    assert main(["quantize", *words, "--out", str(tmp_path), "--cluster", "here"]) == 2
