from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from qbench.calibration.collect import collect
from qbench.data.dataset import Dataset
from qbench.evaluate.cache import ValueCache
from qbench.evaluate.evaluate import evaluate, evaluate_output
from qbench.evaluate.measure import decibels
from qbench.evaluate.sensitivity import sensitivity
from qbench.ir.build import build, rebuild
from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.passes.prepare import prepare
from qbench.quant.arithmetic import dequantize, quantize
from qbench.quant.config import QuantConfig
from qbench.quantize.quantized import Quantized, quantize_graph
from qbench.report.compare import compare
from qbench.runtime.programs import plan
from tests.networks import mlp, node, samples

GRAPH = mlp()
PREPARED = prepare(GRAPH)
STATISTICS = collect(PREPARED.graph, samples(60))
X, Y = samples(50, seed=2), np.random.default_rng(3).integers(0, 5, 50)
DATA = Dataset(GRAPH, X, Y)


def quantized(config: QuantConfig | None = None) -> Quantized:
    return quantize_graph(PREPARED, STATISTICS, config or QuantConfig())


def everything(graph: Graph) -> dict[str, np.ndarray]:
    names = list(graph.activations())
    program = plan(graph, keep=names)
    parts = [program.run(chunk.feeds, keep=names) | dict(chunk.feeds) for chunk in DATA.chunks()]
    return {name: np.concatenate([part[name] for part in parts]) for name in names}


def ratio(reference: np.ndarray, value: np.ndarray) -> float | None:
    difference = (reference - value).astype(np.float64)
    return decibels(float((reference.astype(np.float64) ** 2).sum()), float((difference**2).sum()))


def test_every_number_is_what_two_full_runs_say():
    model = quantized()
    report = evaluate(model, DATA)
    reference, integers = everything(model.prepared), everything(model.graph)
    assert [layer.name for layer in report.by_layer] == [node.name for node in GRAPH.nodes]
    for layer in report.by_layer:
        value = integers[layer.tensor]
        if layer.tensor in model.graph.qparams:
            value = dequantize(value, model.graph.qparams[layer.tensor])
        assert layer.sqnr_db == pytest.approx(ratio(reference[layer.tensor], value), rel=1e-9)
    assert report.output.sqnr_db == pytest.approx(ratio(reference["y"], integers["y"]), rel=1e-9)
    assert report.output.agreement == np.mean(reference["y"].argmax(1) == integers["y"].argmax(1))
    assert report.output.top1_float == np.mean(reference["y"].argmax(1) == Y)
    assert report.output.top1 == np.mean(integers["y"].argmax(1) == Y)
    assert report.output.samples == 50


def test_what_each_layer_says_of_itself():
    model = quantized()
    layers = {layer.name: layer for layer in evaluate(model, DATA).by_layer}
    assert {name: layer.runs_as for name, layer in layers.items()} == {
        "dense_0": "uint8", "bias_0": "int32", "relu_0": "uint8", "dense_1": "uint8", "bias_1": "int32",
        "relu_1": "uint8", "dense_2": "uint8", "bias_2": "int32", "y": "float32",
    }  # fmt: skip
    assert layers["y"].reason == "default for this op: softmax stays in float"
    assert all(layer.reason is None for name, layer in layers.items() if name != "y")
    encoding = model.encodings["relu_0"]
    for name in ("dense_0", "bias_0", "relu_0"):  # one group: what an override of any of them changes
        layer = layers[name]
        assert (layer.encoded, layer.scale, layer.zero_point) == ("relu_0", encoding.qparams.scale, 0)
        assert (layer.threshold, layer.calibrator, layer.chosen_by) == (
            encoding.threshold,
            encoding.calibrator,
            encoding.reason,
        )
        assert layer.bits == 8
    assert layers["y"].scale is None
    assert layers["dense_0"].clipped is None
    assert 0 <= (layers["relu_0"].clipped or 0) < 0.5


def test_weights_on_their_own():
    for config in (QuantConfig(), QuantConfig().with_value("weights.axis", None)):
        model = quantized(config)
        for layer in evaluate(model, DATA).by_layer:
            if layer.op != "nn.dense":
                assert layer.weight is None
                continue
            weight = GRAPH.constants[f"{layer.name}.weight"].array
            q = model.encodings[f"{layer.name}.weight"].qparams
            assert layer.weight == f"{layer.name}.weight"
            assert layer.weight_scale == q.scale
            assert layer.weight_sqnr_db == pytest.approx(ratio(weight, dequantize(quantize(weight, q), q)))


