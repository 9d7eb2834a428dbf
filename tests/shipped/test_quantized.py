from __future__ import annotations

from pathlib import Path

import pytest


def test_the_script_makes_the_file(data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(data_dir)
    from quantize import quantize

    quantize(tmp_path / "made.tflite")
    assert (tmp_path / "made.tflite").read_bytes() == (data_dir / "mnist_cnn_int8.tflite").read_bytes()
