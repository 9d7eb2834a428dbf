"""Every point gets qparams and a reason: defaults, then rules, then overrides, each tried on a small graph."""

from __future__ import annotations

import dataclasses
import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qbench.ops  # noqa: F401 declares them
from qbench.calibration.calibrators import MeanSquaredError, calibrator_of, register_calibrator
from qbench.calibration.grid import Grid
from qbench.calibration.resolve import resolve
from qbench.calibration.settings import describe
from qbench.calibration.statistics import Statistics
from qbench.calibration.weights import BIAS_LIMIT, clipped
from qbench.errors import CalibrationError, ConfigError, DataError
from qbench.ir.build import build
from qbench.ir.frozen import Constant
from qbench.ir.graph import Node
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.quant.arithmetic import dequantize, quantize
from qbench.quant.choose import from_range, per_axis
from qbench.quant.config import QuantConfig
from qbench.quant.points import Point

rng = np.random.default_rng(0)
WEIGHT = rng.normal(size=(4, 3)).astype(np.float32) * np.array([[1], [10], [0.1], [3]], np.float32)
BIAS = rng.normal(size=4).astype(np.float32)
X = rng.normal(size=(50, 3)).astype(np.float32)
POINTS = (
    Point("x", "activation", "x.q"),
    Point("w", "weight", "w.q", "fc", "nn.dense", 0, "x", "b"),
    Point("y", "activation", "y.q", "act", "nn.relu"),
)


def graph(weight=WEIGHT, bias=BIAS):
    """As annotate would leave it, but for the fake-quantize nodes, which resolve does not look at."""
    nodes = [
        Node("fc", "nn.dense", ("x", "w"), ("fc.out",)),
        Node("fc_bias", "nn.bias_add", ("fc.out", "b"), ("fc_bias.out",)),
        Node("act", "nn.relu", ("fc_bias.out",), ("y",)),
    ]
    inputs = {"x": TensorType(("N", weight.shape[1]), "float32")}
    return build("g", inputs, ["y"], nodes, {"w": Constant(weight), "b": Constant(bias)})


STATISTICS = {"x": Statistics.of(X), "y": Statistics.of(np.maximum(X @ WEIGHT.T + BIAS, 0))}
MAX = QuantConfig().with_value("activations.calibrator", "max")


def resolved(config=MAX, points=POINTS, **constants):
    return resolve(points, graph(**constants), STATISTICS, config)


def test_defaults():
    found = resolved()
    assert list(found) == ["x", "w", "y"]
    x, y = STATISTICS["x"], STATISTICS["y"]
    assert found["x"].qparams == from_range(x.min, x.max, "uint8", symmetric=False)
    assert found["y"].qparams == from_range(0.0, y.max, "uint8", symmetric=False)
    expected = per_axis(WEIGHT.min(axis=1), WEIGHT.max(axis=1), "int8", 0, symmetric=True, narrow=True)
    assert found["w"].qparams == expected
    assert found["w"].threshold == tuple(abs(WEIGHT).max(axis=1).tolist())
    assert {e.reason for e in found.values()} == {"default: max"}
    assert {e.calibrator for e in found.values()} == {"max"}
    assert (found["x"].threshold, found["y"].threshold) == (x.abs_max, y.abs_max)


def test_other_calibrators_by_default():
    found = resolved(MAX.with_value("activations.calibrator", "mse").with_value("weights.calibrator", "percentile"))
    curve = MeanSquaredError().curve(STATISTICS["x"], Grid("uint8"))
    assert found["x"].threshold == curve.best
    assert found["x"].qparams == Grid("uint8").qparams(STATISTICS["x"], curve.best)
    assert (found["x"].reason, found["w"].reason) == ("default: mse", "default: percentile 99.99")


