"""Files with scales of their own in one place, and scales of each run in another."""

from pathlib import Path

import numpy as np
from onnx import TensorProto

import qbench as qb
from tests.frontends.models import check, model, node, random, reference, save


def test_an_embedding_in_integers_before_products_by_range(tmp_path: Path) -> None:
    nodes = [
        node("Gather", ["table", "ids"], ["codes"], "embed"),
        node("DequantizeLinear", ["codes", "step", "zero"], ["words"], "words"),
        node("DynamicQuantizeLinear", ["words"], ["q", "scale", "middle"], "range"),
        node("MatMulInteger", ["q", "w", "middle"], ["sums"], "product"),
        node("Cast", ["sums"], ["real"], "real", to=TensorProto.FLOAT),
        node("Mul", ["scale", "w_step"], ["both"], "both"),
        node("Mul", ["real", "both"], ["y"], "y"),
    ]
    constants = {
        "table": np.random.default_rng(0).integers(0, 255, (20, 8), np.uint8),
        "step": np.float32(0.02),
        "zero": np.uint8(120),
        "w": (random(8, 4) * 40).astype(np.int8),
        "w_step": np.float32(0.01),
    }
    inputs, dtypes = {"ids": ["N", "T"]}, {"ids": TensorProto.INT64}
    path = save(model(nodes, inputs, constants=constants, dtypes=dtypes), tmp_path)
    feeds = {"ids": np.arange(10).reshape(2, 5)}
    graph = check(path, feeds, 1e-6)
    assert graph.qparams["table"].dtype == "uint8"
    session = qb.Session(graph, [{"ids": np.arange(k, k + 6).reshape(1, 6)} for k in range(4)])
    session.run()
    theirs = reference(qb.export_onnx(session, tmp_path / "again.onnx"), feeds)["y"]
    np.testing.assert_allclose(theirs, reference(path, feeds)["y"], atol=0.05)
