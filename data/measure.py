"""Print the accuracy of the networks on the evaluation digits: ``python data/measure.py``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime

FOLDER = Path(__file__).resolve().parent
NETWORKS = ("mnist_mlp", "mnist_cnn", "mnist_uneven")


def accuracy(model: Path, digits: Path) -> float:
    """Return the fraction of the digits that the model classifies rightly."""
    with np.load(digits) as arrays:
        x, y = arrays["x"], arrays["y"]
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    (probabilities,) = session.run(["probabilities"], {"x": x})
    return float(np.mean(probabilities.argmax(1) == y))


if __name__ == "__main__":
    for name in NETWORKS:
        print(f"{name}: {accuracy(FOLDER / f'{name}.onnx', FOLDER / 'mnist_evaluation.npz'):.1%}")