def test_sixteen_bits_have_room_for_data_that_calibration_did_not_see():
    wide, x = MAX.with_value("activations.dtype", "int16"), STATISTICS["x"]
    exact = Grid("int16", True).qparams(x, x.abs_max)
    found = resolved(wide)["x"]
    assert found.threshold == 2 * x.abs_max and found.qparams == dataclasses.replace(exact, scale=2 * exact.scales[0])
    assert found.reason == "default: max; reaches twice as far, since it has bits to spare"
    asymmetric = resolved(MAX.with_value("activations.dtype", "uint16"))["x"].qparams
    low, high = asymmetric.ranges[0]
    assert (low, high) == pytest.approx((2 * x.min, 2 * x.max), rel=1e-4)


def test_channels_that_need_all_sixteen_bits_get_them():
    uneven = X * np.float32([1, 1, 1000])
    statistics = {**STATISTICS, "x": Statistics.of(uneven)}
    found = resolve(POINTS, graph(), statistics, MAX.with_value("activations.dtype", "int16"))["x"]
    assert (found.threshold, found.reason) == (np.abs(uneven).max(), "default: max")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("rules", [{"name": "x", "calibrator": "max"}]),
        ("tensors.x.calibrator", "max"),
        ("tensors.x.threshold", STATISTICS["x"].abs_max),
    ],
)
def test_what_is_said_of_a_tensor_of_sixteen_bits_is_done(path, value):
    x = STATISTICS["x"]
    found = resolved(MAX.with_value("activations.dtype", "int16").with_value(path, value))["x"]
    assert (found.threshold, found.qparams) == (x.abs_max, Grid("int16", True).qparams(x, x.abs_max))


def test_a_scale_for_sixteen_bits_is_taken_as_it_is():
    found = resolved(MAX.with_value("activations.dtype", "int16").with_value("tensors.x.scale", 0.001))["x"]
    assert (found.qparams.scales, found.reason) == ((float(np.float32(0.001)),), "override: scale=0.001")


CALIBRATORS = ["mse", "kl", "percentile", "power_of_two", "global_scale"]


@pytest.mark.parametrize(("name", "axis"), [*product(CALIBRATORS[1:], ["channel"]), *product(CALIBRATORS, [None])])
def test_weights_by_calibrator_are_as_each_channels_own_statistics_say(name, axis):
    config = MAX.with_value("weights.calibrator", name).with_value("weights.axis", axis)
    weight = rng.standard_t(3, size=(4, 500)).astype(np.float32)
    found = resolved(config, [POINTS[1]], weight=weight)["w"]
    calibrator, grid = calibrator_of(config.weights.calibrator), Grid("int8", True, True)
    rows = [Statistics.of(row) for row in (weight if axis else weight[None])]
    curves = [calibrator.curve(row, grid) for row in rows]
    each = [c.qparams or grid.qparams(row, c.best) for c, row in zip(curves, rows, strict=True)]
    assert found.qparams.scales == tuple(q.scales[0] for q in each)
    assert found.threshold == (tuple(c.best for c in curves) if axis else curves[0].best)
    assert found.qparams.axis == (0 if axis else None)


@pytest.mark.parametrize("symmetric", [False, True])
def test_channels_by_mse_lose_less_than_by_their_statistics(symmetric):
    config = MAX.with_value("weights.calibrator", "mse").with_value("weights.symmetric", symmetric)
    weight = np.random.default_rng(0).normal(0.2, size=(200, 9)).astype(np.float32)
    given = {"weight": weight, "bias": np.zeros(200, np.float32)}
    found, grid = resolved(config, [POINTS[1]], **given)["w"], Grid("int8", symmetric, True)
    estimated = [MeanSquaredError().curve(Statistics.of(row), grid).best for row in weight]
    errors = [error_of(weight, clipped(Constant(weight), 0, t, grid, "w")) for t in (found.threshold, estimated)]
    assert found.qparams == clipped(Constant(weight), 0, found.threshold, grid, "w")
    assert errors[0].sum() < errors[1].sum()
    assert (errors[0] < error_of(weight, resolved(MAX, [POINTS[1]], **given)["w"].qparams)).any()


