"""Weights rounded one layer after the other: better than to the nearest, on their levels, the same for any chunks."""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from qbench.calibration.patches import Patches
from qbench.data.dataset import Dataset
from qbench.errors import Cancelled, ConfigError
from qbench.evaluate.cache import ValueCache
from qbench.evaluate.outputs import outputs_of
from qbench.ir.build import build
from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph
from qbench.ir.types import TensorType
from qbench.passes.groups import find_groups
from qbench.passes.round_weights import RoundWeightsPass
from qbench.quant.arithmetic import dequantize, quantize
from qbench.quant.config import QuantConfig
from qbench.quantize import sequential
from qbench.quantize.quantized import quantize_graph
from qbench.quantize.unfold import placed, unfolded, unfolded_weight
from qbench.runtime.interpreter import call, step
from qbench.session.session import Session
from tests.networks import mlp, node

RNG = np.random.default_rng(5)
X = RNG.normal(size=(48, 4, 9, 9)).astype(np.float32)
NEAREST = QuantConfig().with_value("weights.dtype", "int4")
SEQUENTIAL = NEAREST.with_value("weights.rounding", "sequential")


def network() -> Graph:
    """A convolution with a stride, a depthwise one, a grouped one, a pointwise one with a shortcut, a dense layer."""
    rng = np.random.default_rng(0)
    layers = [
        ("stem", 12, (4, 3, 3), {"padding": (1, 1, 0, 0), "strides": (2, 2)}),
        ("deep", 12, (1, 3, 3), {"padding": (1, 1, 1, 1), "groups": 12}),
        ("grouped", 12, (4, 3, 3), {"padding": (2, 2, 2, 2), "dilation": (2, 2), "groups": 3}),
        ("point", 12, (12, 1, 1), {}),
    ]
    nodes, constants, value = [], {}, "x"
    for name, outputs, shape, attrs in layers:
        size = np.float32(np.prod(shape) ** 0.5)
        constants[f"{name}.weight"] = rng.normal(size=(outputs, *shape)).astype(np.float32) / size
        constants[f"{name}.bias"] = rng.normal(size=outputs).astype(np.float32) / 4
        nodes += [
            node("nn.conv2d", [value, f"{name}.weight"], name, **attrs),
            node("nn.bias_add", [name, f"{name}.bias"], f"{name}_biased"),
            node("nn.relu", [f"{name}_biased"], f"{name}_out"),
        ]
        value = f"{name}_out"
    constants["dense.weight"] = rng.normal(size=(5, 12)).astype(np.float32)
    nodes += [
        node("add", ["point_out", "grouped_out"], "sum"),
        node("nn.global_avg_pool2d", ["sum"], "pool"),
        node("nn.batch_flatten", ["pool"], "flat"),
        node("nn.dense", ["flat", "dense.weight"], "y"),
    ]
    types = {"x": TensorType(("N", 4, 9, 9), "float32")}
    return build("several", types, ["y"], nodes, {name: Constant(array) for name, array in constants.items()})


GRAPH = network()


def whole(patches: Patches) -> np.ndarray:
    """All rows; put in two goes where there are several groups."""
    rows = np.empty((patches.groups, patches.count, patches.depth))
    sums = np.zeros((patches.groups, patches.depth))
    middle = patches.groups // 2
    for at in (slice(middle), slice(middle, None)):
        patches.put(at.start or 0, rows[at], sums[at])
    assert np.array_equal(sums, rows.sum(axis=1))
    return rows


