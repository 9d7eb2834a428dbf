"""A report where NaN arises in a layer."""

from __future__ import annotations

import json

import numpy as np
import pytest

from qbench.ir.build import build
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Attr, Graph, Node
from qbench.ir.types import TensorType
from qbench.report.report import Report
from qbench.session.session import Session


def ratio(batch: str | int = "N") -> Graph:
    """A dense layer over what is left of a small number after 8 bits, and a dense layer behind that."""
    rng = np.random.default_rng(0)
    weights = {name: Constant(rng.uniform(0.5, 2, (6, 6)).astype(np.float32)) for name in ("w1", "w2")}
    no: FrozenMap[str, Attr] = FrozenMap()
    nodes = [
        Node("fc1", "nn.dense", ("x", "w1"), ("a",), no, sources=("fc1",)),
        Node("small", "multiply", ("a", "tiny"), ("s",), no, sources=("small",)),
        Node("mixed", "concatenate", ("s", "big"), ("m",), FrozenMap({"axis": -1}), sources=("mixed",)),
        Node(
            "first",
            "strided_slice",
            ("m",),
            ("b",),
            FrozenMap({"begin": (0,), "end": (6,), "strides": (1,), "axes": (1,)}),
        ),
        Node("ratio", "divide", ("b", "b"), ("r",), no, sources=("ratio",)),
        Node("fc2", "nn.dense", ("r", "w2"), ("y",), no, sources=("fc2",)),
        Node("beside", "nn.relu", ("a",), ("z",), no, sources=("beside",)),
    ]
    types = {"x": TensorType((batch, 6), "float32"), "big": TensorType((batch, 2), "float32")}
    constants = weights | {"tiny": Constant(np.array([1e-4], np.float32))}
    return build("ratio", types, ("y", "z"), nodes, constants)


@pytest.fixture(scope="module")
def data() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    shapes = {"x": (40, 6), "big": (40, 2)}
    return {name: rng.uniform(1, 3, shape).astype(np.float32) for name, shape in shapes.items()}


def decided(graph: Graph, data: dict[str, np.ndarray]) -> Session:
    """What is divided by goes to 8 bits that the user has chosen."""
    session = Session(graph, data, preset="int8")
    session.override("m", threshold=3.0)
    return session


@pytest.fixture(scope="module")
def report(data: dict[str, np.ndarray]) -> Report:
    return decided(ratio(), data).run(progress=False)


def test_goes_up_to_the_layer_and_names_it(report: Report) -> None:
    assert report.stopped is not None
    for part in ("layer 'ratio' (divide) gives NaN in sample 0", "from 0 to 0", "'mixed'", "keep_float=True"):
        assert part in report.stopped
    measured = {layer.name: layer.sqnr_db for layer in report.by_layer}
    assert measured["fc1"] is not None and measured["fc1"] > 25 and measured["beside"] is not None
    assert measured["fc2"] is None and report.output.sqnr_db is None
    assert report.stopped in str(report) and json.loads(report.to_json())["stopped"] == report.stopped
    assert Report.from_data(report.to_data()) == report


def test_a_fixed_batch_is_told_of_as_well(data: dict[str, np.ndarray]) -> None:
    report = decided(ratio(1), data).run(progress=False)
    assert report.stopped is not None and "layer 'ratio' (divide) gives NaN in sample 0" in report.stopped


def test_what_it_advises_helps(data: dict[str, np.ndarray]) -> None:
    session = decided(ratio(), data)
    session.override("mixed", keep_float=True)
    report = session.run(progress=False)
    assert report.stopped is None and report.output.sqnr_db is not None


@pytest.mark.parametrize("preset", ["default", "int8"])
def test_by_itself_nothing_is_divided_by_zero(data: dict[str, np.ndarray], preset: str) -> None:
    report = Session(ratio(), data, preset=preset).run(progress=False)
    assert report.stopped is None
    assert report.layer("mixed").reason == "default: 'ratio' divides by 'm', which must not be rounded to zero"
