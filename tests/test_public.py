from __future__ import annotations

import subprocess
import sys

import qbench
from qbench import errors

EXPECTED = {
    "Graph", "load", "load_data", "save", "run", "diff", "QuantConfig", "register_calibrator", "Session", "Report",
    "Decoder", "export_onnx", "export_overrides", "export_tflite", "Workbench", "plan", "Program", "compare",
    "Comparison", "lab", "parity", "interpret", "__version__", "compare_reports", "ReportComparison",
    "export_encodings", "import_encodings",
} | {name for name in errors.__all__ if name[0].isupper()}  # fmt: skip
SLOW = {"numpy", "pandas", "matplotlib", "ipywidgets", "anywidget", "onnx", "numba", "pydantic"}


def test_the_public_names():
    assert set(qbench.__all__) == EXPECTED == set(dir(qbench))
    assert set(qbench._HOMES) | {"__version__"} == EXPECTED


def test_importing_qbench_imports_nothing_slow():
    code = "import sys, qbench; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not SLOW & {name.partition(".")[0] for name in loaded.split()}


def test_a_session_needs_no_screen_and_no_onnx():
    code = "import sys, qbench; qbench.Session, qbench.QuantConfig, qbench.run; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"pandas", "matplotlib", "ipywidgets", "anywidget", "onnx"} & set(loaded.split())
