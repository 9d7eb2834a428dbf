"""The whole benchmark on a tiny model, timed for a moment, and the command around it."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import onnx
import pytest

from qbench.bench import competitors, machine, measure
from qbench.cli import main
from tests.frontends import models
from tests.frontends.models import classifier

QUICK = ("--rounds", "2", "--seconds", "0.01", "--threads", "1")


MACS = 6 * 6 * 6 * 27 + 24


def bench(folder: Path, model: Path | str, *more: str) -> dict[str, Any]:
    assert main(["bench", str(model), *QUICK, "--json", str(folder / "f.json"), *more]) == 0
    return json.loads((folder / "f.json").read_text())


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    try:
        assert main(["bench", *arguments]) == 2
    except SystemExit as ended:  # argparse's own
        assert ended.code == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    return said.splitlines()[-1]


def test_qbench_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = bench(tmp_path, classifier(tmp_path), "--peers", "", "--batch", "1,3", "--layers")
    assert [(row["engine"], row["dtype"], row["batch"]) for row in found["rows"]] == [
        ("qbench", "int8", 1),
        ("qbench", "float32", 1),
        ("qbench", "int8", 3),
        ("qbench", "float32", 3),
    ]
    for row in found["rows"]:
        assert 0 < row["min_ms"] <= row["median_ms"]
        assert row["gmac_per_s"] == pytest.approx(row["batch"] * MACS / row["median_ms"] / 1e6)
        assert row["peak_fraction"] == pytest.approx(row["gmac_per_s"] / found["peak"][row["dtype"]])
    assert all(setting["sqnr_db"] > 20 for setting in found["settings"])
    assert found["errors"] == found["ratios"] == found["notes"] == []
    assert {"conv", "gemm"} <= {layer["step"] for layer in found["layers"]}
    assert any(layer["gmac_per_s"] > 0 and "conv" in layer["kernel"] for layer in found["layers"])
    out = capsys.readouterr().out
    assert "steps, " in out
    assert out.splitlines()[-1] == f"wrote {tmp_path / 'f.json'}"


def test_all_peers_run_the_same_model(tmp_path: Path) -> None:
    for peer in competitors.PEERS:
        pytest.importorskip(peer)
    threads = str(min(2, machine.cores()))
    found = bench(tmp_path, classifier(tmp_path), "--batch", "2", "--threads", threads)
    rows = {(row["engine"], row["dtype"]) for row in found["rows"]}
    assert rows >= {(engine, dtype) for engine in ("qbench", *competitors.PEERS) for dtype in ("int8", "float32")}
    assert found["errors"] == []
    for setting in found["settings"]:
        assert setting["sqnr_db"] > (15 if setting["dtype"] == "int8" else 80), setting
        assert int(threads) in setting["set"].values()
    assert len(found["ratios"]) == 3
    assert len(found["round_trips"]) == (threads != "1")


def test_a_peer_that_fails_has_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnxruntime")
    proto = onnx.load(classifier(tmp_path))
    proto.ir_version = 1000  # more than onnxruntime reads
    found = bench(tmp_path, models.save(proto, tmp_path), "--batch", "1", "--peers", "onnxruntime")
    assert {row["engine"] for row in found["rows"]} == {"qbench"}
    assert [(error["engine"], error["dtype"]) for error in found["errors"]] == [
        ("onnxruntime", "float32"),
        ("onnxruntime", "int8"),
    ]
    assert "onnxruntime float32: onnxruntime: Fail" in capsys.readouterr().out


def test_a_batch_that_the_file_does_not_allow_is_a_line(tmp_path: Path) -> None:
    found = bench(tmp_path, classifier(tmp_path, 2), "--peers", "", "--batch", "1,2", "--dtype", "int8")
    assert [row["batch"] for row in found["rows"]] == [2]
    assert found["rows"][0]["gmac_per_s"] == pytest.approx(2 * MACS / found["rows"][0]["median_ms"] / 1e6)
    assert "the file fixes the batch at 2; where the model allows, --shape" in found["errors"][0]["error"]
    opened = bench(
        tmp_path, classifier(tmp_path, 2), "--shape", "x=N,3,8,8", "--peers", "", "--batch", "1", "--dtype", "int8"
    )
    assert [row["batch"] for row in opened["rows"]] == [1]


def test_a_missing_peer_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "installed", lambda package: None)
    found = bench(tmp_path, classifier(tmp_path), "--batch", "1", "--dtype", "float32")
    told = "openvino is not installed, and left out: pip install openvino"
    assert told in found["notes"]
    assert f"qbench: {told}" in capsys.readouterr().err
    assert {row["engine"] for row in found["rows"]} == {"qbench"}


def test_the_int8_file_needs_onnxruntime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openvino")
    monkeypatch.setattr(competitors, "installed", lambda package: "1" if package == "openvino" else None)
    found = bench(tmp_path, classifier(tmp_path), "--batch", "1", "--dtype", "int8", "--peers", "openvino")
    assert [error["error"] for error in found["errors"]] == [
        "onnxruntime makes the int8 file, and is not installed: pip install onnxruntime"
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["resnet81"], "'resnet81' is neither a file nor one of .*; did you mean 'resnet18'?"),
        (["."], "'.' is a folder; give an ONNX or TFLite file"),
        (["--threads", "0"], "argument --threads: '0' is not a whole number from 1 on"),
        (["--threads", "1,x"], "argument --threads: 'x' is not"),
        (["--threads", ""], "argument --threads: '' is not"),
        (["--threads", "4096"], r"--threads 4096: this process has \d+ cores; give at most that many"),
        (["--batch", "0"], "argument --batch: '0' is not a whole number from 1 on"),
        (["--batch", "-3"], "argument --batch: '-3' is not"),
        (["--dtype", "int7"], "--dtype: 'int7' is none of int8, float32; did you mean 'int8'?"),
        (["--dtype", ""], "--dtype: name at least one of int8, float32"),
        (
            ["--peers", "openvine"],
            "--peers: 'openvine' is none of onnxruntime, openvino, litert; did you mean 'openvino'?",
        ),
        (["--seconds", "nan"], "argument --seconds: 'nan' is not a number of seconds above 0"),
        (["--rounds", "0"], "argument --rounds: '0' is not"),
        (["--json", "no/such/folder/f.json"], "there is no folder no/such/folder"),
        (["--json", "."], "--json . is a folder"),
    ],
)
def test_mistakes(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert re.search(message, complaint(capsys, *arguments))


def test_a_file_that_is_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.onnx").write_bytes(b"hello")
    assert "x.onnx" in complaint(capsys, "resnet18", str(tmp_path / "x.onnx"))


def test_sizes_that_are_open_are_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [models.node("Relu", ["x"], ["y"], "relu")]
    path = models.save(models.model(nodes, {"x": ("N", 3, "H", "W")}), tmp_path)
    assert "give its sizes, such as --shape x=N,3,224,224" in complaint(capsys, str(path))


def test_ctrl_c_keeps_what_was_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = measure.interleave

    def interrupted(*arguments: Any, **options: Any) -> None:
        whole(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(measure, "interleave", interrupted)
    arguments = ("--peers", "", "--batch", "1", "--json", str(tmp_path / "f.json"))
    assert main(["bench", str(classifier(tmp_path)), *QUICK, *arguments]) == 130
    assert len(json.loads((tmp_path / "f.json").read_text())["rows"]) == 2
    assert capsys.readouterr().err.endswith("qbench: interrupted\n")


def _children(pid: int) -> set[int]:
    found: set[int] = set()
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            found.update(map(int, (task / "children").read_text().split()))
    return found


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads /proc to see the processes")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_process_is_left_behind(how: signal.Signals, tmp_path: Path) -> None:
    arguments = ("--peers", "", "--seconds", "600", "--threads", "1", "--batch", "1")
    command = [sys.executable, "-m", "qbench", "bench", str(classifier(tmp_path)), *arguments]
    bench = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
    )
    try:
        children: dict[int, int] = {}
        while len(children) < 3:  # the gauge, int8 and float32
            with suppress(subprocess.TimeoutExpired):  # it needs the core that asking all the time would take
                bench.wait(0.02)
            assert bench.returncode is None
            for pid in _children(bench.pid) - children.keys():
                with suppress(ProcessLookupError):
                    children[pid] = os.pidfd_open(pid)
        os.kill(bench.pid, how)
        assert bench.wait() == (130 if how == signal.SIGINT else -how)
    finally:
        bench.kill()
        bench.wait()
    for ended in children.values():
        select.select([ended], [], [])  # readable when the process has ended, however busy the machine is
        os.close(ended)
