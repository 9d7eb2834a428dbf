"""What leaves sizes open is measured, and its cost counted, as the same network with the sizes that its data have."""

from __future__ import annotations

import numpy as np
import pytest

from qbench.calibration.collect import collect
from qbench.data.dataset import Dataset
from qbench.evaluate import evaluate as evaluating
from qbench.evaluate import parts
from qbench.evaluate.cache import ValueCache
from qbench.evaluate.evaluate import evaluate
from qbench.evaluate.side_by_side import activation_bytes
from qbench.ir.build import build
from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph
from qbench.ir.types import Dim, TensorType
from qbench.passes.prepare import prepare
from qbench.quant.config import QuantConfig
from qbench.quantize.quantized import Quantized, quantize_graph
from qbench.search.cost import effort, products
from tests.networks import node

_SIZE = (24, 36)


def _network(height: Dim, width: Dim) -> Graph:
    rng = np.random.default_rng(0)
    weights = {"v": rng.normal(size=(8, 3, 3, 3)), "w": rng.normal(size=(4, 8, 1, 1))}
    nodes = [
        node("nn.conv2d", ["x", "v"], "c", padding=(1, 1, 1, 1)),
        node("nn.relu", ["c"], "r"),
        node("nn.conv2d", ["r", "w"], "y", strides=(2, 2)),
    ]
    constants = {name: Constant(array.astype(np.float32)) for name, array in weights.items()}
    return build("g", {"x": TensorType(("N", 3, height, width), "float32")}, ["y"], nodes, constants)


def _images(count: int) -> np.ndarray:
    return np.random.default_rng(count).normal(size=(count, 3, *_SIZE)).astype(np.float32)


def _quantized(graph: Graph) -> Quantized:
    prepared = prepare(graph)
    return quantize_graph(prepared, collect(prepared.graph, _images(16)), QuantConfig())


OPEN, FIXED = _network("H", "W"), _network(*_SIZE)


def test_the_sizes_of_data_are_those_of_the_commonest_samples() -> None:
    common, rare = np.zeros((1, 3, *_SIZE), np.float32), np.zeros((1, 3, 8, 8), np.float32)
    assert Dataset(OPEN, [rare, common, common]).sizes == {"N": 1, "H": 24, "W": 36}
    assert Dataset(FIXED, _images(5)).sizes == {"N": 1}


def test_estimates_are_those_of_fixed_sizes() -> None:
    either, sizes = (_quantized(OPEN), _quantized(FIXED)), Dataset(OPEN, _images(2)).sizes
    macs = 24 * 36 * 8 * 27 + 12 * 18 * 4 * 8
    assert [products(one.prepared, sizes) for one in either] == [macs, macs]
    efforts, bytes_ = (
        [f(one) for one in either] for f in (lambda q: effort(q.graph, sizes), lambda q: activation_bytes(q, sizes))
    )
    assert efforts[0] == efforts[1] > effort(either[0].graph, {})
    assert bytes_[0] == bytes_[1] > activation_bytes(either[0], {})


def test_reports_are_those_of_fixed_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluating, "_SMALL", 0)  # samples of values are compared
    monkeypatch.setattr(evaluating, "_FEWEST", 500)
    monkeypatch.setattr(evaluating, "_MOST", 500)
    found = [
        evaluate(_quantized(graph), data, probe=data).by_layer
        for graph, data in ((graph, Dataset(graph, _images(6))) for graph in (OPEN, FIXED))
    ]
    said = [[(one.macs, one.sqnr_db, one.own_sqnr_db, one.inherited_sqnr_db) for one in layers] for layers in found]
    assert said[0] == said[1]


def test_as_few_samples_as_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_MOST_BYTES", 1 << 17)
    taken = [parts.Parts(_quantized(g), Dataset(g, _images(8)), (), ValueCache(0), None).few for g in (OPEN, FIXED)]
    assert [few.stop for few in taken] == [3, 3]
