"""Quantize the CNN to TFLite, a model "that somebody else quantized" for a notebook: ``python data/quantize.py``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from measure import FOLDER

import qbench as qb


def quantize(path: Path) -> None:
    """Write the file, as TFLite's own converter would by default: int8, the whole range of each activation."""
    with np.load(FOLDER / "mnist_calibration.npz") as digits:
        session = qb.Session(qb.load(FOLDER / "mnist_cnn.onnx"), calibration=digits["x"])
    session.edit("the whole range", session.config.with_value("activations.calibrator", "max"))
    qb.export_tflite(session, path)


if __name__ == "__main__":
    quantize(FOLDER / "mnist_cnn_int8.tflite")
