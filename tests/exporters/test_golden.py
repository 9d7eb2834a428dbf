from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest

import qbench as qb
from qbench import lab
from qbench.cli import main
from qbench.data.arrays import read_arrays
from qbench.exporters.c_header import write_header
from qbench.ir.build import build
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Node
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.runtime import interpreter
from tests.hostile import NAMES

COMPILERS = {"c": ("cc", "gcc", "clang"), "c++": ("c++", "g++", "clang++")}


def compiled(language, folder, includes, body):
    """What a program that includes the headers twice prints; every warning is an error."""
    compiler = next(filter(None, map(shutil.which, COMPILERS[language])), None)
    if compiler is None:
        pytest.skip(f"no {language} compiler on this machine")
    headers = "".join(f'#include "{name}"\n' for name in includes) * 2
    source = folder / f"main.{'c' if language == 'c' else 'cc'}"
    source.write_text(f"{headers}#include <stdio.h>\nint main(void) {{\n{body}\nreturn 0; }}\n")
    standard = "-std=c99" if language == "c" else "-std=c++11"
    strict = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-Wno-unused-variable", "-Wno-unused-const-variable"]
    command = [compiler, standard, *strict, str(source), "-o", str(folder / "main")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return subprocess.run([str(folder / "main")], capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def digits(data_dir):
    return np.load(data_dir / "mnist_evaluation.npz")["x"][:3]


@pytest.fixture(scope="module")
def graph(data_dir, digits):
    return qb.Session(qb.load(data_dir / "mnist_cnn.onnx"), calibration=digits).quantized().graph


def test_the_archive_has_what_the_interpreter_computes_and_can_be_compared_with(graph, digits, tmp_path):
    arrays, _ = lab.golden(graph, digits, tmp_path / "new", constants=True)
    expected = interpreter.run(graph, {graph.inputs[0]: digits}, keep=list(graph.activations()))
    found = read_arrays(arrays)
    assert set(found) == set(graph.activations()) | set(graph.constants)
    for name, array in expected.items():
        if array.dtype != np.float32:
            assert np.array_equal(found[name], array)
    assert np.array_equal(found[graph.inputs[0]], digits)
    assert qb.compare(graph, lab.Recorded(arrays), digits).different == 0


@pytest.mark.parametrize("language", COMPILERS)
def test_the_header_compiles_and_has_the_same_numbers(graph, digits, tmp_path, language):
    arrays, header = lab.golden(qb.plan(graph), digits[:1], tmp_path, name="mnist cnn", constants=True)
    found = read_arrays(arrays)
    identifiers = re.findall(r"static const (\w+) (\w+)\[(\d+)\]", header.read_text())
    assert len(identifiers) == len(found)
    lines = [
        f"{{ double s = 0; for (int i = 0; i < {name.upper()}_SIZE; i++) s += (double){name}[i] * (i % 7 + 1); "
        f'printf("%.17g\\n", s); }}'
        for _, name, _ in identifiers
    ]
    sums = [float(line) for line in compiled(language, tmp_path, [header.name], "\n".join(lines)).split()]
    for (kind, _, size), array, total in zip(identifiers, found.values(), sums, strict=True):
        flat = array.reshape(-1).astype(np.float64)
        weights = np.arange(flat.size) % 7 + 1
        assert (kind, int(size)) == ("float" if array.dtype == np.float32 else f"{array.dtype}_t", array.size)
        assert total == pytest.approx(float((flat * weights).sum()), rel=1e-12, abs=1e-9)
    assert f"scale {graph.qparams['max_pool'].scales[0]!r}, zero point 0" in header.read_text()


EXTREMES = {
    "int8": np.array([-128, 127], np.int8),
    "Int8": np.array([1], np.int8),
    "int_8": np.array([2], np.int8),
    "uint8": np.array([0, 255], np.uint8),
    "int16": np.array([-(2**15)], np.int16),
    "int32": np.array([-(2**31), 2**31 - 1], np.int32),
    "int64": np.array([-(2**63), 2**63 - 1], np.int64),
    "real": np.array([0.1, -0.0, 1e-45, 3.4e38, 1.0, 16777216.0], np.float32),
    "no number": np.array([np.nan, np.inf, -np.inf], np.float32),
    "nothing": np.zeros((0, 3), np.int8),
    "": np.array([3], np.int8),
    "7/*": np.array([4], np.int8),
    "*/ int x; /*": np.array([5], np.int8),
    "??/\n#error": np.array([6], np.int8),
    "\\": np.array([7], np.int8),
    "Größe": np.array([8], np.int8),
    **{name: np.array([9], np.int8) for name in NAMES},
}


@pytest.mark.parametrize("language", COMPILERS)
def test_any_name_and_any_number_compiles(tmp_path, language):
    constants = {name: Constant(array) for name, array in EXTREMES.items()}
    inputs = {"x": TensorType((1,), "int8")}
    nodes = [
        Node(f"n{i}", "concatenate", (name, name), (f"out{i}",), attrs=FrozenMap({"axis": 0}))
        for i, name in enumerate(constants)
    ]
    graph = build(
        "*/ model", inputs, [node.output for node in nodes], nodes, constants, {"int8": QParams(0.5, 3, "int8")}
    )
    with (tmp_path / "all.h").open("w", encoding="ascii") as stream:
        write_header(stream, graph, EXTREMES, "7 weird-prefix")
    checks = "if (golden_7_weird_prefix_int8[0] != -128 || golden_7_weird_prefix_Int8_v2[0] != 1) return 1;\n"
    checks += "if (golden_7_weird_prefix_int64[0] != INT64_MIN || golden_7_weird_prefix_real[2] != 1e-45f) return 2;"
    compiled(language, tmp_path, ["all.h"], checks)
    assert "scale 0.5, zero point 3" in (tmp_path / "all.h").read_text()


def test_the_command_writes_both_files(data_dir, tmp_path, capsys):
    model, digits = data_dir / "mnist_mlp.onnx", data_dir / "mnist_evaluation.npz"
    assert main(["golden", str(model), "--input", str(digits), "--limit", "2", "--out", str(tmp_path / "out")]) == 0
    assert "wrote golden.npz, golden.h" in capsys.readouterr().out
    assert read_arrays(tmp_path / "out" / "golden.npz")["x"].shape == (2, 784)
    assert main(["golden", str(model), "--input", str(digits), "--out", str(tmp_path / "out"), "--name", "../x"]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert main(["golden", str(model), "--input", "no.npy", "--out", str(tmp_path / "out")]) == 2
