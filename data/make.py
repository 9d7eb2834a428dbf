"""Make the models and arrays of this folder again: ``python data/make.py`` after ``pip install -e '.[data]'``.

It takes some minutes on one core, and on the same machine and PyTorch it writes the same bytes every time.
"""

from __future__ import annotations

import graphs
import measure
import numpy as np
import onnx
from digits import SEED, split_digits
from measure import FOLDER
from networks import Cnn, Mlp
from training import train
from uneven import uneven

NETWORKS = {"mnist_mlp": (Mlp, graphs.mlp, 150), "mnist_cnn": (Cnn, graphs.cnn, 60)}  # the last is epochs


def main() -> None:
    digits = split_digits()
    for name in ("calibration", "evaluation"):
        np.savez_compressed(FOLDER / f"mnist_{name}.npz", x=digits[name].x, y=digits[name].y)
    for name, (network, graph, epochs) in NETWORKS.items():
        onnx.save(graph(train(network, digits["train"], epochs=epochs, seed=SEED)), FOLDER / f"{name}.onnx")
    onnx.save(uneven(onnx.load(FOLDER / "mnist_cnn.onnx")), FOLDER / "mnist_uneven.onnx")
    for name in measure.NETWORKS:
        print(f"{name}: {measure.accuracy(FOLDER / f'{name}.onnx', FOLDER / 'mnist_evaluation.npz'):.1%}", flush=True)


if __name__ == "__main__":
    main()
