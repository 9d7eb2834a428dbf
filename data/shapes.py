"""A small detector that 8 bits break, and pictures for it: ``python data/shapes.py`` (needs onnx).

Each picture has up to three shapes (square, disk, cross) on noise, and the detector says for each cell of a grid which
of them has its centre there. Nothing is trained by steps: the first layers are random filters, and ridge regression
fits the head to what they make. Then the channels of the stem get ranges as uneven as training leaves them in real
networks (see uneven.py): it computes the same, but one scale for a whole tensor leaves most channels few levels.
"""

from __future__ import annotations

import numpy as np
import onnx
from graphs import Writer
from measure import FOLDER
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto, helper

SEED = 7
SIZE, CELLS, RADIUS = 32, 8, 4
STEM, FEATURES, HEAD = 12, 24, 9
OCTAVES = 5
RIDGE = 0.03
PICTURES = {"train": 500, "calibration": 48, "evaluation": 96}


def pictures(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Pixels in 0..1, float32 (count, 1, 32, 32) in steps of 1/15, and truths, float32 (count, 3, 8, 8) of 0 and 1."""
    x = rng.uniform(0, 0.35, (count, SIZE, SIZE))
    y = np.zeros((count, 3, CELLS, CELLS), np.float32)
    rows, columns = np.mgrid[:SIZE, :SIZE]
    for picture, truth in zip(x, y, strict=True):
        places = rng.permutation(9)[: rng.integers(1, 4)]  # of nine parts of the picture, so that none overlap
        for place in places:
            kind = int(rng.integers(3))
            row, column = (5 + 10 * np.array(divmod(place, 3)) + rng.integers(0, 3, 2)).tolist()
            up, left = np.abs(rows - row), np.abs(columns - column)
            near = np.maximum(up, left) <= RADIUS
            inside = (near, up**2 + left**2 <= RADIUS**2 + 1, near & (np.minimum(up, left) <= 1))[kind]
            picture[inside] += rng.uniform(0.4, 0.6)
            truth[kind, row * CELLS // SIZE, column * CELLS // SIZE] = 1
    return (np.round(15 * x.clip(0, 1)) / 15).astype(np.float32)[:, None], y


def windows(x: np.ndarray, side: int, stride: int) -> np.ndarray:
    """What a convolution reads: (n, channels, rows, columns, side, side)."""
    pad = side // 2
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    return sliding_window_view(padded, (side, side), (2, 3))[:, :, ::stride, ::stride]


def features(x: np.ndarray, weights: dict[str, np.ndarray]) -> np.ndarray:
    """What the head reads: (n, 32, 16, 16)."""
    h = np.maximum(np.einsum("ncyxij,ocij->noyx", windows(x, 3, 2), weights["stem"], optimize=True), 0)
    h = np.maximum(np.einsum("ncyxij,cij->ncyx", windows(h, 3, 1), weights["depthwise"][:, 0], optimize=True), 0)
    return np.maximum(np.einsum("ncyx,oc->noyx", h, weights["pointwise"][:, :, 0, 0], optimize=True), 0)


def fitted(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Random filters, and the head by ridge regression."""
    stem = rng.normal(size=(STEM, 1, 3, 3))
    weights = {
        "stem": stem - stem.mean((2, 3), keepdims=True) * rng.integers(0, 2, (STEM, 1, 1, 1)),
        "depthwise": rng.normal(0.2, 0.4, (STEM, 1, 3, 3)),
        "pointwise": rng.normal(0.05, 1 / np.sqrt(STEM), (FEATURES, STEM, 1, 1)),
    }
    x, y = pictures(PICTURES["train"], rng)
    weights["pointwise"] /= np.sqrt(np.square(features(x, weights)).mean((0, 2, 3))).reshape(FEATURES, 1, 1, 1)
    rows = windows(features(x, weights), HEAD, 2).transpose(0, 2, 3, 1, 4, 5).reshape(-1, FEATURES * HEAD**2)
    rows = np.concatenate([rows, np.ones((len(rows), 1))], 1)
    wanted = (12 * y - 6).transpose(0, 2, 3, 1).reshape(-1, 3)
    heavy = np.where(wanted.max(1) > 0, 12.0, 1.0)[:, None]  # few cells have a shape
    gram = rows.T @ (heavy * rows) + RIDGE * len(rows) * np.eye(rows.shape[1])
    found = np.linalg.solve(gram, rows.T @ (heavy * wanted))
    weights["head"] = found[:-1].T.reshape(3, FEATURES, HEAD, HEAD)
    return weights | {"head.bias": found[-1]}


def uneven(weights: dict[str, np.ndarray], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The same network with other ranges in the channels of the stem and of the depthwise layer behind it."""
    first, second = (2.0 ** rng.uniform(-OCTAVES, OCTAVES, (STEM, 1, 1, 1)) for _ in range(2))
    return weights | {
        "stem": weights["stem"] * first,
        "depthwise": weights["depthwise"] / first * second,
        "pointwise": weights["pointwise"] / second.reshape(1, STEM, 1, 1),
    }


def detector(weights: dict[str, np.ndarray]) -> onnx.ModelProto:
    """The network as a file."""
    writer, h = Writer("shapes_detector"), "x"
    for name, stride, group in (("stem", 2, 1), ("depthwise", 1, STEM), ("pointwise", 1, 1), ("head", 2, 1)):
        weight = weights[name].astype(np.float32)
        side = weight.shape[2]
        given = [h, writer.parameter(f"{name}.weight", weight)]
        if name == "head":
            given.append(writer.parameter("head.bias", weights["head.bias"].astype(np.float32)))
        h = writer.node(
            "Conv", name, *given, kernel_shape=[side] * 2, pads=[side // 2] * 4, strides=[stride] * 2, group=group
        )
        if name != "head":
            h = writer.node("Relu", f"{name}_relu", h)
    writer.node("Sigmoid", "sigmoid", h, output="found")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ("N", 1, SIZE, SIZE))
    y = helper.make_tensor_value_info("found", TensorProto.FLOAT, ("N", 3, CELLS, CELLS))
    return writer.model(x, y)


def main() -> None:
    rng = np.random.default_rng(SEED)
    weights = fitted(rng)
    for name in ("calibration", "evaluation"):
        x, y = pictures(PICTURES[name], rng)
        np.savez_compressed(FOLDER / f"shapes_{name}.npz", x=x, y=y)
    onnx.save(detector(uneven(weights, rng)), FOLDER / "shapes_detector.onnx")


if __name__ == "__main__":
    main()
