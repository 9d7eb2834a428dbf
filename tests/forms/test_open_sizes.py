"""Networks whose images may be of any size run in integers too: what hangs on the size is known when data comes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qbench.exporters import write_onnx
from qbench.frontends import load
from qbench.ir.build import build
from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph
from qbench.ir.op import OPS
from qbench.ir.types import TensorType
from qbench.ops.legal import legal
from qbench.passes.annotate import AnnotatePass, quantized_value
from qbench.passes.realize import RealizePass
from qbench.quant.semantics import Semantics
from qbench.runtime.interpreter import run
from qbench.runtime.programs import plan
from tests.exporters.parity import session
from tests.networks import node
from tests.passes.quantizable import bind_qparams, every_value, min_max_qparams

SIZES = ((5, 7), (2, 2), (9, 4), (40, 33))
ENDS = {
    "global": node("nn.global_avg_pool2d", ["conv"], "y"),
    "mean": node("mean", ["conv"], "y", axes=(2, 3), keepdims=False),
    "rows": node("mean", ["conv"], "y", axes=(2,)),
    "windows": node("nn.avg_pool2d", ["conv"], "y", pool_size=(2, 2), strides=(1, 1), padding=(0, 0, 0, 0)),
    "nearest": node("image.resize2d", ["conv"], "y", size=("2*H", "3*W"), scales=(2.0, 3.0), method="nearest"),
    "linear": node("image.resize2d", ["conv"], "y", size=("2*H", "3*W"), scales=(2.0, 3.0), method="linear"),
}
SPOKEN: list[tuple[str, Semantics | None]] = [
    (end, semantics)
    for end in ENDS
    for semantics in (None, "tvm", "onnx")
    if (end, semantics) != ("linear", "onnx")  # onnxruntime interpolates real numbers
]


def network(end: str) -> Graph:
    weight = np.random.default_rng(0).normal(size=(8, 3, 1, 1)).astype(np.float32)
    attrs = {"strides": (1, 1), "padding": (0, 0, 0, 0), "dilation": (1, 1), "groups": 1}
    nodes = [node("nn.conv2d", ["x", "w"], "conv", **attrs), ENDS[end], node("nn.relu", ["y"], "z")]
    types = {"x": TensorType(("N", 3, "H", "W"), "float32")}
    return build("any size", types, ["z"], nodes, {"w": Constant(weight)})


def image(size: tuple[int, int], samples: int = 2) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(size)
    return {"x": (rng.normal(size=(samples, 3, *size)) + 0.5).astype(np.float32)}


def quantized(end: str, dtype: str, semantics: Semantics | None) -> tuple[Graph, Graph]:
    """The annotated graph with qparams, and the qnn graph."""
    annotated = AnnotatePass()(network(end))
    values = every_value(annotated, image((20, 30)))
    bound = bind_qparams(annotated, min_max_qparams(annotated, values, dtype, True))
    return bound, RealizePass(semantics=semantics)(bound)


def by_hand(end: str, reals: np.ndarray) -> np.ndarray:
    sized = (2 * reals.shape[2], 3 * reals.shape[3])
    if end == "windows":
        windows = np.lib.stride_tricks.sliding_window_view(reals, (2, 2), axis=(2, 3))
        return windows.mean(axis=(4, 5))
    if end == "nearest":
        return reals.repeat(2, axis=2).repeat(3, axis=3)
    if end == "linear":
        return np.asarray(OPS["image.resize2d"](**{**ENDS[end].attrs, "size": sized}).compute(reals))
    return reals.mean(axis=2 if end == "rows" else (2, 3), keepdims=end != "mean")


@pytest.mark.parametrize(("end", "semantics"), SPOKEN)
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16"])
def test_integers_of_any_size(end: str, dtype: str, semantics: Semantics | None) -> None:
    """What follows from the exact mean of what the integers before it stand for, unless that lies between two."""
    _, graph = quantized(end, dtype, semantics)
    end_of_it = "y" if end == "linear" else "z"  # which keeps the scale that it reads
    before, after = (quantized_value(graph, tensor) for tensor in ("conv", end_of_it))
    assert before is not None and after is not None and not any(made.reason for made in graph.nodes)
    for size in SIZES:
        values = run(graph, image(size), [before, after])
        source, target = graph.qparams[before], graph.qparams[after]
        reals = (values[before].astype(np.float64) - source.zero_points[0]) * source.scales[0]
        floor = -np.inf if end == "linear" else 0
        steps = np.maximum(by_hand(end, reals), floor) / target.scales[0] + target.zero_points[0]
        apart = np.abs(values[after] - np.clip(np.rint(steps), target.qmin, target.qmax))
        between = np.abs(np.abs(steps - np.floor(steps)) - 0.5) < 1e-2
        assert (apart <= between).all()
        program = plan(legal(graph), sizes={"H": size[0], "W": size[1]}, keep=[after])
        assert not program.fallbacks
        np.testing.assert_array_equal(program.run(image(size), keep=[after])[after], values[after])


@pytest.mark.parametrize("end", [end for end, semantics in SPOKEN if semantics == "onnx"])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_a_file_of_any_size_is_the_same_integers(end: str, dtype: str, tmp_path: Path) -> None:
    bound, graph = quantized(end, dtype, "onnx")
    path = write_onnx(bound, tmp_path / "model.onnx")
    again = load(path)
    assert not any(made.reason for made in again.nodes)
    for size in SIZES:
        wanted = run(graph, image(size))["z"]
        np.testing.assert_array_equal(run(again, image(size))["z"], wanted)
        (theirs,) = session(path, default=dtype == "uint8").run(None, image(size))
        step = graph.qparams[quantized_value(graph, "z") or ""].scales[0]
        np.testing.assert_allclose(theirs, wanted, rtol=0, atol=1.01 * step)
