"""Statistics do not depend on how the data came: the oracle is a histogram of all of it, in exact arithmetic."""

from __future__ import annotations

import copy
import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbench.calibration.statistics import Statistics, count
from qbench.errors import CalibrationError, DataError
from qbench.kernels.tally import BINS
from qbench.runtime.tallies import Tally

numbers = st.floats(width=32, allow_nan=False, allow_infinity=False, allow_subnormal=True)
arrays = st.lists(numbers, min_size=1, max_size=40).map(lambda values: np.array(values, np.float32))


def by_definition(array):
    values = [Fraction(float(x)) for x in array.reshape(-1)]
    largest = max(map(abs, values))
    exponent = -160
    while largest >= BINS * Fraction(2) ** exponent:
        exponent += 1
    counts = np.zeros(2 * BINS, np.int64)
    for x in values:
        counts[BINS + math.floor(x / Fraction(2) ** exponent)] += 1
    return Statistics(float(min(values)), float(max(values)), len(values), values.count(0), exponent, counts)


def bits(statistics):
    return (np.array([statistics.min, statistics.max]).tobytes(), statistics)


@given(arrays)
def test_of_is_the_definition(array):
    assert bits(Statistics.of(array)) == bits(by_definition(array))


@given(st.lists(arrays, min_size=1, max_size=6), st.data())
def test_any_split_order_and_tree_of_merges_gives_the_same(parts, data):
    whole = Statistics.of(np.concatenate(parts))
    found = [Statistics.of(part) for part in data.draw(st.permutations(parts))]
    while len(found) > 1:
        right = found.pop(data.draw(st.integers(0, len(found) - 1)))
        left = found.pop(data.draw(st.integers(0, len(found) - 1)))
        found.append(left.merge(right))
    assert bits(found[0]) == bits(whole)
    assert hash(found[0]) == hash(whole)


@pytest.mark.parametrize(
    "values",
    [
        [0.0],
        [-0.0],
        [-0.0, 0.0],
        [2.0**-149],
        [-(2.0**-149), 1.0],
        [3.4028235e38, -3.4028235e38, -1e-45],
        [1.0],
        [-1.0],
        [1024.0, 2047.99, 2048.0],
        [-1e-30, 1e30],
    ],
)
def test_extremes(values):
    array = np.array(values, np.float32)
    assert bits(Statistics.of(array)) == bits(by_definition(array))
    assert bits(Statistics.merged(map(Statistics.of, array[:, None]))) == bits(by_definition(array))


@given(arrays)
def test_typical_is_a_median_of_what_is_not_zero(array):
    statistics, numbers = Statistics.of(array), np.sort(np.abs(array[array != 0]))
    if not numbers.size:
        assert statistics.typical == 0
    else:
        median = float(numbers[(numbers.size - 1) // 2])
        assert abs(statistics.typical - median) <= 2.0**statistics.exponent


def test_more_elements_than_one_chunk():
    array = np.random.default_rng(0).normal(size=(3, 70_001)).astype(np.float32)
    statistics = Statistics.of(array.T)
    assert statistics == Statistics.merged(map(Statistics.of, array))
    assert statistics.counts.sum() == statistics.count == array.size
    width = statistics.bin_width
    expected, _ = np.histogram(array.astype(np.float64), np.arange(-BINS, BINS + 1) * width)
    assert np.array_equal(statistics.counts, expected)


@given(st.lists(arrays, min_size=1, max_size=6))
def test_counting_array_by_array_gives_the_same(parts):
    tally = Tally()
    for part in parts:
        count(part, tally)
    assert bits(Statistics.taken(tally)) == bits(Statistics.of(np.concatenate(parts)))


@pytest.mark.parametrize("scale", [1e-38, 1e-3, 1.0, 1e5, 1e36])
def test_any_layout_in_memory_gives_the_same(scale):
    array = (np.random.default_rng(1).normal(size=(2, 6, 5, 7)) * scale).astype(np.float32)
    last = np.ascontiguousarray(array.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    assert bits(Statistics.of(last)) == bits(Statistics.of(array)) == bits(by_definition(array))
    assert bits(Statistics.of(array[:, ::2])) == bits(Statistics.of(array[:, ::2].copy()))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision_is_taken_exactly(dtype):
    array = np.array([-3.5, 0.1, 0, 6e-8, 1000], dtype)
    assert Statistics.of(array) == by_definition(array)


@pytest.mark.parametrize("copied", [False, True])
def test_is_frozen(copied):
    statistics = Statistics.of(np.ones(3, np.float32))
    statistics = copy.deepcopy(statistics) if copied else statistics
    with pytest.raises(ValueError, match="read-only"):
        statistics.counts[0] = 1
    with pytest.raises(AttributeError):
        statistics.min = 0.0


def test_names_the_tensor_and_index_of_nan():
    array = np.zeros((2, 3), np.float32)
    array[1] = np.inf, 0, np.nan
    with pytest.raises(DataError, match=r"tensor 'conv\\n1' has nan at index \(1, 2\)"):
        Statistics.of(array, "conv\n1")


def test_infinity_is_left_out():
    array = np.array([[0, 1, -np.inf], [np.inf, -3, 2]], np.float32)
    assert Statistics.of(array) == Statistics.of(array[np.isfinite(array)])


@pytest.mark.parametrize(
    ("array", "message"),
    [(np.zeros((0, 3), np.float32), "no elements"), (np.zeros(3), "float64"), (np.zeros(3, np.int8), "int8")],
)
def test_refuses(array, message):
    with pytest.raises(DataError, match=message):
        Statistics.of(array)


def test_nothing_to_merge():
    with pytest.raises(CalibrationError, match="no statistics"):
        Statistics.merged([])