def error_of(weight, qparams):
    """Sum of the squared errors of each channel."""
    return ((dequantize(quantize(weight, qparams), qparams) - weight.astype(np.float64)) ** 2).sum(axis=1)


def test_rules_by_op_name_and_tensor_and_the_last_wins():
    config = (
        MAX.with_rule(op="nn.dense", calibrator={"name": "percentile", "percentile": 90.0})
        .with_rule(name="y", symmetric=True)
        .with_rule(name="fc*", dtype="int8")
        .with_rule(op="nn.conv2d", calibrator="kl")
    )
    found = resolved(config)
    assert found["y"].reason == "rule 0: percentile 90.0; rule 2: dtype=int8; rule 1: symmetric=True"
    assert found["y"].qparams.dtype == "int8"
    assert found["y"].qparams.zero_point == 0
    assert found["x"].reason == found["w"].reason == "default: max"
    later = config.with_rule(op="*", calibrator="mse")
    assert resolved(later)["y"].reason.startswith("rule 4: mse; ")
    assert resolved(later)["x"].reason == "default: max"  # an input belongs to no layer


def test_rules_for_weights():
    found = resolved(MAX.with_rule(name="fc", weights_dtype="int4", weights_axis="tensor", weights_calibrator="mse"))
    assert found["w"].reason == "rule 0: mse; rule 0: dtype=int4; rule 0: axis=tensor"
    assert (found["w"].qparams.dtype, found["w"].qparams.axis) == ("int4", None)
    assert found["y"].reason == "default: max"


def test_override_threshold():
    found = resolved(MAX.override_tensor("x", threshold=0.5).override_tensor("y", threshold=1.5))
    assert found["x"].qparams == from_range(-0.5, 0.5, "uint8", symmetric=False)
    assert found["y"].qparams == from_range(0.0, 1.5, "uint8", symmetric=False)
    assert (found["y"].reason, found["y"].calibrator, found["y"].threshold) == (
        "override: threshold=1.5",
        "override",
        1.5,
    )
    assert resolved(MAX.override_tensor("y", threshold=1e9))["y"].qparams == resolved()["y"].qparams


def test_override_scale_and_zero_point():
    found = resolved(MAX.override_tensor("x", scale=0.5))["x"]
    assert found.qparams == QParams(0.5, resolved()["x"].qparams.zero_point, "uint8")
    assert (found.reason, found.threshold, found.calibrator) == ("override: scale=0.5", None, "override")
    found = resolved(MAX.override_tensor("x", scale=0.5, zero_point=7, dtype="int8"))["x"]
    assert found.qparams == QParams(0.5, 7, "int8")
    assert found.reason == "override: scale=0.5, zero_point=7; override: dtype=int8"
    found = resolved(MAX.override_tensor("x", zero_point=9))["x"]
    assert found.qparams == QParams(resolved()["x"].qparams.scale, 9, "uint8")
    assert (found.reason, found.calibrator) == ("default: max; override: zero_point=9", "max")


def test_override_calibrator_dtype_symmetric():
    found = resolved(MAX.override_tensor("x", calibrator="kl", dtype="int8", symmetric=True))["x"]
    assert found.reason == "override: kl; override: dtype=int8; override: symmetric=True"
    assert (found.calibrator, found.qparams.zero_point) == ("kl", 0)


def test_override_of_a_weight():
    found = resolved(MAX.override_tensor("w", threshold=(0.5, 2.0, 0.05, 100.0)))["w"]
    highs = np.minimum(abs(WEIGHT).max(axis=1), [0.5, 2.0, 0.05, 100.0])
    assert found.qparams == per_axis(-highs, highs, "int8", 0, symmetric=True)
    assert found.reason == "override: threshold=[4 values]"
    found = resolved(MAX.override_tensor("w", axis="tensor", threshold=0.5))["w"]
    assert found.qparams == from_range(-0.5, 0.5, "int8", symmetric=True)
    found = resolved(MAX.with_value("weights.axis", None).override_tensor("w", axis="channel"))["w"]
    assert found.qparams == resolved()["w"].qparams
    found = resolved(MAX.override_tensor("w", scale=(1.0, 2.0, 3.0, 4.0)))["w"]
    assert found.qparams == QParams((1.0, 2.0, 3.0, 4.0), (0, 0, 0, 0), "int8", 0)
    assert resolved(MAX.override_tensor("w", scale=0.25))["w"].qparams.scales == (0.25,) * 4