@pytest.mark.parametrize("index", range(len(find_groups(GRAPH))))
def test_unfolded_inputs_times_weights_are_the_layer(index: int):
    head = find_groups(GRAPH)[index].head
    if len(head.inputs) < 2 or head.inputs[1] not in GRAPH.constants:
        return
    shape = [2 if dim == "N" else dim for dim in GRAPH.types[head.inputs[0]].shape]
    data = np.random.default_rng(index).normal(size=shape).astype(np.float32)
    weight = GRAPH.constants[head.inputs[1]].array
    (made,) = step(GRAPH, head, [data, weight])
    for every, first in ((1, 0), (3, 2)):
        rows = whole(unfolded(head, data, weight.shape, every, first, 2.0**-12))
        found = rows @ unfolded_weight(head, weight).transpose(0, 2, 1) / 2**12
        assert np.allclose(found * 2**10, whole(placed(head, made, every, first, 2.0**-10)), atol=4)
        flat = made.reshape(2, len(weight), -1) if made.ndim > 2 else made.T[None]
        places = flat[:, :, first::every].transpose(1, 0, 2).reshape(len(weight), -1)
        assert np.allclose(found.transpose(0, 2, 1).reshape(len(weight), -1), places, atol=4e-3)


def test_four_bits_lose_far_less_than_to_the_nearest():
    found = {}
    for config in (NEAREST, SEQUENTIAL):
        report = Session(GRAPH, X[:32], X[32:], config=config).run(progress=False)
        found[config] = report.output.sqnr_db
    assert found[SEQUENTIAL] > found[NEAREST] + 3


@pytest.mark.parametrize("shape", [(8, 8), (8, 8, 1, 1)], ids=["dense", "convolution"])
def test_a_layer_undoes_what_its_shortcut_lost(shape: tuple[int, ...]):
    """The second layer reads what the first one made and adds to it: what counts is the sum, not its own output."""
    rng = np.random.default_rng(3)
    op, x = ("nn.dense", (8,)) if len(shape) == 2 else ("nn.conv2d", (8, 2, 3))
    nodes = [
        node(op, ["x", "first.weight"], "first"),
        node(op, ["first", "second.weight"], "second"),
        node("nn.bias_add", ["second", "bias"], "biased"),
        node("add", ["first", "biased"] if len(shape) == 2 else ["biased", "first"], "y"),
    ]
    drawn = rng.normal(size=(2, 8, 8)) / 10 + np.eye(8)
    weights = {
        f"{name}.weight": drawn[at].reshape(shape).astype(np.float32) for at, name in enumerate(("first", "second"))
    }
    constants = {k: Constant(v) for k, v in {**weights, "bias": np.zeros(8, np.float32)}.items()}
    graph = build("shortcut", {"x": TensorType(("N", *x), "float32")}, ["y"], nodes, constants)
    data = rng.normal(size=(400, *x)).astype(np.float32)
    s = Session(graph, data, config=NEAREST.override_tensor("second.weight", dtype="int8"))
    made = sequential.round_sequentially(s.prepared, s.encodings, Dataset(graph, data))
    first, second = (made[name].weight.array.reshape(8, 8).astype(np.float64) for name in weights)
    sums = [(np.eye(8) + after) @ before for before, after in (drawn, (first, second))]
    assert np.linalg.norm(sums[1] - sums[0]) < np.linalg.norm(first - drawn[0]) / 5


def test_a_channel_of_next_to_nothing_still_takes_what_its_shortcut_lost():
    """Its new bias is far more than int32 holds in steps of such weights, so that they get larger steps."""
    rng = np.random.default_rng(3)
    nodes = [
        node("nn.dense", ["x", "first.weight"], "first"),
        node("nn.dense", ["first", "second.weight"], "second"),
        node("nn.bias_add", ["second", "bias"], "biased"),
        node("add", ["first", "biased"], "y"),
    ]
    weights = {name: rng.normal(size=(8, 8)).astype(np.float32) for name in ("first.weight", "second.weight")}
    weights["second.weight"][3] *= 1e-14
    bias = np.eye(8, dtype=np.float32)[3] * np.float32(1e-6)  # beyond int32 too, so that the scale is raised for it
    constants = {k: Constant(v) for k, v in {**weights, "bias": bias}.items()}
    graph = build("dead", {"x": TensorType(("N", 8), "float32")}, ["y"], nodes, constants)
    data = np.abs(rng.normal(size=(100, 8))).astype(np.float32)
    got = Session(graph, data, config=SEQUENTIAL).quantized()
    new, units = got.annotated.constants["bias"].array, got.graph.qparams["bias"]
    assert abs(new[3]) > 1e-3
    stored = got.graph.constants["bias"].array
    assert np.abs(stored).max() <= 2**30
    assert dequantize(stored, units)[3] == pytest.approx(new[3])


