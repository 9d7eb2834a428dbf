from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from qbench.errors import DataError
from qbench.evaluate.measure import Deviation, clipped, decibels, deviation
from qbench.evaluate.predictions import Score, predictions, score
from qbench.ir.build import build
from qbench.ir.frozen import Constant
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.ops.products import macs
from qbench.quant.arithmetic import dequantize, quantize
from qbench.report.entries import Flip
from tests.networks import mlp, node

REALS = hnp.arrays(np.float32, hnp.array_shapes(max_dims=3), elements=st.floats(-100, 100, width=32))


@given(REALS, st.floats(2**-10, 2, width=32), st.integers(-128, 127))
def test_deviation_is_what_the_definition_says(x: np.ndarray, scale: float, zero_point: int):
    q = QParams(scale, zero_point, "int8")
    y = dequantize(quantize(x, q), q)
    found = deviation(x, y, q)
    wide = x.astype(np.float64)
    assert found.signal == pytest.approx((wide**2).sum(), rel=1e-9)
    assert found.noise == pytest.approx(((wide - y) ** 2).sum(), rel=1e-9)
    steps = wide / q.scales[0] + zero_point
    assert found.clipped == np.count_nonzero((steps < -128.5) | (steps > 127.5))
    assert found.count == x.size


@given(REALS, st.floats(-50, 50, width=32))
def test_what_a_mask_hides_does_not_count(x: np.ndarray, floor: float):
    q = QParams(0.5, 3, "int8")
    y = quantize(x, q)
    shown = x > floor
    hidden = np.where(shown, x, -np.inf).astype(np.float32)
    found = deviation(hidden, np.where(shown, y, -128).astype(np.int8), q, q, floor)
    alone = deviation(x[shown], y[shown], q, q)
    assert (found.clipped, found.count) == (alone.clipped, alone.count)
    assert (found.signal, found.noise) == pytest.approx((alone.signal, alone.noise), rel=1e-9)


def test_clipping_along_an_axis():
    q = QParams((1.0, 0.1), (0, 0), "int8", axis=1)
    assert clipped(np.array([[100, 100], [-200, 1]], np.float32), q) == 2


def test_sums_add_up():
    total = Deviation(4.0, 1.0, 1, 4) + Deviation(6.0, 0.0, 0, 4)
    assert total == Deviation(10.0, 1.0, 1, 8)
    assert total.sqnr_db == pytest.approx(10.0)
    assert total.clipped_fraction == 1 / 8
    assert Deviation().sqnr_db is None


def test_decibels_at_the_edges():
    assert decibels(1.0, 0.0) == math.inf
    assert decibels(0.0, 0.0) == math.inf
    assert decibels(0.0, 1.0) == -math.inf
    assert decibels(math.inf, 1.0) is None
    assert decibels(math.nan, 1.0) is None


def test_an_overflowing_model_has_no_ratio():
    big = np.array([3e38, np.inf], np.float32)
    assert deviation(big, -big).sqnr_db is None


@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((4, 5), 1),
        ((1, 5), 1),
        ((4, 5, 1, 1), 1),
        ((4, 1, 1, 5), 3),
        ((4, 1, 5), 2),
        ((4, 7, 5), 2),
        ((4, 5, 6, 7), 1),
        ((4, 5, 6, 1), 1),
    ],
)
def test_predictions_lie_along_the_class_axis(shape: tuple[int, ...], axis: int):
    output = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    found = predictions(output)
    assert found is not None
    assert np.array_equal(found, output.argmax(axis))
    assert score(output, output, found.ravel()) == Score(found.size, found.size, found.size, found.size)


def test_what_predicts_nothing():
    for shape in [(4,), (4, 1), (4, 1, 1), (4, 1, 6, 7)]:
        assert predictions(np.zeros(shape, np.float32)) is None
    assert score(np.zeros((4, 1), np.float32), np.zeros((4, 1), np.float32), np.zeros(4, np.int64)) == Score()
    assert Score().share(0) is None


def test_integers_are_predictions_already():
    flips = (Flip(12, 3, 4, 4),)
    assert score(np.array([1, 2, 3]), np.array([1, 2, 4]), np.array([1, 0, 4]), 10) == Score(3, 2, 1, 2, flips)


def test_the_first_of_equal_scores_counts():
    assert score(np.array([[1, 1, 0]], np.float32), np.array([[1, 2, 0]], np.float32), None) == Score(
        1, 0, flips=(Flip(0, 0, 1),)
    )


def test_labels_that_do_not_fit():
    output = np.zeros((2, 3, 4), np.float32)
    assert score(output, output, np.zeros((2, 3), np.int64)) == Score(6, 6, 6, 6)
    with pytest.raises(DataError, match=r"labels of shape \(2,\) do not fit predictions of shape \(2, 3\)"):
        score(output, output, np.zeros(2, np.int64))
    for label in (-1, 4, 255):
        labels = np.array([[0, 1, 2], [3, label, 0]])
        with pytest.raises(DataError, match=f"label {label} is no class of the model: it has 4, numbered from 0 to 3"):
            score(output, output, labels)


def test_macs_of_dense_layers():
    graph = mlp()
    assert [macs(graph, n) for n in graph.nodes if n.op == "nn.dense"] == [12 * 16, 16 * 8, 8 * 5]
    assert sum(macs(graph, n) for n in graph.nodes if n.op != "nn.dense") == 0


def test_macs_of_convolutions_and_products():
    constants = {"w": np.zeros((8, 2, 3, 3), np.float32), "m": np.zeros((7, 9), np.float32)}
    nodes = [
        node("nn.conv2d", ["x", "w"], "c", groups=2, strides=(2, 2), padding=(1, 1, 1, 1)),
        node("nn.batch_matmul", ["c", "m"], "y"),
    ]
    types = {"x": TensorType(("N", 4, 10, 14), "float32")}
    graph = build("g", types, ["y"], nodes, {name: Constant(array) for name, array in constants.items()})
    assert macs(graph, graph.node("c")) == 8 * 5 * 7 * (2 * 3 * 3)
    assert macs(graph, graph.node("y")) == 8 * 5 * 9 * 7
