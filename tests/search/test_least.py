"""Which tensors 8 bits can hold, measured at the output."""

from __future__ import annotations

import numpy as np
import pytest

from qbench.calibration.collect import collect
from qbench.data.dataset import Dataset
from qbench.errors import Cancelled
from qbench.ir.build import build
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Attr, Graph, Node
from qbench.ir.memo import Memo
from qbench.ir.types import TensorType
from qbench.passes.prepare import prepare
from qbench.quant.config import QuantConfig
from qbench.quantize.quantized import quantize_graph
from qbench.search.least import LADDER, measure_least_db

X = np.random.default_rng(1).normal(size=(32, 12, 16)).astype(np.float32)


def network(outlier: float) -> Graph:
    """Four dense layers, a normalization between the second and the third; one channel before it is scaled up."""
    rng = np.random.default_rng(0)
    weights = {f"w{i}": rng.normal(0, 0.25, (16, 16)).astype(np.float32) for i in range(4)}
    weights["w1"][3] *= outlier
    weights |= {"gamma": np.ones(16, np.float32), "beta": np.zeros(16, np.float32)}
    weights["gamma"][3] = 1 / outlier
    no: FrozenMap[str, Attr] = FrozenMap()
    steps = [("nn.dense", "x", "w0"), ("tanh", "fc0"), ("nn.dense", "act0", "w1"), ("add", "fc1", "act0")]
    steps += [("nn.layer_norm", "sum", "gamma", "beta"), ("nn.dense", "norm", "w2"), ("nn.dense", "fc2", "w3")]
    names = ["fc0", "act0", "fc1", "sum", "norm", "fc2", "y"]
    nodes = [Node(name, op, tuple(inputs), (name,), no) for name, (op, *inputs) in zip(names, steps, strict=True)]
    constants = {name: Constant(array) for name, array in weights.items()}
    return build("net", {"x": TensorType(("N", 12, 16), "float32")}, ("y",), nodes, constants)


def found(graph: Graph, cancel: object = None) -> float:
    prepared = prepare(graph)
    data = Dataset(graph, X)
    config = QuantConfig.of_preset()
    return measure_least_db(prepared, collect(prepared.graph, X), config, data, Memo(), cancel)  # pyright: ignore


def runs(graph: Graph, least: float) -> dict[str, str]:
    prepared = prepare(graph)
    config = QuantConfig.of_preset().with_value("activations.least_db", least)
    annotated = quantize_graph(prepared, collect(prepared.graph, X), config).annotated
    return {node.name: node.reason for node in annotated.nodes if node.op != "qnn.fake_quantize"}


def test_a_network_that_8_bits_do_not_harm_keeps_its_integers() -> None:
    graph = network(1.0)
    assert found(graph) == found(graph) == LADDER[0]
    assert [name for name, reason in runs(graph, LADDER[0]).items() if not reason] == ["fc0", "act0", "fc1", "fc2", "y"]


def test_an_outlier_before_a_normalization_lifts_what_reads_it() -> None:
    least = found(network(400.0))
    assert least in LADDER
    reasons = runs(network(400.0), least)
    assert reasons["sum"] and reasons["norm"] and not reasons["fc0"]


def test_of_a_large_model_one_easy_sample_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    hard = X * np.where(np.arange(16) == 3, 400, 1).astype(np.float32)
    hard[0] = 0
    monkeypatch.setattr(f"{__name__}.X", hard)
    monkeypatch.setattr("qbench.search.least._MANY_MACS", 0)
    nodes = [Node("act", "tanh", ("x",), ("act",)), Node("y", "nn.dense", ("act", "w"), ("y",))]
    weight = np.random.default_rng(0).normal(0, 0.25, (16, 16)).astype(np.float32)
    types = {"x": TensorType(("N", 12, 16), "float32")}
    assert found(build("net", types, ("y",), nodes, {"w": Constant(weight)})) > LADDER[0]


def test_can_be_stopped() -> None:
    class Set:
        def is_set(self) -> bool:
            return True

    with pytest.raises(Cancelled):
        found(network(1.0), Set())
