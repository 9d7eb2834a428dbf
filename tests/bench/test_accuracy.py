from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

from qbench.bench.accuracy import ranks
from qbench.cli import main
from qbench.errors import DataError
from tests.tflite_files import Tensor, constant, litert, model, operator


@pytest.mark.parametrize("classes", [10, 1000, 1001])
def test_ranks_are_places_in_a_stable_order_without_the_background(classes):
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 40, (30, classes)).astype(np.uint8)
    labels = rng.integers(0, min(classes, 1000), 30)
    counted = scores[:, 1:] if classes == 1001 else scores
    order = np.argsort(-counted.astype(int), axis=1, kind="stable")
    assert ranks(scores, labels).tolist() == [
        int(np.flatnonzero(o == y)[0]) for o, y in zip(order, labels, strict=True)
    ]


def test_labels_must_be_classes():
    with pytest.raises(DataError, match="tells 5 classes apart, but labels go from 0 to 7"):
        ranks(np.zeros((2, 5)), np.array([0, 7]))


@pytest.fixture
def images(tmp_path):
    rng = np.random.default_rng(1)
    folder = tmp_path / "photos"
    folder.mkdir()
    rows = []
    for i in range(12):
        Image.fromarray(rng.integers(0, 256, (20, 20, 3), np.uint8)).save(folder / f"{i}.png")
        rows.append(f"{i}.png,{i % 10}")
    (tmp_path / "labels.csv").write_text("\n".join(["file,class_index", *rows]))
    return folder


@pytest.fixture
def classifier(tmp_path):
    """Ten classes of 8x8 pixels, uint8 per tensor as files of 2018 are."""
    weight = np.random.default_rng(2).integers(0, 256, (10, 8 * 8 * 3)).astype(np.uint8)
    tensors = [
        Tensor("pixels", (1, 8, 8, 3), "uint8", scale=1 / 128, zero_point=128),
        constant("shape", np.array([1, 192], np.int32)),
        Tensor("flat", (1, 192), "uint8", scale=1 / 128, zero_point=128),
        constant("weight", weight, scale=0.01, zero_point=120),
        Tensor("scores", (1, 10), "uint8", scale=0.1, zero_point=100),
    ]
    operators = [
        operator("RESHAPE", ["pixels", "shape"], ["flat"], new_shape=(1, 192)),
        operator("FULLY_CONNECTED", ["flat", "weight", ""], ["scores"]),
    ]
    data = model(tensors, operators, ["pixels"], ["scores"])
    (tmp_path / "classifier.tflite").write_bytes(data)
    return tmp_path / "classifier.tflite"


def test_the_command_counts_what_a_person_would(classifier, images, tmp_path, capsys):
    found = tmp_path / "found.json"
    words = ["accuracy", str(classifier), "--images", str(images), "--labels", str(tmp_path / "labels.csv")]
    assert main([*words, "--peers", "litert", "--json", str(found)]) == 0
    ours, theirs = json.loads(found.read_text())["rows"]
    files = sorted(images.iterdir())
    right = []
    for path in files:
        pixels = np.asarray(Image.open(path).resize((8, 8), Image.Resampling.BICUBIC))[None]
        scores = litert(classifier.read_bytes(), {"pixels": pixels})["scores"][0].astype(int)
        right.append(int(path.stem) % 10 in np.argsort(-scores, kind="stable")[:5])
    assert theirs["top5"] == ours["top5"] == np.mean(right)
    assert theirs["top1"] == ours["top1"] <= theirs["top5"]
    assert (ours["same"], theirs["same"], theirs["images"], theirs["runtime"]) == (12, 12, 12, "LiteRT reference")
    assert "12 of 12" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--peers", "tvm"], "'tvm' is none of litert, onnxruntime"),
        (["--peers", "onnxruntime"], "runs ONNX files"),
        (["--images", "nowhere"], "there is no such folder or file"),
        (["--labels", "nowhere.csv"], "cannot read the labels"),
        (["--labels", "../labels.csv", "--limit", "0"], "at least 1"),
        ([], "give --labels"),
    ],
)
def test_mistakes_are_said(classifier, images, words, said, capsys, monkeypatch):
    monkeypatch.chdir(images)
    assert main(["accuracy", str(classifier), "--images", str(images), *words]) == 2
    assert said in capsys.readouterr().err
