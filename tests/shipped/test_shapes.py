"""The detector of shapes and its pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest


def test_it_finds_shapes_in_pictures_that_its_head_was_not_fitted_to(data_dir: Path) -> None:
    onnx.checker.check_model(onnx.load(data_dir / "shapes_detector.onnx"), full_check=True)
    with np.load(data_dir / "shapes_evaluation.npz") as pictures:
        x, y = pictures["x"], pictures["y"]
    session = onnxruntime.InferenceSession(data_dir / "shapes_detector.onnx", providers=["CPUExecutionProvider"])
    (found,) = session.run(["found"], {"x": x})
    named = found > 0.5
    assert 2 * np.sum(named & (y > 0)) / (named.sum() + y.sum()) > 0.85


def test_pictures_are_as_the_detector_takes_them_and_none_is_there_twice(data_dir: Path) -> None:
    seen = set[bytes]()
    for name, count in (("calibration", 48), ("evaluation", 96)):
        with np.load(data_dir / f"shapes_{name}.npz", allow_pickle=False) as pictures:
            x, y = pictures["x"], pictures["y"]
        assert (x.dtype, x.shape, y.shape) == (np.float32, (count, 1, 32, 32), (count, 3, 8, 8))
        assert 0 <= x.min() <= x.max() <= 1
        assert {*np.unique(y)} == {0, 1}
        assert {*np.unique(y.sum((1, 2, 3)))} == {1, 2, 3}
        seen |= {picture.tobytes() for picture in x}
    assert len(seen) == 48 + 96


def test_uneven_ranges_compute_the_same(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(data_dir)
    from shapes import FEATURES, STEM, features, pictures, uneven

    rng = np.random.default_rng(0)
    shapes = {"stem": (STEM, 1, 3, 3), "depthwise": (STEM, 1, 3, 3), "pointwise": (FEATURES, STEM, 1, 1)}
    weights = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    x, _ = pictures(4, rng)
    np.testing.assert_allclose(features(x, uneven(weights, rng)), features(x, weights), rtol=1e-9, atol=1e-9)