def test_weights_lie_on_their_levels_and_the_pass_can_be_seen_and_undone():
    s = Session(GRAPH, X, config=NEAREST)
    before = s.quantized()
    s.edit("round", SEQUENTIAL)
    made = s.quantized()
    assert RoundWeightsPass.name in [one.name for one in made.trace.steps]
    for name in ("stem.weight", "deep.weight", "grouped.weight", "point.weight", "dense.weight"):
        encoding, array = made.encodings[name], made.annotated.constants[name].array
        assert "rounded sequentially" in encoding.reason
        assert np.array_equal(dequantize(quantize(array, encoding.qparams), encoding.qparams), array)
        assert not np.array_equal(array, GRAPH.constants[name].array)
    assert not np.array_equal(made.annotated.constants["stem.bias"].array, GRAPH.constants["stem.bias"].array)
    s.undo()
    assert s.quantized().graph == before.graph


def test_zero_points_that_differ_from_block_to_block():
    plain = QuantConfig.of_preset("weight_only_int4").with_value("weights.axis", 8)
    x, found = np.random.default_rng(1).normal(size=(64, 12)).astype(np.float32), list[float]()
    for rounding in ("nearest", "sequential"):
        s = Session(mlp(3, (12, 24, 24, 5)), x, config=plain.with_value("weights.rounding", rounding))
        found.append(s.run(progress=False).output.sqnr_db or 0.0)
    encoding = s.encodings["dense_1.weight"]
    assert "rounded sequentially" in encoding.reason
    assert encoding.qparams.block == 8
    assert len({*encoding.qparams.zero_points}) > 1
    assert found[1] > found[0] + 1


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("symmetric", [False, True])
def test_the_integers_are_those_that_were_rounded_to(symmetric: bool, narrow: bool):
    plain = QuantConfig(mode="weight_only").with_value("weights.dtype", "int4" if symmetric else "uint4")
    config = plain.with_value("weights.symmetric", symmetric).with_value("weights.narrow", narrow)
    config = config.with_value("weights.axis", 8).with_value("weights.rounding", "sequential")
    x = np.random.default_rng(1).normal(size=(64, 12)).astype(np.float32)
    made = Session(mlp(3, (12, 24, 24, 5)), x, config=config).quantized()
    for name in ("dense_1.weight", "dense_2.weight"):
        integers, encoding = made.qnn.constants[name].array, made.encodings[name].qparams
        assert np.array_equal(dequantize(integers, encoding), made.annotated.constants[name].array)
        assert integers.min() == encoding.qmin + narrow


def test_layers_in_float_and_of_other_types_keep_to_themselves():
    config = SEQUENTIAL.override_layer("point", keep_float=True).override_tensor("deep.weight", dtype="int8")
    made = Session(GRAPH, X, config=config).quantized()
    assert "point.weight" not in made.encodings
    assert made.encodings["deep.weight"].qparams.dtype == "int8"
    assert "rounded sequentially" in made.encodings["stem.weight"].reason


def test_the_same_however_little_is_kept(monkeypatch: pytest.MonkeyPatch):
    s = Session(GRAPH, X, config=NEAREST)
    weights = {name: e for name, e in s.encodings.items() if name in GRAPH.constants}
    work = partial(sequential.round_sequentially, s.prepared, weights, Dataset(GRAPH, X))
    whole = work()
    assert work() == whole
    monkeypatch.setattr(sequential, "_BUDGET", 1)  # stretches of few chunks: other weights, but no worse ones
    little = work()
    assert little.keys() == whole.keys()


