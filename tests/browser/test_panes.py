"""The workbench's parts as tabs of two panes in one height, or below each other."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from qbench.session.session import Session
from qbench.widgets import Workbench
from tests.browser.stub import Stub
from tests.browser.test_accessibility import synced
from tests.networks import mlp, samples

IN_SIGHT = """(one) => {
  const [a, b] = [one.getBoundingClientRect(), document.querySelector(".qb-bench").getBoundingClientRect()];
  return a.height > 0 && a.top >= b.top && a.bottom <= b.bottom && a.left >= b.left && a.right <= b.right;
}"""


@pytest.fixture(scope="module")
def bench() -> dict[str, Any]:
    return synced(Workbench(Session(mlp(), samples(50), samples(30, seed=5)), layer="relu_1"))


def tab(page: Page, name: str) -> Locator:
    return page.get_by_role("tab", name=name, exact=True)


@pytest.mark.parametrize(("width", "height"), [(900, 920), (1440, 790), (1920, 790)])
def test_table_and_histogram_are_in_sight_together_in_one_height(
    page: Page, bench: dict[str, Any], width: int, height: int
):
    stub = Stub(page, bench | {"height": height}, width=width)
    box = page.locator(".qb-bench")
    assert box.bounding_box()["height"] == pytest.approx(height, abs=1)
    assert box.evaluate("one => one.scrollHeight <= one.clientHeight")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for part in (".qb-profile", ".qb-table", ".qb-values .qb-plot"):
        assert page.locator(part).evaluate(IN_SIGHT), part
    assert page.get_by_role("grid", name="Layers").evaluate("one => one.scrollWidth <= one.clientWidth")
    assert stub.errors == []


def test_parts_are_tabs_that_keys_reach_and_that_change_panes(page: Page, bench: dict[str, Any]):
    stub = Stub(page, bench | {"height": 860})
    first, second = page.get_by_role("tablist").all()
    assert second.get_by_role("tab").all_text_contents() == ["Chosen layer", "Values", "Boxes", "Graph", "Search"]
    tab(page, "Chosen layer").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(tab(page, "Boxes")).to_be_focused()
    expect(page.locator(".qb-boxes [role=option]").first).to_be_visible()
    expect(page.locator(".qb-tensor")).to_be_hidden()
    page.get_by_role("button", name="Move this part").last.click()
    assert first.get_by_role("tab").all_text_contents() == ["What to do", "Layers", "Boxes", "History"]
    expect(tab(page, "Boxes")).to_have_attribute("aria-selected", "true")
    expect(page.locator(".qb-tensor")).to_be_visible()  # the next of those that are left
    tab(page, "History").click()
    expect(page.get_by_label("Name of the snapshot")).to_be_visible()
    stub.update(status=bench["status"] | {"is_busy": True, "message": "probing"})
    expect(tab(page, "History")).to_have_attribute("aria-selected", "true")
    assert stub.errors == []


def test_the_share_of_the_panes_is_moved_by_mouse_and_keys(page: Page, bench: dict[str, Any]):
    stub = Stub(page, bench | {"height": 860}, width=1440)
    splitter, table = page.get_by_role("separator"), page.get_by_role("grid", name="Layers")
    before = table.bounding_box()["width"]
    box = splitter.bounding_box()
    page.mouse.move(box["x"] + 5, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 205, box["y"] + 100, steps=3)
    page.mouse.up()
    assert table.bounding_box()["width"] == pytest.approx(before + 200, abs=6)
    splitter.focus()
    for _ in range(20):
        page.keyboard.press("ArrowLeft")
    expect(splitter).to_have_attribute("aria-valuenow", "20")
    page.keyboard.press("ArrowRight")
    expect(splitter).to_have_attribute("aria-valuenow", "25")
    assert stub.errors == []


def test_what_is_not_there_has_no_tab_and_a_stack_shows_everything(page: Page, bench: dict[str, Any]):
    stub = Stub(page, bench | {"height": 860})
    expect(tab(page, "Flips")).to_have_count(0)
    page.get_by_role("button", name="Stack").click()
    expect(page.get_by_role("tab")).to_have_count(0)
    for part in (".qb-layers", ".qb-tensor", ".qb-diff", ".qb-history", ".qb-repairs"):
        expect(page.locator(part)).to_be_visible()
    page.get_by_role("button", name="Panes").click()
    expect(page.locator(".qb-diff")).to_be_hidden()
    assert stub.errors == []


def test_the_arrangement_is_remembered(page: Page, bench: dict[str, Any]):
    page.route("http://qbench.test/", lambda route: route.fulfill(body="", content_type="text/html"))
    for round_trip in range(2):
        page.goto("http://qbench.test/")
        stub = Stub(page, bench | {"height": 700})
        if round_trip == 0:
            tab(page, "Graph").click()
            page.get_by_role("button", name="Move this part").last.click()
            page.get_by_role("separator").focus()
            page.keyboard.press("ArrowRight")
        assert page.get_by_role("tablist").first.get_by_role("tab").all_text_contents()[-2:] == ["Graph", "History"]
        expect(tab(page, "Graph")).to_have_attribute("aria-selected", "true")
        expect(page.get_by_role("separator")).to_have_attribute("aria-valuenow", "55")
        assert stub.errors == []
