"""Sparse constants are read as LiteRT reads them; what does not fit together is an error."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from qbench.errors import ModelError
from qbench.frontends import load
from qbench.frontends.tflite.sparse import Level, Sparsity
from qbench.runtime.interpreter import run
from tests.tflite_files import Tensor, litert, model, operator

RNG = np.random.default_rng(3)


def encoded(whole: np.ndarray, order: Sequence[int], sparse: Sequence[bool]) -> tuple[Sparsity, np.ndarray]:
    """A slow writer: walks the axes in order, and at a sparse one leaves out what holds nothing but zeros."""
    turned = whole.transpose(order)
    parts, levels = [turned], []
    for axis, is_sparse in enumerate(sparse):
        size = turned.shape[axis]
        if not is_sparse:
            levels.append(Level(size))
            parts = [part[i] for part in parts for i in range(size)]
            continue
        kept = [[i for i in range(size) if np.any(part[i])] for part in parts]
        segments = np.cumsum([0, *map(len, kept)])
        levels.append(Level(0, segments, np.array([i for some in kept for i in some], np.int64)))
        parts = [part[i] for part, some in zip(parts, kept, strict=True) for i in some]
    return Sparsity(order, (), levels), np.array(parts, whole.dtype)


def holes(*shape: int) -> np.ndarray:
    whole = RNG.normal(size=shape).astype(np.float32)
    return whole * (RNG.random(shape) < 0.3)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
@pytest.mark.parametrize("sparse", [(False, False, True), (True, True, True), (False, True, False)])
def test_elements_stand_where_they_were(order: tuple[int, ...], sparse: tuple[bool, ...]) -> None:
    whole = holes(4, 5, 6)
    sparsity, stored = encoded(whole, order, sparse)
    np.testing.assert_array_equal(sparsity.dense(stored, whole.shape), whole)


def test_blocks() -> None:
    """A matrix of 2 x 4 in blocks of 1 x 2, of which only those that hold something are stored."""
    sparsity = Sparsity((0, 1, 2), (1,), (Level(2), Level(0, np.array([0, 1, 2]), np.array([1, 0])), Level(2)))
    found = sparsity.dense(np.float32([1, 2, 3, 4]), (2, 4))
    np.testing.assert_array_equal(found, [[0, 0, 1, 2], [3, 4, 0, 0]])


def test_a_file_gives_what_litert_gives(tmp_path: Path) -> None:
    weight, x = holes(3, 8), RNG.normal(size=(2, 8)).astype(np.float32)
    sparsity, stored = encoded(weight, (0, 1), (False, True))
    tensors = [
        Tensor("x", (2, 8)),
        Tensor("stored", (3, 8), raw=stored.tobytes(), sparse=sparsity),
        Tensor("w", (3, 8)),
        Tensor("y", (2, 3)),
    ]
    data = model(tensors, [operator("DENSIFY", ["stored"], ["w"]), operator("FULLY_CONNECTED", ["x", "w"])])
    path = tmp_path / "model.tflite"
    path.write_bytes(data)
    np.testing.assert_allclose(run(load(path), {"x": x})["y"], x @ weight.T, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(litert(data, {"x": x})["y"], x @ weight.T, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("levels", "told"),
    [
        ((Level(2),), "levels"),
        ((Level(2), Level(0, np.array([0, 1]), np.array([1]))), "segments"),
        ((Level(2), Level(0, np.array([0, 2, 3]), np.array([1, 9, 0]))), "beyond axis 1"),
        ((Level(2), Level(4)), "more than the 3 elements"),
        ((Level(2), Level(0, np.array([0, 1, 1]), np.array([1]))), "3 are stored"),
    ],
)
def test_what_does_not_fit(levels: tuple[Level, ...], told: str) -> None:
    with pytest.raises(ModelError, match=told):
        Sparsity((0, 1), (), levels).dense(np.ones(3, np.float32), (2, 4))


def test_too_large() -> None:
    with pytest.raises(ModelError, match="elements"):
        Sparsity((0, 1), (), (Level(2), Level(4))).dense(np.ones(8, np.float32), (2**20, 2**20))
