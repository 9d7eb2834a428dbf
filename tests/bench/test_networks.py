from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from qbench.bench.networks import NETWORKS
from qbench.frontends import load
from qbench.ops.products import macs
from qbench.passes.prepare import prepare
from qbench.runtime.interpreter import call

PUBLISHED = {
    "resnet18": (1.81, 11.7),
    "resnet50": (4.09, 25.6),
    "mobilenetv2": (0.30, 3.5),
    "inception_v3": (5.7, 23.8),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_is_as_published_and_means_the_same_to_everybody(name: str, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    model = NETWORKS[name]()
    onnx.checker.check_model(model, full_check=True)
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    graph = prepare(load(path)).graph
    gmac, millions = PUBLISHED[name]
    assert round(sum(macs(graph, node) for node in graph.nodes) / 1e9, len(str(gmac)) - 2) == gmac
    parameters = sum(np.prod(constant.dims) for constant in model.graph.initializer)
    assert parameters / 1e6 == pytest.approx(millions, rel=0.01)
    assert graph.input_types()["x"].shape == ("N", 3, *[299 if name == "inception_v3" else 224] * 2)
    x = np.random.default_rng(0).standard_normal((1, *graph.input_types()["x"].shape[1:])).astype(np.float32)
    theirs = onnxruntime.InferenceSession(path).run(None, {"x": x})[0]
    assert 1 < theirs.std() < 10
    np.testing.assert_allclose(call(graph, x), theirs, atol=1e-4 * theirs.std())


def test_weights_are_the_same_every_time() -> None:
    assert NETWORKS["mobilenetv2"]().SerializeToString() == NETWORKS["mobilenetv2"]().SerializeToString()