@pytest.mark.parametrize("count", [1, 2, 9])
def test_few_samples(count: int):
    report = Session(GRAPH, X[:count], X[32:], config=SEQUENTIAL).run(progress=False)
    nearest = Session(GRAPH, X[:count], X[32:], config=NEAREST).run(progress=False)
    assert report.output.sqnr_db > nearest.output.sqnr_db - 3


def test_cancelled_and_without_data():
    stop = threading.Event()
    stop.set()
    s = Session(GRAPH, X, config=NEAREST)
    weights = {name: e for name, e in s.encodings.items() if name in GRAPH.constants}
    with pytest.raises(Cancelled):
        sequential.round_sequentially(s.prepared, weights, Dataset(GRAPH, X), cancel=stop)
    with pytest.raises(ConfigError, match="needs calibration data, not only statistics"):
        quantize_graph(s._quantizer.prepared, s.statistics, SEQUENTIAL)


def test_samples_of_different_sizes():
    rng = np.random.default_rng(0)
    constants = {
        "c.weight": rng.normal(size=(6, 3, 3, 3)),
        "c.bias": rng.normal(size=6),
        "y.weight": rng.normal(size=(4, 6, 1, 1)),
    }
    nodes = [
        node("nn.conv2d", ["x", "c.weight"], "c", padding=(1, 1, 1, 1)),
        node("nn.bias_add", ["c", "c.bias"], "b"),
        node("nn.relu", ["b"], "r"),
        node("nn.conv2d", ["r", "y.weight"], "y"),
    ]
    types = {"x": TensorType(("N", 3, 6, "W"), "float32")}
    graph = build("open", types, ["y"], nodes, {k: Constant(v.astype(np.float32)) for k, v in constants.items()})
    data = [{"x": rng.normal(size=(1, 3, 6, width)).astype(np.float32)} for width in (5, 8, 5, 11, 8, 5)]
    s = Session(graph, data, config=SEQUENTIAL)
    assert "rounded sequentially" in s.encodings["c.weight"].reason
    outputs = outputs_of(s.quantized(), "float", Dataset(graph, data), ValueCache(1 << 20))["y"]
    assert [one.shape for one in outputs] == [(4, 6, item["x"].shape[3]) for item in data]
    for one, item in zip(outputs, data, strict=True):
        assert np.allclose(one, call(graph, item)[0], atol=1e-5)


def test_a_cache_that_is_empty_at_first() -> None:
    rng = np.random.default_rng(3)
    constants = {name: Constant(rng.normal(size=(8, 8)).astype(np.float32)) for name in ("w", "v")}
    nodes = [
        node("nn.dense", ["word", "w"], "key"),
        node("concatenate", ["past", "key"], "present", axis=1),
        node("mean", ["present"], "seen", axes=(1,), keepdims=True),
        node("nn.dense", ["seen", "v"], "y"),
    ]
    types = {"word": TensorType((1, "T", 8), "float32"), "past": TensorType((1, "P", 8), "float32")}
    graph = build("decoder", types, ("y",), nodes, constants)
    lengths = [(4, 0), (1, 4), (1, 5), (3, 0)] * 6
    feeds = [
        {name: rng.normal(size=(1, length, 8)).astype(np.float32) for name, length in zip(types, both, strict=True)}
        for both in lengths
    ]
    ratios = [Session(graph, feeds, config=config).run().output.sqnr_db for config in (NEAREST, SEQUENTIAL)]
    assert ratios[1] > ratios[0] + 1


def test_a_constant_that_is_expanded_to_the_batch():
    """As the places of words are: its size follows from no value that is read beside it."""
    rng = np.random.default_rng(2)
    nodes = [
        node("broadcast_to", ["places"], "expanded", shape=("N", 4)),
        node("nn.dense", ["expanded", "first.weight"], "first"),
        node("nn.dense", ["x", "second.weight"], "second"),
        node("add", ["first", "second"], "y"),
    ]
    constants = {
        "places": Constant(rng.normal(size=(1, 4)).astype(np.float32)),
        "first.weight": Constant(rng.normal(size=(3, 4)).astype(np.float32)),
        "second.weight": Constant(rng.normal(size=(3, 4)).astype(np.float32)),
    }
    graph = build("places", {"x": TensorType(("N", 4), "float32")}, ("y",), nodes, constants)
    x = rng.normal(size=(24, 4)).astype(np.float32)
    report = Session(graph, x, x, config=SEQUENTIAL).run(progress=False)
    nearest = Session(graph, x, x, config=NEAREST).run(progress=False)
    assert report.output.sqnr_db > nearest.output.sqnr_db


