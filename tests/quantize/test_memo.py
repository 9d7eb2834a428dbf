"""A memo changes how long it takes to quantize, and nothing else."""

from __future__ import annotations

import copy

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from qbench.calibration.collect import collect
from qbench.errors import QBenchError
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Graph
from qbench.ir.memo import Memo
from qbench.ir.op import OPS, QuantRule
from qbench.passes.annotate import AnnotatePass, points
from qbench.passes.prepare import prepare
from qbench.quant.config import QuantConfig
from qbench.quantize.quantized import Quantized, quantize_graph
from tests.networks import mlp, samples
from tests.passes.quantizable import every_value
from tests.passes.random_graphs import networks

STEPS = st.sampled_from(["threshold", "threshold", "dtype", "keep_float", "rounding", "default", "weights", "back"])


def edited(config: QuantConfig, step: str, graph: Graph, draw: st.DrawFn) -> QuantConfig:
    tensors = list(points(AnnotatePass()(graph)).values())
    activations = [point.tensor for point in tensors if point.kind == "activation"]
    layers = [node.name for node in graph.nodes if OPS[node.op].rule != QuantRule.FLOAT]
    if step == "threshold" and tensors:
        name = draw(st.sampled_from(tensors)).tensor
        return config.override_tensor(name, threshold=draw(st.sampled_from([0.25, 1.0, 3.0])))
    if step == "dtype" and activations:
        name = draw(st.sampled_from(activations))
        return config.override_tensor(name, dtype=draw(st.sampled_from(["uint8", "int8", "int16"])))
    if step == "keep_float" and layers:
        return config.override_layer(draw(st.sampled_from(layers)), keep_float=draw(st.booleans()))
    if step == "rounding" and layers:
        rounding = draw(st.sampled_from(["tflite_double", "fp32_rne", "pow2_half_up", None]))
        return config.override_layer(draw(st.sampled_from(layers)), rounding=rounding)
    if step == "default":
        return config.with_value("rounding", draw(st.sampled_from(["tflite_single", "fp32_rne"])))
    if step == "weights":
        return config.with_value("weights.axis", draw(st.sampled_from(["channel", None])))
    return QuantConfig()


def outcome(*given: object) -> Quantized | str:
    try:
        return quantize_graph(*given)  # type: ignore[arg-type]
    except QBenchError as error:
        return str(error)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(graph=networks(), steps=st.lists(STEPS, min_size=1, max_size=8), data=st.data())
def test_any_edits_in_any_order(graph: Graph, steps: list[str], data: st.DataObject) -> None:
    random = np.random.default_rng(0)
    feeds = {k: random.normal(size=(2, *t.shape[1:])).astype(np.float32) for k, t in graph.input_types().items()}
    values = every_value(graph, feeds)
    assume(all(np.isfinite(array).all() and np.abs(array).max(initial=0) < 1e6 for array in values.values()))
    prepared = prepare(graph)
    statistics = collect(prepared.graph, feeds)
    config, memo = QuantConfig(), Memo()
    for step in steps:
        config = edited(config, step, prepared.graph, data.draw)
        fresh = outcome(copy.deepcopy(prepared), statistics, config)
        assert outcome(prepared, statistics, config, memo) == fresh


def test_an_edit_keeps_the_nodes_that_it_does_not_touch() -> None:
    prepared, memo = prepare(mlp()), Memo()
    statistics = collect(prepared.graph, samples(20))
    before = quantize_graph(prepared, statistics, QuantConfig(), memo).graph
    after = quantize_graph(prepared, statistics, QuantConfig().override_tensor("relu_0", threshold=1.0), memo).graph
    assert after != before
    changed = {node.name for node in after.nodes if node is not before.by_name.get(node.name)}
    assert {"relu_0", "dense_1.requantize"} < changed
    assert not any("dense_2" in name or "bias_2" in name for name in changed)


def test_points_of_layers_that_stay_are_the_same_with_others_in_float() -> None:
    graph, memo = prepare(mlp()).graph, Memo()
    first, second = (AnnotatePass(FrozenMap({name: "tried"}))(graph, memo) for name in ("dense_0", "dense_1"))
    assert first != second == AnnotatePass(FrozenMap({"dense_1": "tried"}))(graph)
    kept = {node.name for node in second.nodes if node is first.by_name.get(node.name)}
    assert {"dense_2", "dense_2.weight.q"} <= kept and not {"dense_0", "dense_1"} & kept
