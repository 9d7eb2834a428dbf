"""A network with two layers that spoil its output together."""

from __future__ import annotations

import numpy as np

from qbench.quant.config import QuantConfig
from qbench.session.session import Session
from tests.networks import mlp

SIZES = (12, 24, 24, 24, 24, 24, 5)
CULPRITS = ("dense_1", "dense_2")
X = np.random.default_rng(1).normal(size=(48, 12)).astype(np.float32)
GRAPH = mlp(3, SIZES)


def spoiled() -> QuantConfig:
    """Weights of two layers in 4 bits, cut off."""
    config = QuantConfig()
    for name in CULPRITS:
        config = config.override_tensor(f"{name}.weight", dtype="int4", axis="tensor")
    return config


def session(**options: object) -> Session:
    return Session(GRAPH, X, (X[:24], np.arange(24) % 5), config=spoiled(), **options)  # pyright: ignore[reportArgumentType]