def test_per_tensor_weights_stand_out_where_one_channel_is_large():
    weight = GRAPH.constants["dense_1.weight"].array.copy()
    weight[0] *= 100
    prepared = prepare(rebuild(GRAPH, constants={**GRAPH.constants, "dense_1.weight": Constant(weight)}))
    statistics = collect(prepared.graph, samples(60))
    layers = [
        evaluate(quantize_graph(prepared, statistics, QuantConfig().with_value("weights.axis", axis)), DATA)
        for axis in ("channel", None)
    ]
    good, bad = (report.layer("dense_1") for report in layers)
    assert isinstance(good.weight_scale, tuple)
    assert isinstance(bad.weight_scale, float)
    assert (good.weight_worst_channel_db or 0) > 35
    assert (bad.weight_worst_channel_db or 99) < 5
    q = QParams(bad.weight_scale, 0, "int8")
    rows = [ratio(row, dequantize(quantize(row, q), q)) for row in weight]
    assert bad.weight_worst_channel_db == pytest.approx(min(row for row in rows if row is not None))
    assert "spoils" not in str(layers[0])
    assert "one scale for all channels spoils the weights of 1 layers" in str(layers[1])
    assert "dense_1 suffers most" in str(layers[1])


@pytest.mark.parametrize("budget", [0, 3000, 1 << 20])
def test_any_cache_gives_the_same_report(budget: int):
    cache = ValueCache(budget)
    configs = [QuantConfig(), QuantConfig().override_tensor("relu_1", threshold=0.7)]
    for config in [*configs, *configs]:
        report, alone = evaluate(quantized(config), DATA, cache), evaluate(quantized(config), DATA)
        assert (report.by_layer, report.output) == (alone.by_layer, alone.output)
        assert cache.nbytes <= budget
    assert report.steps_ran == ()


def test_float16_for_what_stays_in_float():
    config = QuantConfig().with_value("float_dtype", "float16").with_rule(op="*", keep_float=True)
    report = evaluate(quantized(config), DATA)
    assert {layer.runs_as for layer in report.by_layer} == {"float16"}
    assert 50 < (report.output.sqnr_db or 0) < 90
    mixed = evaluate(quantized(QuantConfig().with_value("float_dtype", "float16")), DATA)
    assert [layer.runs_as for layer in mixed.by_layer][-1] == "float16"


def test_one_sample():
    report = evaluate(quantized(), Dataset(GRAPH, X[:1]))
    assert report.output.samples == 1
    assert report.output.agreement in (0.0, 1.0)
    assert report.output.top1 is None


def test_output_alone():
    assert evaluate_output(quantized(), DATA, ValueCache(0)) == evaluate(quantized(), DATA).output


def test_comparison_of_two_reports():
    before = evaluate(quantized(), DATA)
    after = evaluate(quantized(QuantConfig().override_layer("dense_2", keep_float=True)), DATA)
    table = compare(before, after).set_index("name")
    assert list(table.index) == [*(node.name for node in GRAPH.nodes), ""]
    assert table.loc["dense_0", "gain_db"] == 0
    assert table.loc["dense_2", "runs_as_after"] == "float32"
    gain = (after.output.sqnr_db or 0) - (before.output.sqnr_db or 0)
    assert table.loc["", "gain_db"] == pytest.approx(gain)


@pytest.mark.parametrize("mode", ["float", "quantized"])
def test_sensitivity_is_one_layer_at_a_time(mode: str):
    seen = []
    table = sensitivity(
        PREPARED, STATISTICS, QuantConfig(), DATA, ValueCache(1 << 20), mode=mode, progress=lambda *a: seen.append(a)
    )
    assert seen == [(1, 3), (2, 3), (3, 3)]
    dense = ["dense_0", "dense_1", "dense_2"]
    for row in table.itertuples():
        config = QuantConfig()
        for name in [row.name] if mode == "float" else [name for name in dense if name != row.name]:
            config = config.override_layer(name, keep_float=True)
        assert row.sqnr_db == evaluate(quantized(config), DATA).output.sqnr_db
    assert list(table["sqnr_db"]) == sorted(table["sqnr_db"], reverse=mode == "float")


@pytest.mark.parametrize(
    ("shape", "last", "is_choice"),
    [
        (("N", 5), "nn.relu", True),
        (("N", 5, 1, 1), "nn.relu", True),
        (("N", 7, 6), "nn.relu", False),  # boxes
        (("N", 7, 6), "nn.softmax", True),
        (("N", 3, 300), "nn.relu", False),  # features
    ],
)
def test_predictions_are_counted_where_the_output_is_a_choice_between_classes(
    shape: tuple[Any, ...], last: str, is_choice: bool
):
    types = {"x": TensorType(shape, "float32")}
    graph = build("g", types, ["y"], [node("nn.relu", ["x"], "h"), node(last, ["h"], "y")], {})
    x = np.random.default_rng(0).normal(size=(4, *shape[1:])).astype(np.float32)
    prepared = prepare(graph)
    output = evaluate(quantize_graph(prepared, collect(prepared.graph, x), QuantConfig()), Dataset(graph, x)).output
    assert (output.agreement is not None, output.flipped is not None) == (is_choice, is_choice)
    assert output.sqnr_db is not None
