"""The comparison of two runs, in a browser."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from qbench.parity import Comparison
from qbench.session.session import Session
from qbench.views import exactness_view
from qbench.widgets import Workbench
from tests.browser.stub import STATUS, Stub
from tests.browser.test_module import data
from tests.networks import mlp, samples
from tests.parity.comparisons import comparison, hostile


def shown(page: Page, found: Comparison, **options: Any) -> Stub:
    view = exactness_view(found).to_dict()
    return Stub(page, {"comparison": view, "layer": view["first"], "status": STATUS}, widget="bitexactness", **options)


def test_numbers_bars_and_predictions(page: Page):
    stub = shown(page, comparison())
    expect(page.locator('[data-name="different"]')).to_contain_text("33")
    expect(page.locator('[data-name="different"]')).to_contain_text("of 2,010, in 2 of 3 layers")
    expect(page.locator('[data-name="first"]')).to_contain_text("tflite_double against litert_builtin")
    rows = page.get_by_role("option")
    expect(rows).to_have_count(3)
    expect(rows.nth(1)).to_have_attribute(
        "aria-label", "conv_2, qnn.conv2d: 30 of 1,000 differ (3.000 %, 2.500 % predicted), end to end 40.000 %"
    )
    expect(rows.nth(1)).to_contain_text("2 steps")
    expect(rows.nth(0)).to_contain_text("same")
    bar = rows.nth(1).locator(".qb-exact-bar").bounding_box()
    own = rows.nth(1).locator(".qb-exact-own").bounding_box()
    assert bar is not None and own is not None
    assert own["width"] / bar["width"] == pytest.approx(1 + (-1.5229) / 6, abs=0.01)  # 3 % of six decades
    assert rows.nth(0).locator(".qb-exact-own, .qb-exact-theory, .qb-exact-end").count() == 0
    assert stub.errors == []


def test_the_chosen_layer_and_the_keyboard(page: Page):
    stub = shown(page, comparison())
    chosen = page.get_by_role("region", name="Chosen layer")
    expect(chosen).to_contain_text("30 of 1,000 (3.000 %)")
    expect(chosen.get_by_role("img", name="Differences of conv_2").locator("rect")).to_have_count(3)
    expect(chosen.get_by_role("img", name="Channels of conv_2").locator("rect")).to_have_count(2)
    row = page.get_by_role("option", selected=True)
    row.focus()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("option", selected=True)).to_be_focused()
    expect(chosen).to_contain_text("0.02 relative")
    page.keyboard.press("Home")
    expect(chosen).to_contain_text("Every bit is the same.")
    page.keyboard.press("ArrowUp")  # there is none above
    page.get_by_role("button", name="conv_2").click()
    assert [message["layer"] for message in stub.sent()] == ["softmax.out", "conv_1.out", "conv_1.out", "conv_2.out"]
    stub.update(layer="softmax.out")
    expect(chosen).to_contain_text("nn.softmax")
    page.get_by_label("only layers that differ").check()
    expect(page.get_by_role("option")).to_have_count(2)
    assert stub.errors == []


@pytest.mark.parametrize("width", [400, 1180])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_names_are_text_and_nothing_is_wider_than_the_page(page: Page, width: int, theme: str):
    stub = shown(page, hostile(), width=width, theme=theme)
    expect(page.get_by_role("option").nth(0)).to_contain_text("<script>")
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert stub.errors == []


def test_nothing_differs(page: Page):
    one = comparison()
    stub = shown(page, dataclasses.replace(one, layers=one.layers[:1]))
    expect(page.locator('[data-name="first"]')).to_contain_text("none: every bit is the same")
    page.get_by_label("only layers that differ").check()
    expect(page.get_by_text("No layer differs.")).to_be_visible()
    assert stub.errors == []


def test_in_the_workbench_it_is_a_section_that_selects_and_follows(page: Page):
    bench = Workbench(Session(mlp(), samples(20)), comparison(names=("relu_0", "relu_1", "elsewhere")), layer="dense_0")
    stub = Stub(page, data(bench))
    section = page.locator('[data-where="exactness"]')
    chosen = section.get_by_role("region", name="Chosen layer")
    expect(chosen.get_by_role("heading")).to_have_text("relu_1")  # the first divergent op
    section.get_by_role("option", name="relu_0").click()
    assert stub.sent() == [{"do": "select", "layer": "relu_0", "where": "exactness"}]
    bench.select("relu_0")
    stub.update(tensor=bench.tensor)
    expect(chosen.get_by_role("heading")).to_have_text("relu_0")
    section.get_by_role("option", name="elsewhere").click()
    expect(section).to_contain_text("The session has no layer elsewhere")
    assert len(stub.sent()) == 1
    bench.select("relu_1")
    stub.update(tensor=bench.tensor)
    expect(chosen.get_by_role("heading")).to_have_text("relu_1")
    expect(section.get_by_text("The session has no layer")).to_have_count(0)
    page.set_viewport_size({"width": 900, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= 900
    assert stub.errors == []


def test_a_workbench_without_a_comparison_has_no_section_of_it(page: Page):
    stub = Stub(page, data(Workbench(Session(mlp(), samples(20)))))
    expect(page.locator('[data-where="exactness"]')).to_be_hidden()
    assert stub.errors == []
