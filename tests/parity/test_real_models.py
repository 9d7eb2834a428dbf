"""LiteRT's three sets of kernels on real models: which agree with us, and how far theory foretells the others."""

from __future__ import annotations

import numpy as np
import pytest

import qbench as qb

pytest.importorskip("ai_edge_litert", reason="ai-edge-litert has no wheel here")


@pytest.mark.parametrize("name", ["ic_resnet8_int8", "kws_dscnn_old_int8", "ad_autoencoder_int8"])
def test_reference_kernels_agree_and_others_differ_as_often_as_predicted(shared_data, name):
    path = shared_data / "models" / "mlperf_tiny" / f"{name}.tflite"
    graph = qb.load(path)
    (key,) = graph.inputs
    x = np.random.default_rng(0).integers(-128, 128, (5, *graph.types[key].shape[1:])).astype(np.int8)
    assert qb.compare(graph, qb.lab.LiteRT(path), x).different_end_to_end == 0
    for kernels in ("builtin", "xnnpack"):
        found = qb.compare(graph, qb.lab.LiteRT(path, kernels), x)
        predicted = sum((layer.predicted or 0.0) * layer.elements for layer in found.layers)
        assert found.different == pytest.approx(predicted, rel=0.15, abs=5 * np.sqrt(predicted) + 3)
        assert all((layer.max_lsb or 0) <= 1 for layer in found.layers)
