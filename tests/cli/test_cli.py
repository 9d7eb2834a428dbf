"""The command line, from the files that go in to the files that come out."""

from __future__ import annotations

import gc
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from PIL import Image

from qbench.cli import main
from qbench.frontends import load
from qbench.ir import archive
from qbench.quant.config import QuantConfig
from qbench.runtime.interpreter import run
from tests.frontends import models

X = models.random(40, 3, 8, 8, seed=1)
Y = np.arange(40) % 4


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with a small network and data for it."""
    models.classifier(tmp_path)
    np.savez(tmp_path / "cal.npz", x=X[:20])
    np.savez(tmp_path / "eval.npz", x=X[20:], y=Y[20:])
    return tmp_path


def quantize(here: Path, *more: str, out: str = "out", calibration: str = "cal.npz") -> int:
    names = ("model.onnx", "--calibration", calibration, "--evaluation", "eval.npz", "--out", out)
    return main(["quantize", *(name if name.startswith("--") else str(here / name) for name in names), *more])


def complaint(capsys: pytest.CaptureFixture[str]) -> str:
    """What was said on standard error, which must be one paragraph."""
    said = capsys.readouterr().err
    assert said.startswith("qbench: ")
    assert "\n\n" not in said
    assert "Traceback" not in said
    return said


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out.startswith("qbench 0.")
    assert gc.isenabled()  # it is off while the command is imported


@pytest.mark.parametrize("wrapped", [False, True])
def test_an_interruption_while_libraries_are_imported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], wrapped: bool
) -> None:
    def interrupted(name: str) -> None:
        if wrapped:  # as extension modules do that are being initialized
            raise ImportError("initialization failed") from KeyboardInterrupt()
        raise KeyboardInterrupt

    monkeypatch.setattr("qbench.cli.import_module", interrupted)
    assert main(["inspect", "model.onnx"]) == 130
    assert complaint(capsys) == "qbench: interrupted\n"


def test_a_library_that_is_missing_is_no_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "qbench.cli.inspect", None)
    with pytest.raises(ImportError):
        main(["inspect", "model.onnx"])


def test_files_whose_names_are_in_capitals(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("cal.npz", "model.onnx"):
        (here / name).rename(here / name.upper())
    QuantConfig().save(here / "A.JSON")
    for name in ("CAL.NPZ", "MODEL.ONNX", "A.JSON"):
        assert main(["inspect", str(here / name)]) == 0
    assert main(["diff", str(here / "A.JSON"), str(here / "A.JSON")]) == 0
    assert capsys.readouterr().err == ""


def test_without_the_script_and_without_warnings(here: Path) -> None:
    command = [sys.executable, "-W", "error", "-m", "qbench", "quantize", "model.onnx", "--calibration", "cal.npz"]
    done = subprocess.run([*command, "--out", "out"], cwd=here, capture_output=True, text=True, check=True)
    assert (done.stderr, done.stdout.splitlines()[-1]) == (
        "",
        "wrote config.json, report.json, model.qbench, model.qdq.onnx to out",
    )


def test_quantize_writes_everything_and_prints_the_table(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert quantize(here) == 0
    assert "gemm" in capsys.readouterr().out
    out = here / "out"
    assert sorted(path.name for path in out.iterdir()) == [
        "config.json",
        "model.qbench",
        "model.qdq.onnx",
        "report.json",
    ]
    assert QuantConfig.load(out / "config.json") == QuantConfig.of_preset()
    onnx.checker.check_model(onnx.load(out / "model.qdq.onnx"))
    report = json.loads((out / "report.json").read_text())
    assert [layer["op"] for layer in report["layers"]][:2] == ["nn.conv2d", "nn.relu"]
    keys = {"name", "op", "runs_as", "reason", "sqnr_db", "threshold", "scale", "zero_point", "calibrator"}
    keys |= {"own_sqnr_db", "inherited_sqnr_db", "ms", "shape"}
    assert [keys - set(layer) for layer in report["layers"]] == [set()] * len(report["layers"])
    assert set(report["output"]) >= {"sqnr_db", "agreement", "top1_float", "top1", "flipped", "flips", "latency"}
    integers = archive.load(out / "model.qbench")
    real, ours = run(load(here / "model.onnx"), {"x": X})["logits"], run(integers, {"x": X})["logits"]
    assert np.abs(real - ours).max() < 0.05 * np.abs(real).max()


def test_config_and_set(here: Path) -> None:
    QuantConfig().with_value("rounding", "fp32_rne").save(here / "c.json")
    changes = ("--set", "weights.axis=null", "--set", 'activations.calibrator="max"', "--set", "weights.calibrator=mse")
    assert quantize(here, "--config", str(here / "c.json"), *changes) == 0
    config = QuantConfig.load(here / "out" / "config.json")
    assert (config.rounding, config.weights.axis) == ("fp32_rne", None)
    assert (config.activations.calibrator.name, config.weights.calibrator.name) == ("max", "mse")
    conv = next(c for c in archive.load(here / "out" / "model.qbench").qparams.items() if c[1].dtype == "int8")
    assert conv[1].axis is None


def test_without_evaluation_data(here: Path) -> None:
    arguments = ["quantize", "model.onnx", "--calibration", "cal.npz", "--out", "out"]
    assert main([str(here / a) if "." in a or a == "out" else a for a in arguments]) == 0


def test_folders_of_images(here: Path) -> None:
    (here / "images").mkdir()
    for i in range(6):
        Image.fromarray(np.random.default_rng(i).integers(0, 256, (8, 9, 3), np.uint8)).save(here / f"images/{i}.png")
    rows = "".join(f"{i}.png,{i % 4}\n" for i in range(6))
    (here / "images" / "labels.csv").write_text("file,class_index\n" + rows)
    (here / "eval.npz").unlink()
    images = str(here / "images")
    arguments = ["quantize", str(here / "model.onnx"), "--calibration", images, "--evaluation", images]
    how = ["--mean", "120,121", "122", "--std", "60", "--channels", "BGR"]
    assert main([*arguments, "--out", str(here / "out"), *how]) == 0
    assert json.loads((here / "out" / "report.json").read_text())["output"]["top1"] is not None
    saved = str(here / "out" / "model.qbench")
    assert main(["run", saved, "--input", images, "--output", str(here / "y.npz"), *how]) == 0
    assert np.load(here / "y.npz")["logits"].shape == (6, 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--set", "weights.axes=null"), "axes.*did you mean 'axis'"),
        (("--set", "weights.axis=1"), "weights.axis"),
        (("--set", "layers.conv2.keep_float=true"), "'conv2'.*did you mean 'conv'"),
        (("--config", "nowhere.json"), "nowhere.json"),
        (("--mean", "1"), "--mean are for folders of images"),
        (("--evaluation", "nowhere.npz"), "cannot read arrays from nowhere.npz"),
        (("--out", "/proc/nothing"), "/proc/nothing"),
    ],
)
def test_mistakes_are_told_in_a_paragraph(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    assert quantize(here, *arguments) == 2
    assert re.search(message, complaint(capsys))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (X[:, 0], r"'x' wants Tensor\[\(N, 3, 8, 8\), float32\], but was given float32 of shape \(40, 8, 8\)"),
        (X[0], r"was given float32 of shape \(3, 8, 8\)"),
        (X.transpose(0, 2, 3, 1), r"was given float32 of shape \(\d+, 8, 8, 3\): axis 1 has size 8, not 3"),
        ((X * 50).astype(np.uint8), r"was given uint8 of shape \(\d+, 3, 8, 8\); use x.astype\('float32'\)"),
        (X[:0], "empty"),
        (np.full_like(X, np.nan), "NaN"),
        (np.array([None]), "cannot read arrays from"),
    ],
)
def test_wrong_data_is_named(here: Path, capsys: pytest.CaptureFixture[str], x: Any, message: str) -> None:
    np.save(here / "x.npy", x)
    assert quantize(here, calibration="x.npy") == 2
    assert re.search(message, complaint(capsys))
    assert not (here / "out" / "report.json").exists()


@pytest.mark.parametrize("content", [None, b"", b"not a model", b"\x08\x0a\x12" * 50])
def test_what_is_no_model(here: Path, capsys: pytest.CaptureFixture[str], content: bytes | None) -> None:
    if content is None:
        (here / "model.onnx").unlink()
    else:
        (here / "model.onnx").write_bytes(content)
    assert quantize(here) == 2
    assert "model.onnx" in complaint(capsys)


@pytest.mark.parametrize("bad", ["weights.axis", "=1", "weights.axis={", "a=b c", "a=" + "9" * 5000])
def test_set_wants_path_and_json(here: Path, capsys: pytest.CaptureFixture[str], bad: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        quantize(here, "--set", bad)
    said = capsys.readouterr().err
    assert "JSON" in said
    assert len(said) < 1500


def test_what_cannot_be_written_is_told_before_the_work(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qbench.session.session.Session.run", None)
    (here / "out" / "model.qbench").mkdir(parents=True)
    (here / "out" / "model.qbench" / "thesis.tex").write_text("precious")
    assert quantize(here) == 2
    assert "model.qbench is there and is not a qbench archive" in complaint(capsys)
    assert [path.name for path in (here / "out").rglob("*")] == ["model.qbench", "thesis.tex"]

    def full(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system", str(here / "elsewhere"))

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    assert quantize(here, out="elsewhere") == 2
    assert "Read-only file system" in complaint(capsys)


def test_run_gives_real_values_or_integers(here: Path) -> None:
    assert quantize(here) == 0
    saved, graph = here / "out" / "model.qbench", archive.load(here / "out" / "model.qbench")
    common = ["run", str(saved), "--input", str(here / "cal.npz"), "--output"]
    assert main([*common, str(here / "real.npz")]) == 0
    assert main([*common, str(here / "raw.npz"), "--raw"]) == 0
    real, raw = np.load(here / "real.npz")["logits"], np.load(here / "raw.npz")["logits"]
    np.testing.assert_array_equal(real, run(graph, {"x": X[:20]})["logits"])
    q = graph.qparams[graph.producers["logits"].inputs[0]]
    assert raw.dtype == q.dtype
    np.testing.assert_allclose((raw.astype(np.float32) - q.zero_point) * np.float32(q.scale), real, rtol=1e-6)


def test_run_takes_models_and_says_that_raw_is_real(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, data, out = (str(here / name) for name in ("model.onnx", "cal.npz", "y.npz"))
    assert main(["run", model, "--input", data, "--output", out, "--raw"]) == 0
    assert "'logits' is computed in float" in capsys.readouterr().err
    assert np.load(out)["logits"].dtype == np.float32


def test_run_says_what_cannot_be_written_before_the_work(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qbench.cli.run.read_graph", None)
    model, data = (str(here / name) for name in ("model.onnx", "cal.npz"))
    for output in (here, here / "none" / "y.npz"):
        assert main(["run", model, "--input", data, "--output", str(output)]) == 2
        assert f"--output {output}" in complaint(capsys)


def test_run_into_a_folder_that_is_not_there(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, data, out = (str(here / name) for name in ("model.onnx", "cal.npz", "none/y.npz"))
    assert main(["run", model, "--input", data, "--output", out]) == 2
    assert "none" in complaint(capsys)


def test_inspect(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert quantize(here) == 0

    def shown(name: str, *more: str) -> str:
        capsys.readouterr()
        assert main(["inspect", str(here / name), *more]) == 0
        return capsys.readouterr().out

    assert "nn.conv2d(%x, @w)" in shown("model.onnx")
    assert "integer.conv2d(" in shown("out/model.qbench")
    assert '"rounding"' in shown("out/config.json")
    assert '"agreement"' in shown("out/report.json")
    assert "'x': float32 (20, 3, 8, 8)" in shown("eval.npz")
    (here / "bad.json").write_text("{")
    assert main(["inspect", str(here / "bad.json")]) == 2
    assert "bad.json" in complaint(capsys)


def test_diff(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert quantize(here, "--set", "weights.axis=null") == 0
    QuantConfig().save(here / "c.json")
    capsys.readouterr()
    assert main(["diff", str(here / "model.onnx"), str(here / "out" / "model.qbench")]) == 0
    assert "nn.conv2d" in capsys.readouterr().out
    assert main(["diff", str(here / "c.json"), str(here / "out" / "config.json")]) == 0
    assert '+    "axis": null' in capsys.readouterr().out
    assert main(["diff", str(here / "c.json"), str(here / "c.json")]) == 0
    assert capsys.readouterr().out == "no differences\n"


def test_diff_of_reports(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert quantize(here) == 0
    report = here / "out" / "report.json"
    worse = json.loads(report.read_text("utf-8"))
    worse["output"]["sqnr_db"] -= 1.0
    (here / "worse.json").write_text(json.dumps(worse))
    capsys.readouterr()
    assert main(["diff", str(report), str(report)]) == 0
    assert "no layer changed" in capsys.readouterr().out
    assert main(["diff", str(report), str(here / "worse.json")]) == 1
    assert "regression: sqnr_db fell from" in capsys.readouterr().out
    assert main(["diff", str(report), str(here / "worse.json"), "--tolerance", "1.5"]) == 0
    assert main(["diff", str(report), str(here / "out" / "config.json")]) == 2
    assert "config.json' cannot be read" in complaint(capsys)


def test_encodings_for_other_tools(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert quantize(here, "--encodings", "tensorrt", "--encodings", "aimet") == 0
    assert "tensorrt.cache, aimet.encodings to" in capsys.readouterr().out
    assert (here / "out" / "tensorrt.cache").read_text("utf-8").startswith("TRT-")
    assert json.loads((here / "out" / "aimet.encodings").read_text("utf-8"))["version"] == "1.0.0"
    assert quantize(here, "--encodings", "aimett", out="none") == 2
    assert "did you mean 'aimet'?" in complaint(capsys)
    assert not (here / "none").exists()


def test_a_reader_that_leaves_early_is_no_error(here: Path) -> None:
    code = "import sys; from qbench.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "inspect", str(here / "model.onnx")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait() == 0


@pytest.mark.parametrize("listener", ["gone", "ascii", "none"])
def test_all_is_written_whoever_listens(here: Path, listener: str) -> None:
    code = "import sys; from qbench.cli import main; sys.exit(main(sys.argv[1:]))"
    onnx_model = onnx.load(here / "model.onnx")
    onnx_model.graph.node[0].name = "\u5c42" * 3000
    onnx.save(onnx_model, here / "named.onnx")
    command = [sys.executable, "-c", code, "quantize", "named.onnx", "--calibration", "cal.npz", "--out", "out"]
    if listener == "none":
        command = ["sh", "-c", '"$@" >&-', "sh", *command]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=here, stdout=pipe, stderr=pipe, text=True, env=environment) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        if listener == "gone":
            process.stdout.close()
        else:
            process.stdout.read()
        assert process.stderr.read() == ""
    assert process.returncode == 0
    for name in ("model.qdq.onnx", "report.json"):
        assert (here / "out" / name).exists()


def test_an_input_that_is_a_single_number(here: Path) -> None:
    nodes = [models.node("Mul", ["x", "k"], ["h"]), models.node("MatMul", ["h", "w"], ["y"])]
    proto = models.model(nodes, {"x": ["N", 8], "k": []}, constants={"w": models.random(8, 4)})
    model = models.save(proto, here, "k.onnx")
    np.savez(here / "k.npz", x=models.random(12, 8), k=np.float32(2))
    assert main(["quantize", str(model), "--calibration", str(here / "k.npz"), "--out", str(here / "k")]) == 0


@pytest.mark.parametrize("tolerance", ["-5", "nan", "inf"])
def test_a_tolerance_is_a_number_of_decibels(here: Path, capsys: pytest.CaptureFixture[str], tolerance: str) -> None:
    (here / "report.json").write_text('{"layers": [], "output": {}}')
    assert main(["diff", *[str(here / "report.json")] * 2, f"--tolerance={tolerance}"]) == 2
    assert "a number of decibels, 0 or more" in complaint(capsys)


def test_shapes_of_open_models(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    open_model = models.model([models.node("Relu", ["x"], ["y"])], {"x": ("N", "c", "h", "w")}, ["y"])
    models.save(open_model, here)
    assert main(["inspect", str(here / "model.onnx"), "--shape", "x=N,3,8,8"]) == 0
    assert "%x: Tensor[(N, 3, 8, 8), float32]" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        main(["inspect", "model.onnx", "--shape", "x"])


def test_sizes_that_the_model_leaves_open_are_those_of_the_data(here: Path) -> None:
    nodes = [
        models.node("Conv", ["x", "w"], ["conv"], "conv", kernel_shape=[3, 3]),
        models.node("GlobalAveragePool", ["conv"], ["pool"], "pool"),
    ]
    constants = {"w": models.random(6, 3, 3, 3)}
    models.save(models.model(nodes, {"x": ("N", 3, "H", "W")}, ["pool"], constants), here)
    np.savez(here / "eval.npz", x=X[20:])
    assert quantize(here) == 0
    layers = json.loads((here / "out" / "report.json").read_text())["layers"]
    assert [layer["runs_as"] for layer in layers] == ["uint8", "uint8"]
    assert load(here / "out" / "model.qbench").types["x"].shape == ("N", 3, 8, 8)

    (here / "lines").mkdir()
    for number, width in enumerate((8, 8, 11, 9)):  # each as long as it is
        np.save(here / "lines" / f"{number}.npy", models.random(1, 3, 8, width, seed=number))
    data = ["--calibration", str(here / "lines"), "--evaluation", str(here / "eval.npz")]
    assert main(["quantize", str(here / "model.onnx"), *data, "--out", str(here / "out")]) == 0
    assert load(here / "out" / "model.qbench").types["x"].shape == ("N", 3, 8, "W")
