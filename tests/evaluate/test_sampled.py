"""Networks that are too large to compare every element, and what their layers lose by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest

from qbench.calibration.collect import collect
from qbench.data.dataset import Dataset
from qbench.evaluate.cache import ValueCache
from qbench.evaluate.checkpoints import checkpoints
from qbench.evaluate.evaluate import evaluate
from qbench.evaluate.measure import decibels, stride
from qbench.ir.graph import Graph
from qbench.passes.prepare import prepare
from qbench.quant.arithmetic import dequantize, quantize
from qbench.quant.config import QuantConfig
from qbench.quantize.quantized import Quantized, quantize_graph
from qbench.report.report import Report
from qbench.runtime import interpreter
from qbench.runtime.programs import plan
from tests.networks import mlp, residual

GRAPHS = {"mlp": mlp(), "residual": residual(), "fixed": residual(batch=2)}
CONFIGS = {
    "integers": QuantConfig(),
    "mixed": QuantConfig().with_rule(name="*_1", keep_float=True),
    "half": QuantConfig().with_rule(name="*_1", keep_float=True).with_value("float_dtype", "float16"),
}


def inputs(graph: Graph, count: int = 70) -> np.ndarray:
    shape = graph.types["x"].shape[1:]
    return np.random.default_rng(1).normal(size=(count, *shape)).astype(np.float32)


def quantized(graph: Graph, config: QuantConfig = CONFIGS["integers"]) -> Quantized:
    prepared = prepare(graph)
    return quantize_graph(prepared, collect(prepared.graph, inputs(graph)), config)


def values(graph: Graph, x: np.ndarray) -> dict[str, np.ndarray]:
    names = list(graph.activations())
    return {"x": x, **plan(graph, keep=names).run(x, keep=names)}


def reals(model: Quantized, name: str, array: np.ndarray) -> np.ndarray:
    q = model.graph.qparams.get(name)
    return array if q is None else dequantize(array, q)


def ratio(signal: np.ndarray, noise: np.ndarray) -> float | None:
    squares = [float((array.astype(np.float64) ** 2).sum()) for array in (signal, noise)]
    return decibels(*squares)


@pytest.fixture
def sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qbench.evaluate.evaluate._SMALL", 0)
    monkeypatch.setattr("qbench.evaluate.evaluate._FEWEST", 11)
    monkeypatch.setattr("qbench.evaluate.evaluate._ELEMENTS", 0)


ENDS = {
    "mlp": {"dense_0": "relu_0", "relu_1": "relu_1", "bias_2": "bias_2", "y": "y"},
    "residual": {"conv_0": "relu_0", "bias_1": "relu_1", "add_1": "add_1", "add_2": "add_2", "pool": "pool", "y": "y"},
}


@pytest.mark.usefixtures("sampled")
@pytest.mark.parametrize("name", ENDS)
def test_layers_are_compared_where_their_groups_end_by_evenly_spread_elements(name: str):
    graph = GRAPHS[name]
    model, x = quantized(graph), inputs(graph)
    report = evaluate(model, Dataset(graph, x, np.zeros(len(x), np.int64)))
    exact, integers = values(model.prepared, x), values(model.graph, x)
    for layer, tensor in ENDS[name].items():
        value = next(v for v in (tensor, f"{tensor}.quantized") if v in model.graph.types)
        reference, other = (
            array.reshape(len(x), -1) for array in (exact[tensor], reals(model, value, integers[value]))
        )
        every = stride(reference.shape[1], 11)
        expected = ratio(reference[:, ::every], (reference - other)[:, ::every])
        assert report.layer(layer).sqnr_db == pytest.approx(expected, rel=1e-6), layer
    assert report.output.agreement == np.mean(exact["y"].argmax(1) == integers["y"].argmax(1))
    assert report.output.top1 == np.mean(integers["y"].argmax(1) == 0)
    assert report.output.samples == len(x)


def all_and_few(graph: Graph) -> tuple[Dataset, Dataset]:
    return Dataset(graph, inputs(graph)), Dataset(graph, inputs(graph, 10))


@cache
def without_cache(name: str, config: QuantConfig) -> Report:
    """What any cache must give; asked for by tests whose layers are `sampled`."""
    data, probe = all_and_few(GRAPHS[name])
    return evaluate(quantized(GRAPHS[name], config), data, probe=probe)


@pytest.mark.usefixtures("sampled")
@pytest.mark.parametrize("budget", [0, 20_000, 1 << 22])
@pytest.mark.parametrize("name", GRAPHS)
def test_any_cache_gives_the_same_report(name: str, budget: int):
    graph = GRAPHS[name]
    held, (data, probe) = ValueCache(budget), all_and_few(graph)
    tensor = "relu_1"
    configs = [CONFIGS["integers"], CONFIGS["integers"].override_tensor(tensor, threshold=0.7), *CONFIGS.values()]
    for config in [*configs, *configs]:
        report, alone = evaluate(quantized(graph, config), data, held, probe=probe), without_cache(name, config)
        assert (report.by_layer, report.output) == (alone.by_layer, alone.output)
        assert held.nbytes <= budget
    assert report.steps_ran == ()


@pytest.mark.usefixtures("sampled")
def test_an_edit_runs_from_a_place_shortly_before_it():
    graph = residual(blocks=30)
    cache, data = ValueCache(1 << 26), Dataset(graph, inputs(graph, 40))
    prepared = prepare(graph)
    statistics = collect(prepared.graph, inputs(graph, 10))

    def ran(config: QuantConfig) -> tuple[int, ...]:
        report = evaluate(quantize_graph(prepared, statistics, config), data, cache)
        return len(report.steps_ran), len(report.reference_steps_ran)

    everything, nodes = ran(QuantConfig())
    assert everything == len(quantize_graph(prepared, statistics, QuantConfig()).graph.nodes)
    assert nodes == len(prepared.graph.nodes)
    for block in (25, 15, 5):
        steps, again = ran(QuantConfig().override_tensor(f"relu_{block}", threshold=0.5))
        assert (31 - block) / 31 < steps / everything < (31 - block) / 31 + 1 / 8
        assert again == 0
    assert ran(QuantConfig()) == (0, 0)


def test_checkpoints_are_where_little_is_alive():
    program = plan(residual(blocks=30))
    kept = checkpoints(program, 1 << 30)
    assert 8 < len(kept) <= 17
    assert not {name for name in kept if name.startswith("relu") and name != "relu_0"}  # add_i is alive beside them
    size = 4 * 6 * 7 * 4
    assert len(checkpoints(program, 5 * size)) in (4, 5)
    assert checkpoints(program, 0) == frozenset()


def own_oracle(model: Quantized, x: np.ndarray) -> Mapping[str, np.ndarray]:
    """Each value of the integer graph, made of exact ones: node by node, in NumPy."""
    graph, floats = model.graph, values(model.prepared, x)
    exact: dict[str, np.ndarray] = {}
    for tensor in floats:
        for value in (tensor, f"{tensor}.quantized"):
            if value in graph.qparams and tensor in model.encodings:
                exact[value] = quantize(floats[tensor], graph.qparams[value])
        if tensor in graph.types and graph.types[tensor].dtype.startswith("float"):
            exact[tensor] = floats[tensor].astype(graph.types[tensor].dtype)
    own: dict[str, np.ndarray] = {"x": x, **{name: constant.array for name, constant in graph.constants.items()}}
    for node in graph.nodes:
        arrays = [exact[name] if name in exact else own[name] for name in node.inputs]
        own |= zip(node.outputs, interpreter.step(graph, node, arrays), strict=True)
    return own


def ideal_oracle(model: Quantized, x: np.ndarray) -> Mapping[str, np.ndarray]:
    """Each float tensor, made of exact ones that are rounded where the integer graph rounds them: node by node."""
    graph, floats = model.graph, values(model.prepared, x)
    given: dict[str, np.ndarray] = {}
    for tensor in floats:
        for value in (tensor, f"{tensor}.quantized"):
            if value in graph.qparams and tensor in model.encodings and tensor not in graph.inputs:
                given[tensor] = dequantize(quantize(floats[tensor], graph.qparams[value]), graph.qparams[value])
            elif value == tensor and tensor in graph.types and graph.types[tensor].dtype.startswith("float"):
                given[tensor] = floats[tensor]
    ideal = {"x": x, **{name: constant.array for name, constant in model.prepared.constants.items()}}
    for node in model.prepared.nodes:
        arrays = [given[name] if name in given else ideal[name] for name in node.inputs]
        ideal |= zip(node.outputs, interpreter.step(model.prepared, node, arrays), strict=True)
    return ideal


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("name", GRAPHS)
def test_own_and_inherited_errors_are_what_the_definition_says(name: str, config: str):
    graph = GRAPHS[name]
    model, x = quantized(graph, CONFIGS[config]), inputs(graph, 8)
    report = evaluate(model, Dataset(graph, x), probe=Dataset(graph, x))
    rows = 2 if name == "fixed" else 8
    x = x[:rows]
    exact, integers, own = values(model.prepared, x), values(model.graph, x), own_oracle(model, x)
    ideal = ideal_oracle(model, x)
    for layer in report.by_layer:
        tensor = layer.tensor
        if tensor in ("pool", "flat", "y") or tensor.startswith(("relu", "add")):
            made = tensor in model.graph.producers and model.graph.producers[tensor].op != "qnn.dequantize"
            value = tensor if made else f"{tensor}.quantized"
            alone, whole = (reals(model, value, array[value]) for array in (own, integers))
            itself = alone - ideal[tensor]
            expected = ratio(exact[tensor], itself), ratio(exact[tensor], whole - exact[tensor] - itself)
            for ratio_db, wanted in zip((layer.own_sqnr_db, layer.inherited_sqnr_db), expected, strict=True):
                assert ratio_db == pytest.approx(wanted, abs=0.01) or min(ratio_db, wanted) > 120, tensor
    assert report.by_layer[0].inherited_sqnr_db > 120  # no layer before it


def test_clipping_is_charged_to_the_layer_that_clips_and_not_to_those_that_read_it():
    graph = GRAPHS["mlp"]
    x = inputs(graph, 8)
    reports = []
    for threshold in (None, 0.2):
        config = QuantConfig() if threshold is None else QuantConfig().override_tensor("relu_0", threshold=threshold)
        reports.append(evaluate(quantized(graph, config), Dataset(graph, x), probe=Dataset(graph, x)))
    before, after = ({layer.name: layer for layer in report.by_layer} for report in reports)
    assert after["relu_0"].own_sqnr_db < before["relu_0"].own_sqnr_db - 10
    assert after["relu_1"].own_sqnr_db == pytest.approx(before["relu_1"].own_sqnr_db, abs=6)
    assert after["relu_1"].inherited_sqnr_db < before["relu_1"].inherited_sqnr_db - 10


def test_own_errors_after_an_edit_are_those_of_a_fresh_start():
    graph = GRAPHS["residual"]
    cache, probe = ValueCache(1 << 24), Dataset(graph, inputs(graph, 8))
    for threshold in (None, 0.5, 0.25):
        config = QuantConfig() if threshold is None else QuantConfig().override_tensor("relu_1", threshold=threshold)
        model = quantized(graph, config)
        report = evaluate(model, probe, cache, probe=probe)
        assert report.by_layer == evaluate(model, probe, probe=probe).by_layer
