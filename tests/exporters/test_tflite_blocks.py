"""Elements that change between channels and pixels, in TFLite files of reals and of integers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qbench.errors import ExportError
from qbench.exporters.tflite import tflite_model
from qbench.frontends import load
from qbench.ir.build import build
from qbench.ir.frozen import Constant
from qbench.ir.graph import Attr, Graph
from qbench.ir.types import Dim, TensorType
from qbench.quant.config import QuantConfig
from qbench.runtime.interpreter import run
from qbench.session.export import export_tflite
from qbench.session.session import Session
from tests.passes.quantizable import node
from tests.tflite_files import litert

MOVES: dict[str, tuple[str, dict[str, Attr]]] = {
    "pixel shuffle": ("nn.depth_to_space", {"mode": "CRD"}),
    "depth to space": ("nn.depth_to_space", {"mode": "DCR"}),
    "space to depth": ("nn.space_to_depth", {}),
}
WIDTHS = {
    "uint8": QuantConfig(),
    "int8": QuantConfig().with_value("activations.dtype", "int8"),
    "int16": QuantConfig().with_value("activations.dtype", "int16").with_value("activations.symmetric", True),
}


def reals(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def moving(move: str, shape: tuple[Dim, ...]) -> Graph:
    op, attrs = MOVES[move]
    return build(move, {"x": TensorType(shape, "float32")}, ["y"], [node("m", op, "x", "y", block_size=2, **attrs)], {})


def between_layers(move: str, shape: tuple[Dim, ...]) -> Graph:
    op, attrs = MOVES[move]
    nodes = [
        node("conv", "nn.conv2d", "x w", "c"),
        node("move", op, "c", "m", block_size=2, **attrs),
        node("relu", "nn.relu", "m", "y"),
    ]
    return build("net", {"x": TensorType(shape, "float32")}, ["y"], nodes, {"w": Constant(reals(8, 3, 1, 1))})


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("dtype", ["float32", *WIDTHS])
def test_elements_change_between_channels_and_pixels(tmp_path: Path, move: str, dtype: str) -> None:
    """With an open batch, between layers whose integers they keep."""
    graph, x = between_layers(move, ("N", 3, 4, 6)), reals(3, 3, 4, 6)
    session = None if dtype == "float32" else Session(graph, x, config=WIDTHS[dtype])
    path = export_tflite(session or graph, tmp_path / "model.tflite")
    ours = session.quantized(session.config.with_value("semantics", "tflite")).qnn if session else graph
    assert dtype == "float32" or ours.qparams["m"].dtype == dtype
    wanted, again = run(ours, {"x": x})["y"], load(path)
    np.testing.assert_allclose(litert(path.read_bytes(), {"x": x})["y"], wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(run(again, {"x": x})["y"], wanted, rtol=1e-5, atol=1e-6)
    assert [node.op for node in again.nodes].count("qnn.quantize") == (session is not None)


@pytest.mark.parametrize("sizes", [("H", 4, 6), (2, "H", 6), (2, 4, "H"), ("H", "H", 3), ("N", "H", "W")])
def test_sizes_of_a_pixel_shuffle_may_be_open(sizes: tuple[Dim, ...]) -> None:
    graph = moving("pixel shuffle", (sizes[0], 12, *sizes[1:]))
    x = reals(*(5 if isinstance(size, str) else size for size in graph.types["x"].shape))
    assert np.array_equal(litert(tflite_model(graph), {"x": x})["y"], run(graph, {"x": x})["y"])


def test_several_open_sizes_of_16_bits_are_refused() -> None:
    session = Session(between_layers("pixel shuffle", ("N", 3, "H", 4)), reals(2, 3, 5, 4), config=WIDTHS["int16"])
    qnn = session.quantized(session.config.with_value("semantics", "tflite")).qnn
    assert qnn.qparams["m"].dtype == "int16"
    with pytest.raises(ExportError, match="several open sizes: load the model with shapes="):
        tflite_model(qnn)


def test_a_pixel_shuffle_to_one_channel_is_one_operator(tmp_path: Path) -> None:
    graph, x = moving("pixel shuffle", ("N", 4, "H", "W")), reals(2, 4, 3, 5)
    (tmp_path / "model.tflite").write_bytes(tflite_model(graph))
    assert np.array_equal(litert(tflite_model(graph), {"x": x})["y"], run(graph, {"x": x})["y"])
    assert "nn.depth_to_space" in [node.op for node in load(tmp_path / "model.tflite").nodes]