def test_what_is_nan_between_layers_and_taken_out_behind():
    """As a division by zero that a file makes, and picks something else for."""
    rng = np.random.default_rng(4)
    nodes = [
        node("nn.dense", ["x", "first.weight"], "first"),
        node("nn.relu", ["first"], "r"),
        node("divide", ["r", "r"], "ratio"),
        node("nn.dense", ["r", "second.weight"], "second"),
        node("is_nan", ["ratio"], "bad"),
        node("where", ["bad", "second", "ratio"], "mended"),
        node("nn.dense", ["mended", "third.weight"], "y"),
    ]
    names = "first", "second", "third"
    constants = {f"{name}.weight": rng.normal(size=(6, 6)).astype(np.float32) for name in names}
    types = {"x": TensorType(("N", 6), "float32")}
    graph = build("ratio", types, ("y",), nodes, {name: Constant(array) for name, array in constants.items()})
    x = rng.normal(size=(24, 6)).astype(np.float32)
    session = Session(graph, x, config=SEQUENTIAL)
    assert "rounded sequentially" in session.encodings["third.weight"].reason
    assert session.run(progress=False).output.sqnr_db > 10


def test_where_rounded_weights_make_no_numbers_layers_behind_them_get_the_nearest():
    """A filter bank, whose weights fall below zero where they make up for others, and the logarithm of its sums."""
    rng, centres, bins = np.random.default_rng(0), np.linspace(0, 48, 12)[:, None], np.arange(48)
    bank = np.maximum(0, 1 - np.abs(bins - centres) / 4) * np.linspace(1, 0.02, 48)
    constants = {"bank": bank, "least": np.array(1e-10), "w": rng.normal(size=(8, 12))}
    nodes = [node("nn.dense", ["x", "bank"], "power"), node("add", ["power", "least"], "safe")]
    nodes += [node("log", ["safe"], "loudness"), node("nn.dense", ["loudness", "w"], "y")]
    kept = {name: Constant(array.astype(np.float32)) for name, array in constants.items()}
    graph = build("mel", {"x": TensorType(("N", 48), "float32")}, ["y"], nodes, kept)
    x = np.exp(rng.normal(0, 4, (64, 48))).astype(np.float32)
    config = QuantConfig().with_value("weights.rounding", "sequential").override_layer("loudness", keep_float=True)
    weights = Session(graph, x, config=config).quantized().annotated.constants
    assert (weights["bank"].array < 0).any(), "or there is nothing to see"
    assert np.isfinite(weights["w"].array).all()
    assert (Session(graph, x, x).run(progress=False).output.sqnr_db or 0) > 25


def test_apart_each_weight_is_rounded_as_if_the_others_were_the_float_networks():
    session = Session(GRAPH, X, config=SEQUENTIAL)
    encodings = {name: one for name, one in session.encodings.items() if name in GRAPH.constants}
    data, read = session._quantizer.calibration, (None, True, None, None, None, None, sequential.APART)
    together = sequential.round_sequentially(GRAPH, encodings, data, *read)
    assert len(together) == 5
    for name, rounded in together.items():
        (alone,) = sequential.round_sequentially(GRAPH, {name: encodings[name]}, data, *read).values()
        assert alone == rounded, name
    dependent = sequential.round_sequentially(
        GRAPH, encodings, data, *read[:-1], replace(sequential.APART, apart=False)
    )
    assert dependent["stem.weight"] == together["stem.weight"]
    assert dependent["dense.weight"] != together["dense.weight"]