@pytest.mark.parametrize(
    ("tensor", "settings", "message"),
    [
        ("x", {"threshold": (1.0, 2.0)}, "tensors.x.threshold: cannot be per channel: activations are quantized per"),
        ("x", {"axis": "channel"}, "tensors.x.axis: cannot be per channel: activations are quantized per tensor"),
        ("w", {"scale": (1.0, 2.0)}, "tensors.w.scale: is a list of 2, but the weight has 4 channels"),
        ("x", {"zero_point": -5}, r"tensors.x.zero_point: -5 is outside uint8"),
    ],
)
def test_overrides_that_do_not_suit(tensor, settings, message):
    with pytest.raises(ConfigError, match=message):
        resolved(MAX.override_tensor(tensor, **settings))


def test_a_weight_without_channels_has_no_scales_for_them():
    plain = dataclasses.replace(POINTS[1], channel_axis=None)
    assert resolved(MAX, [plain])["w"].qparams.axis is None
    for settings in ({"axis": "channel"}, {"scale": (1.0, 2.0, 3.0, 4.0)}):
        with pytest.raises(ConfigError, match=r"tensors\.w\.\w+: cannot be per channel"):
            resolved(MAX.override_tensor("w", **settings), [plain])


def test_int16_activations_are_symmetric_unless_the_user_says_otherwise():
    found = resolved(MAX.with_value("activations.dtype", "int16"))["y"].qparams
    assert (found.dtype, found.zero_point) == ("int16", 0)
    found = resolved(MAX.override_tensor("y", dtype="int16", symmetric=False))["y"].qparams
    assert (found.dtype, found.zero_point) == ("int16", -(2**15))


@pytest.mark.parametrize("where", ["rounding", "rule", "layer"])
@pytest.mark.parametrize("calibrator", ["mse", "max", "percentile", "kl", "power_of_two"])
def test_rounding_by_shifts_makes_every_scale_a_power_of_two(where, calibrator):
    config = MAX.with_value("activations.calibrator", calibrator)
    if where == "rounding":
        config = config.with_value("rounding", "pow2_half_up")
    elif where == "rule":
        config = config.with_rule(op="nn.dense", rounding="pow2_half_even")
    else:
        config = config.override_layer("fc", rounding="pow2_half_up")
    found = resolved(config, bias=BIAS * np.float32(1e9))
    for encoding in found.values():
        assert all(math.frexp(scale)[0] == 0.5 for scale in encoding.qparams.scales)
        assert "scales are powers of two" in encoding.reason
    with pytest.raises(ConfigError, match=r"tensors\.x\.scale: must be a power of two"):
        resolved(config.override_tensor("x", scale=0.3))


def test_registered():
    register_calibrator("by_name", lambda tensor, stats: QParams(0.5, 1, "uint8") if tensor == "x" else stats.max / 2)
    config = MAX.with_value("activations.calibrator", {"name": "registered", "callable": "by_name"})
    found = resolved(config)
    assert found["x"].qparams == QParams(0.5, 1, "uint8")
    assert found["y"].threshold == STATISTICS["y"].max / 2
    assert (found["y"].reason, found["y"].calibrator) == ("default: registered by_name", "by_name")
    register_calibrator("by_name", lambda tensor, stats: 1.0)
    assert resolved(config)["y"].threshold == 1.0  # nothing of the old one is remembered
    with pytest.raises(CalibrationError, match="no calibrator is registered as 'nobody'"):
        resolved(MAX.override_tensor("x", calibrator={"name": "registered", "callable": "nobody"}))


