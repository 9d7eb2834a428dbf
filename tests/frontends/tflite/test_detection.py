"""The step behind an SSD detector, against LiteRT."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qbench.errors import ModelError
from qbench.exporters import write_onnx
from qbench.frontends import load
from qbench.runtime.interpreter import run
from tests.frontends.models import reference
from tests.frontends.tflite.checking import save
from tests.frontends.tflite.test_float_ops import reals
from tests.tflite_files import Operator, Tensor, constant, litert, model

OPTIONS: dict[str, Any] = {
    "max_detections": 12, "max_classes_per_detection": 1, "detections_per_class": 3, "use_regular_nms": False,
    "nms_score_threshold": 0.35, "nms_iou_threshold": 0.3, "num_classes": 3,
    "y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0,
}  # fmt: skip
Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(3)
ANCHORS = np.concatenate([RNG.uniform(0, 0.7, (20, 2)), np.full((20, 2), 0.4)], 1)
FEEDS: dict[str, Array] = {
    "boxes": reals(1, 20, 4),
    "scores": (RNG.permutation(80).reshape(1, 20, 4) / 64).astype(np.float32),
}
"""No two scores are equal: runtimes choose between such as they like."""


def detector(folder: Path, dtype: str = "float32", **options: Any) -> Path:
    given = OPTIONS | options
    rows = given["max_detections"] * (1 if given["use_regular_nms"] else given["max_classes_per_detection"])
    scale: dict[str, Any] = {} if dtype == "float32" else {"scale": 1 / 64, "zero_point": 128}
    tensors = [Tensor("boxes", (1, 20, 4), dtype, **scale), Tensor("scores", (1, 20, 4), dtype, **scale)]
    anchors = ANCHORS.astype(np.float32) if dtype == "float32" else np.uint8(np.round(ANCHORS * 250))
    tensors += [constant("anchors", anchors, **(scale and {"scale": 1 / 250, "zero_point": 0}))]
    names = ["found", "kinds", "certain", "count"]
    shapes = [(1, rows, 4), (1, rows), (1, rows), (1,)]
    tensors += [Tensor(name, shape) for name, shape in zip(names, shapes, strict=True)]
    step = Operator("CUSTOM", ["boxes", "scores", "anchors"], names, given, custom="TFLite_Detection_PostProcess")
    return save(model(tensors, [step], ["boxes", "scores"], names), folder)


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
@pytest.mark.parametrize("options", [{}, {"max_classes_per_detection": 2}, {"use_regular_nms": True}], ids=str)
def test_finds_what_litert_finds(tmp_path: Path, options: dict[str, Any], dtype: str) -> None:
    path = detector(tmp_path, dtype, **options)
    feeds = FEEDS
    if dtype == "uint8":
        feeds = {name: np.round(array * 64 + 128).clip(0, 255).astype(np.uint8) for name, array in FEEDS.items()}
    ours, theirs = run(load(path), feeds), litert(path.read_bytes(), feeds)
    assert ours["count"] == theirs["count"] and 0 < ours["count"][0] < 12
    rows = int(ours["count"][0]) * options.get("max_classes_per_detection", 1)
    for name in ("found", "kinds", "certain"):
        np.testing.assert_allclose(ours[name][0, :rows], theirs[name][0, :rows], rtol=1e-6, atol=1e-6)
        assert ours[name].shape == theirs[name].shape and not ours[name][0, rows:].any()
    if dtype == "float32":
        graph = load(path)
        again = reference(write_onnx(graph, tmp_path / "exported.onnx"), feeds)
        for name, values in ours.items():
            np.testing.assert_allclose(again[name], values, rtol=1e-6, atol=1e-6)


def test_options_that_are_missing_are_named(tmp_path: Path) -> None:
    step = Operator("CUSTOM", ["x", "s", "a"], ["y"], {"num_classes": 3}, custom="TFLite_Detection_PostProcess")
    tensors = [Tensor("x", (1, 2, 4)), Tensor("s", (1, 2, 3)), Tensor("a", (2, 4)), Tensor("y", (1, 2, 4))]
    path = save(model(tensors, [step], ["x", "s", "a"]), tmp_path)
    with pytest.raises(ModelError, match="lacks max_detections, nms_iou_threshold"):
        load(path)
