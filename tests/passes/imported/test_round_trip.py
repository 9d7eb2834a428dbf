"""Any quantized network made real and realized again with its own scales computes the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.verify import verify
from qbench.passes.annotate import AnnotatePass, points
from qbench.passes.imported import AnnotateTwinPass, RealizeTwinPass, Template, find_twin
from qbench.passes.realize import RealizePass
from qbench.quant.semantics import Semantics
from qbench.runtime.interpreter import run
from tests.forms.nets import CASES
from tests.graphs import graph_of
from tests.passes.calibrated import Calibrated, calibrated
from tests.passes.quantizable import bind_qparams, every_value, min_max_qparams


def realized_twin(template: Template, annotate: AnnotateTwinPass | None = None) -> Graph:
    annotated = (annotate or AnnotateTwinPass(template))(template.twin)
    marked = points(annotated)
    own = {name: template.graph.qparams[template.values[name]] for name in marked}
    return RealizeTwinPass(template)(bind_qparams(annotated, own))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(calibrated())
def test_own_scales_give_the_same_graph(network: Calibrated) -> None:
    realized = network.realized
    template = find_twin(realized)
    verify(template.twin)
    again = realized_twin(template)
    verify(again)
    assert set(again.nodes) == set(realized.nodes)
    assert again.constants == realized.constants
    assert again.qparams == realized.qparams
    twin = run(template.twin, network.feeds)
    for output in network.graph.outputs:
        assert twin[output].shape == network.values[output].shape


def test_one_slope_holds_for_every_channel() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 1, 4)).astype(np.float32)
    node = Node("y", "nn.prelu", ("x", "slope"), ("y",), FrozenMap({"axis": 2}))
    graph = graph_of({"x": x}, [node], "y", slope=np.float32([0.25]))
    annotated = AnnotatePass()(graph)
    qparams = min_max_qparams(annotated, every_value(graph, {"x": x}))
    twin = find_twin(RealizePass()(bind_qparams(annotated, qparams))).twin
    np.testing.assert_array_equal(run(twin, {"x": x})["y"], np.where(x > 0, x, 0.25 * x))


LOST_IN_INTEGERS = (".one", "clip", "bias")
"""Bounds that no value reaches, and which runtime a bias in float was for."""


@pytest.mark.parametrize("semantics", ["tflite", "onnx", "tvm"])
@pytest.mark.parametrize("name", [name for name in CASES if not name.endswith(LOST_IN_INTEGERS)])
def test_other_scales_give_what_a_calibrated_model_gets(name: str, semantics: Semantics) -> None:
    graph, random = CASES[name](), np.random.default_rng(3)
    feeds = {k: random.normal(size=(2, *t.shape[1:])).astype(np.float32) for k, t in graph.input_types().items()}
    annotated, values = AnnotatePass()(graph), every_value(graph, feeds)
    wider = {name: 1.37 * array for name, array in values.items()}
    imported, wanted = (
        RealizePass(semantics=semantics)(bind_qparams(annotated, min_max_qparams(annotated, given)))
        for given in (values, wider)
    )
    template = find_twin(imported)
    weights = {template.real[name]: array for name, array in graph.constants.items() if name in template.real}
    template = template.with_constants({name: array for name, array in weights.items() if name in template.twin.types})
    twin = AnnotateTwinPass(template)(template.twin)
    tuned = {name: wanted.qparams[template.values[name]] for name in points(twin)}
    again = RealizeTwinPass(template)(bind_qparams(twin, tuned))
    verify(again)
    found, expected = run(again, feeds), run(wanted, feeds)
    for output, array in expected.items():
        np.testing.assert_array_equal(found[output], array)
