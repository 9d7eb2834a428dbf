from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

COUNTS = {"mnist_calibration": 500, "mnist_evaluation": 1000}


def arrays(data_dir: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    with np.load(data_dir / f"{name}.npz", allow_pickle=False) as digits:
        assert set(digits) == {"x", "y"}
        return digits["x"], digits["y"]


@pytest.mark.parametrize("name", COUNTS)
def test_digits_are_as_the_models_take_them(data_dir: Path, name: str) -> None:
    x, y = arrays(data_dir, name)
    assert (x.dtype, x.shape) == (np.float32, (COUNTS[name], 784))
    assert (x.min(), x.max()) == (0, 1)
    assert y.dtype == np.int64
    assert np.bincount(y).tolist() == [COUNTS[name] // 10] * 10


def test_calibration_and_evaluation_are_disjoint(data_dir: Path) -> None:
    digits = [{row.tobytes() for row in arrays(data_dir, name)[0]} for name in COUNTS]
    assert [len(rows) for rows in digits] == list(COUNTS.values())
    assert not digits[0] & digits[1]


def test_digits_are_of_the_source_and_not_trained_on(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(data_dir)
    from digits import split_digits

    parts = split_digits()
    for name in COUNTS:
        x, y = arrays(data_dir, name)
        part = parts[name.removeprefix("mnist_")]
        np.testing.assert_array_equal(x, part.x)
        np.testing.assert_array_equal(y, part.y)
    rows = [row.tobytes() for part in parts.values() for row in part.x]
    assert len(rows) == len(set(rows)) == 5000


def test_files_are_small(data_dir: Path) -> None:
    files = [*data_dir.glob("*.onnx"), *data_dir.glob("*.npz")]
    assert sum(file.stat().st_size for file in files) < 4_000_000


def test_readme_gives_the_accuracies_that_the_files_reach(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(data_dir)
    from measure import NETWORKS, accuracy

    written = dict(re.findall(r"^(mnist_\w+): ([\d.]+%)$", (data_dir / "README.md").read_text(), re.MULTILINE))
    reached = {name: accuracy(data_dir / f"{name}.onnx", data_dir / "mnist_evaluation.npz") for name in NETWORKS}
    assert written == {name: f"{fraction:.1%}" for name, fraction in reached.items()}