def test_all_zero_channels_and_weights():
    weight = WEIGHT.copy()
    weight[2] = 0
    alive = resolved(weight=weight)["w"].qparams
    assert alive.scales[2] == max(alive.scales)
    dead = resolved(weight=np.zeros_like(WEIGHT), bias=np.zeros_like(BIAS))["w"].qparams
    assert all(scale > 0 for scale in dead.scales)
    for calibrator in ("mse", "kl", "percentile", "power_of_two", "global_scale"):
        found = resolved(MAX.with_value("weights.calibrator", calibrator), weight=weight)["w"].qparams
        assert all(scale > 0 for scale in found.scales)


@pytest.mark.parametrize("axis", ["channel", None])
@pytest.mark.parametrize("rounding", ["tflite_single", "pow2_half_up"])
def test_a_weight_of_zeros_keeps_its_bias_exact(axis, rounding):
    config = MAX.with_value("weights.axis", axis).with_value("rounding", rounding)
    found = resolved(config, weight=np.zeros_like(WEIGHT))
    step = np.array(found["w"].qparams.scales) * found["x"].qparams.scales[0]
    np.testing.assert_allclose(np.rint(BIAS / step) * step, BIAS, rtol=1e-6)
    assert (np.abs(BIAS / step) <= BIAS_LIMIT).all()
    assert found["w"].reason.endswith("; all zeros, so the scale suits the bias")


@given(st.lists(st.floats(-(2.0**40), 2.0**40, width=32), min_size=4, max_size=4), st.sampled_from(["channel", None]))
def test_a_quantized_bias_leaves_half_of_int32_to_the_products(bias, axis):
    bias = np.array(bias, np.float32)
    config = MAX.with_value("weights.axis", axis)
    found, plain = resolved(config, bias=bias), resolved(config)
    scales = np.array(found["w"].qparams.scales) * found["x"].qparams.scales[0]
    assert (np.abs(np.rint(bias.astype(np.float64) / scales)) <= BIAS_LIMIT).all()
    raised = [a != b for a, b in zip(found["w"].qparams.scales, plain["w"].qparams.scales, strict=True)]
    needed = np.abs(bias.astype(np.float64)) / (found["x"].qparams.scales[0] * BIAS_LIMIT)
    wanted = np.maximum(plain["w"].qparams.scales, needed if axis else needed.max())
    np.testing.assert_allclose(found["w"].qparams.scales, wanted, rtol=1e-6)
    assert ("raised for the bias" in found["w"].reason) == any(raised)


def test_raised_scales_are_told():
    bias = np.array([0, 1e12, 0, 1e12], np.float32)
    assert resolved(bias=bias)["w"].reason == "default: max; scale of 2 of 4 channels raised for the bias to fit int32"
    assert "raised" not in resolved(MAX.override_tensor("w", scale=1e-3), bias=bias)["w"].reason


def test_nothing_to_go_by():
    with pytest.raises(CalibrationError, match="no statistics of tensor 'x'"):
        resolve(POINTS, graph(), {}, MAX)
    bad = WEIGHT.copy()
    bad[1, 2] = np.nan
    for calibrator in ("max", "mse"):
        with pytest.raises(DataError, match=r"weight 'w' has nan at index \(1, 2\)"):
            resolved(MAX.with_value("weights.calibrator", calibrator), weight=bad)


@pytest.mark.parametrize(
    ("calibrator", "words"),
    [
        ("max", "max"),
        ("kl", "kl"),
        ("kl_mxnet", "kl_mxnet"),
        ("kl_nvidia", "kl_nvidia"),
        ({"name": "kl", "levels": 64, "folding": False}, "kl levels=64 folding=False"),
        ("percentile", "percentile 99.99"),
        ({"name": "global_scale", "threshold": 4.0}, "global_scale 4.0"),
    ],
)
def test_calibrators_in_words(calibrator, words):
    assert describe(QuantConfig().with_value("activations.calibrator", calibrator).activations.calibrator) == words
