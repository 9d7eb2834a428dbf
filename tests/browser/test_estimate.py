"""What the browser works out while a handle moves is what the kernel would say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page

from qbench.calibration.grid import Grid
from qbench.calibration.loss import loss
from qbench.calibration.statistics import Statistics
from qbench.widgets.modules import module
from tests.views.test_histogram import drawn

IMPORT = """async ([code, does, given]) => {
  const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  const library = await import(url);
  return new Function("library", "given", does)(library, given);
}"""
GRIDS = [
    Grid(dtype, symmetric, narrow, shifts)
    for dtype in ("uint8", "int8", "int4", "uint4", "int16")
    for symmetric, narrow in ((False, False), (False, True), (True, False))
    for shifts in (False, True)
]
DATA = {
    "relu": lambda rng: np.maximum(rng.normal(size=500), 0),
    "two-sided": lambda rng: rng.laplace(size=500) * 3,
    "negative": lambda rng: -np.abs(rng.normal(size=99)) - 1,
    "outlier": lambda rng: np.append(rng.normal(size=300), 1e4),
    "constant": lambda _: np.full(7, 0.3),
    "zeros": lambda _: np.zeros(5),
    "one": lambda _: np.array([-2.0]),
    "tiny": lambda rng: rng.normal(size=50) * 1e-30,
    "huge": lambda rng: rng.normal(size=50) * 1e37,
}


def ask(page: Page, name: str, does: str, given: Any) -> Any:
    """What a function body says with a module of ``js/`` at hand."""
    return page.evaluate(IMPORT, [module(name), does, given])


@pytest.mark.parametrize("name", DATA)
def test_grids_and_losses_are_calibrations(page: Page, name: str):
    data = DATA[name](np.random.default_rng(3)).astype(np.float32)
    statistics, view = Statistics.of(data), drawn(data).to_dict()
    view["zeros"] = statistics.zeros
    largest = statistics.abs_max or 1.0
    cases, expected = [], []
    for grid in GRIDS:
        settings = {"dtype": grid.dtype, "symmetric": grid.symmetric, "narrow": grid.narrow}
        for threshold in np.geomspace(largest / 300, largest * 1.5, 7).tolist():
            cases.append([{**view, **settings, "power_of_two": grid.power_of_two}, threshold])
            q = grid.qparams(statistics, threshold)
            cost = loss(statistics, q)
            expected.append([q.scale, q.zero_point, cost.clipped, cost.rounding, cost.clipping, cost.signal])
    body = """return given.map(([view, threshold]) => {
      const grid = library.gridOf(view, threshold);
      const cost = library.lossOf(view, grid);
      return [grid.scale, grid.zero, cost.clipped, cost.rounding, cost.clipping, cost.signal];
    })"""
    found, expected = np.array(ask(page, "estimate", body, cases)), np.array(expected)
    assert (found[:, :2] == expected[:, :2]).all()
    unit = np.array([1.0, *[expected[0, -1] or 1.0] * 3])  # mean squares are compared with that of the values
    np.testing.assert_allclose(found[:, 2:] / unit, expected[:, 2:] / unit, rtol=1e-6, atol=1e-12)


def test_a_scale_that_was_given_is_taken_as_it_is(page: Page):
    view = {**drawn(np.ones(3, np.float32)).to_dict(), "scale": 0.25, "zero_point": -3, "threshold": 32.75}
    grid = ask(page, "estimate", "return library.gridOf(given, given.threshold)", view)
    assert grid == {"scale": 0.25, "zero": -3, "least": -125, "most": 130}


@pytest.mark.parametrize("size", [0.0, 0.4, 3.0, 1e9])
def test_merged_bins_keep_every_value(page: Page, size: float):
    data = np.random.default_rng(0).normal(size=3000).astype(np.float32)
    view = drawn(data)
    bins = ask(page, "bins", "return library.visible(...given)", [view.to_dict(), [-100, 100], size])
    assert sum(bins["counts"]) == data.size
    assert bins["width"] >= min(size, view.width)
    first = round(bins["start"] / bins["width"])
    expected = np.zeros(len(bins["counts"]), int)
    np.add.at(expected, np.floor(data.astype(float) / bins["width"]).astype(int) - first, 1)
    assert bins["counts"] == expected.tolist()


def test_only_what_is_seen_is_merged(page: Page):
    data = np.random.default_rng(0).normal(size=3000).astype(np.float32)
    bins = ask(page, "bins", "return library.visible(...given)", [drawn(data).to_dict(), [0.5, 0.75], 0.01])
    assert bins["start"] <= 0.5 < bins["start"] + bins["width"]
    end = bins["start"] + len(bins["counts"]) * bins["width"]
    assert end - bins["width"] <= 0.75 < end
    assert sum(bins["counts"]) == ((data >= bins["start"]) & (data < end)).sum()


@pytest.mark.parametrize(
    ("left", "right", "marked"),
    [
        ("%a = nn.conv2d(%x);", "%a = integer.conv2d(%x);", (["nn.conv2d"], ["integer.conv2d"])),
        ("%a = f(%x);", "%a = f(%x);", ([], [])),
        ("f(a, b)", "f(a, c, b)", ([], ["c, "])),
        ("", "new", ([], ["new"])),
        ("<b>&amp;", "<i>&amp;", (["b"], ["i"])),
    ],
)
def test_words_that_differ_are_marked(page: Page, left: str, right: str, marked: tuple[list[str], list[str]]):
    sides = ask(page, "tokens", "return library.compared(...given)", [left, right])
    assert ["".join(text for text, _ in side) for side in sides] == [left, right]
    assert tuple([text for text, differs in side if differs] for side in sides) == marked
