"""Rounding by least squares: against a column-by-column loop as slow as it is obvious, and against nearest rounding."""

from __future__ import annotations

import numpy as np
import pytest

from qbench.calibration.moments import Moments
from qbench.calibration.patches import Patches, unit_of
from qbench.quant.least_squares import Levels, best_scales, loss, rounded, targets

INT4 = Levels(-7, 7)


def inputs(rng: np.random.Generator, groups: int, count: int, depth: int) -> np.ndarray:
    """Inputs that depend on each other, as a network's do."""
    return (rng.normal(size=(groups, count, depth)) @ rng.normal(size=(groups, depth, depth))).astype(np.float32)


def moments(exact: np.ndarray, rounded: np.ndarray, unit: float) -> Moments:
    """Of rows for each group, [groups, inputs, depth]."""
    f, q = (one_by_one(rows, unit) for rows in (exact, rounded))
    return Moments.of([f], q)


def one_by_one(rows: np.ndarray, unit: float) -> Patches:
    """Rows as windows of one element each, on an image of one column."""
    groups, count, depth = rows.shape
    image = rows.transpose(0, 2, 1).reshape(1, groups * depth, count, 1)
    return Patches(image, np.stack([np.arange(count), np.zeros(count, np.int64)], axis=1), unit, groups)


def slowly(weights: np.ndarray, second: np.ndarray, scales: np.ndarray, damping: float) -> np.ndarray:
    """One output channel after the other; after each column the best rest is solved for anew. Then each once more."""
    made = np.empty_like(weights)
    for g, one in enumerate(second):
        level = np.diagonal(one).mean()
        raised = one + (damping + 1e-6) * level * np.eye(len(one))
        order = np.argsort(-np.diagonal(raised), kind="stable")
        for o, row in enumerate(weights[g]):
            left, free = row.copy(), [*order]
            while free:
                at = free.pop(0)
                made[g, o, at] = INT4.nearest(left[at], scales[g, o, 0], 0.0)
                error = made[g, o, at] - left[at]
                if free:
                    left[free] -= np.linalg.solve(raised[np.ix_(free, free)], raised[free, at]) * error
            for at in [*order] * 3:
                others = np.arange(len(one)) != at
                best = row[at] + (row - made[g, o])[others] @ raised[others, at] / raised[at, at]
                made[g, o, at] = INT4.nearest(best, scales[g, o, 0], 0.0)
    return made


@pytest.mark.parametrize("depth", [1, 5, 70])
def test_columns_take_over_what_others_lose(depth: int):
    rng = np.random.default_rng(depth)
    x = inputs(rng, 2, 300, depth)
    second, _ = moments(x, x, unit_of(float(np.abs(x).max()))).about(True)
    weights = rng.normal(size=(2, 3, depth))
    scales, zeros = best_scales(weights, second, INT4)
    assert not zeros.any()
    found = rounded(weights, second, scales, zeros, INT4, 0.01)
    assert np.allclose(found, slowly(weights, second, scales, 0.01), atol=1e-9)
    nearest = INT4.nearest(weights, scales, zeros)
    lost = [float((((one - weights) @ second) * (one - weights)).sum()) for one in (found, nearest)]
    assert lost[0] <= lost[1]


def test_targets_undo_what_earlier_layers_lost():
    rng = np.random.default_rng(0)
    exact = inputs(rng, 1, 500, 6)
    damaged = (exact @ (np.eye(6) + 0.2 * rng.normal(size=(6, 6)))).astype(np.float32)
    weights = rng.normal(size=(1, 4, 6))
    second, cross = moments(exact, damaged, unit_of(20.0)).about(True)
    product = weights @ cross
    found = targets(weights, second, product, 1e-9)
    centred = [x - x.mean(axis=1, keepdims=True) for x in (exact.astype(np.float64), damaged.astype(np.float64))]
    best = np.linalg.lstsq(centred[1][0], centred[0][0] @ weights[0].T, rcond=None)[0].T
    assert np.allclose(found[0], best, atol=1e-2)
    assert loss(found, second, product) < loss(weights, second, product)
    assert np.allclose(targets(weights, second, product, 1e9), weights, atol=1e-6)


def test_dead_channels_and_one_sample_are_no_trouble():
    weights = np.random.default_rng(0).normal(size=(2, 3, 4))
    for x in (np.zeros((2, 5, 4), np.float32), np.ones((2, 1, 4), np.float32)):
        second, cross = moments(x, x, unit_of(1.0)).about(True)
        grid = best_scales(weights, second, INT4)
        found = rounded(targets(weights, second, weights @ cross, 0.03), second, *grid, INT4, 0.01)
        assert np.array_equal(found, INT4.nearest(weights, *grid))


@pytest.mark.parametrize("cuts", [[], [7], [1, 2, 3], [50, 60]])
def test_moments_have_the_same_bits_for_any_split(cuts: list[int]):
    rng = np.random.default_rng(1)
    f, q = inputs(rng, 2, 100, 9), inputs(rng, 2, 100, 9)
    unit = unit_of(float(np.abs(f).max()))
    whole = moments(f, q, unit)
    parts = [moments(a, b, unit) for a, b in zip(np.split(f, cuts, axis=1), np.split(q, cuts, axis=1), strict=True)]
    merged = parts[-1]
    for part in parts[:-1]:
        merged = merged.merge(part)
    assert merged.count == whole.count
    for name in ("second", "cross", "sum_exact", "sum_rounded"):
        assert np.array_equal(getattr(merged, name), getattr(whole, name))
    exact = np.einsum("gij,gik->gjk", f.astype(np.float64), q.astype(np.float64))
    assert np.allclose(whole.about(False)[1] * 100, exact, rtol=1e-2, atol=1e-2 * np.abs(exact).max())


def test_one_scale_for_all_channels():
    weights = np.random.default_rng(0).normal(size=(1, 3, 4)) * np.array([1, 5, 0.1])[None, :, None]
    scales, _ = best_scales(weights, np.eye(4)[None], INT4, together=True)
    assert len({*scales.ravel().tolist()}) == 1


def test_zero_points_follow_ranges_that_lie_to_one_side():
    weights = np.random.default_rng(0).uniform(-0.2, 1.0, size=(1, 3, 40))
    scales, zeros = best_scales(weights, np.eye(40)[None], Levels(0, 15, None))
    assert ((zeros == 2) | (zeros == 3)).all()
    nearest = Levels(0, 15, None).nearest(weights, scales, zeros)
    centred = INT4.nearest(weights, *best_scales(weights, np.eye(40)[None], INT4))
    assert np.square(nearest - weights).sum() < np.square(centred - weights).sum() / 2
