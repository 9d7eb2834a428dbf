"""Quality against time in a browser: points are configs to take, by mouse and by keyboard."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.stub import BENCH_STATUS, Stub
from tests.browser.test_repairs import data

__all__ = ["data"]  # the fixture

START: dict[str, Any] = {
    "label": "start", "metric": 0.5, "held_back": 0.48, "sqnr_db": 9.0, "ms": 2.0, "bytes": 1000, "on_front": True,
    "is_best": False, "is_current": True, "layers": [],
}  # fmt: skip
FLOAT = {
    **START, "label": "keep float 'dense_0'", "metric": 0.9, "ms": 3.0, "is_best": True, "is_current": False,
    "layers": ["dense_0", "bias_0", "relu_0"],
}  # fmt: skip
POOR = {**START, "label": "calibrator max", "metric": 0.4, "ms": 2.5, "on_front": False, "is_current": False}
FRONT: dict[str, Any] = {
    "points": [START, FLOAT, POOR], "metric_float": 0.95, "at_least": 0.85, "max_ms": None, "metric_name": "AP50",
    "met": True, "stopped": False,
}  # fmt: skip


def points(page: Page) -> Any:
    return page.locator(".qb-front .qb-point")


def test_a_search_is_asked_for_with_what_is_wanted_and_grows_while_it_goes_on(page: Page, data: dict[str, Any]):
    stub = Stub(page, {**data, "status": BENCH_STATUS})
    panel = page.get_by_role("region", name="Search")
    panel.get_by_label("Metric wanted").fill("0.85")
    panel.get_by_role("button", name="Search").click()
    asked = {"do": "search", "at_least": 0.85, "max_ms": None, "seconds": 60, "where": "front"}
    assert stub.sent()[-1] == asked
    expect(points(page)).to_have_count(0)
    stub.update(status={**BENCH_STATUS, "is_busy": True, "is_searching": True})
    expect(panel.get_by_role("button", name="Searching")).to_be_disabled()
    for count in (1, 2, 3):
        stub.update(front={**FRONT, "points": FRONT["points"][:count]})
        expect(points(page)).to_have_count(count)
    expect(panel).to_contain_text("3 configs measured, 2 that no other beats")
    stub.update(front={**FRONT, "met": False, "stopped": True})
    expect(panel).to_contain_text("nothing meets what is wanted, the star is the nearest")
    expect(panel).to_contain_text("Search goes on from there")
    assert stub.errors == []


def test_a_click_takes_a_config_and_the_current_one_is_marked(page: Page, data: dict[str, Any]):
    stub = Stub(page, {**data, "status": BENCH_STATUS, "front": FRONT})
    expect(page.locator(".qb-front .qb-ring")).to_have_count(1)
    expect(page.locator(".qb-point.qb-current")).to_have_attribute(
        "aria-label", "Current: start: AP50 0.5 (0.48 held back), 9.0 dB, 2 ms, 1.00 kB"
    )
    points(page).last.click()
    assert stub.sent()[-1] == {"do": "take", "point": 1, "label": FLOAT["label"], "where": "front"}
    stub.update(front={**FRONT, "points": [{**START, "is_current": False}, {**FLOAT, "is_current": True}, POOR]})
    expect(page.locator(".qb-point.qb-current")).to_have_attribute("data-place", "1")
    assert stub.errors == []


def test_the_keyboard_goes_from_the_fastest_to_the_slowest_and_takes(page: Page, data: dict[str, Any]):
    stub = Stub(page, {**data, "status": BENCH_STATUS, "front": FRONT})
    page.get_by_label("Seconds to search").focus()
    page.keyboard.press("Tab")
    expect(page.locator(".qb-point:focus")).to_have_attribute("data-place", "1")  # the one to take
    for key, place in (("ArrowLeft", "2"), ("ArrowLeft", "0"), ("ArrowLeft", "0"), ("ArrowRight", "2")):
        page.keyboard.press(key)
        expect(page.locator(".qb-point:focus")).to_have_attribute("data-place", place)
    stub.update(front={**FRONT, "points": [*FRONT["points"], {**POOR, "label": "new", "ms": 9.0}]})
    expect(page.locator(".qb-point:focus")).to_have_attribute("data-place", "2")  # what is new takes no focus
    page.keyboard.press("Enter")
    assert stub.sent()[-1] == {"do": "take", "point": 2, "label": "calibrator max", "where": "front"}


@pytest.mark.parametrize("way", ["hover", "focus"])
def test_pointing_at_a_config_marks_its_layers(page: Page, data: dict[str, Any], way: str):
    stub = Stub(page, {**data, "status": BENCH_STATUS, "front": FRONT})
    marked = page.locator(".qb-layers .qb-hinted")
    expect(page.locator(".qb-front .qb-told")).to_contain_text("Now: start")
    getattr(points(page).last, way)()
    expect(marked).to_have_count(1)
    expect(page.locator(".qb-front .qb-told")).to_contain_text("keep float 'dense_0': AP50 0.9")
    getattr(points(page).first, way)()
    expect(marked).to_have_count(0)
    assert stub.sent() == []


def test_names_are_text_and_numbers_that_are_none_are_left_out(page: Page, data: dict[str, Any]):
    evil = '<img src=x onerror="window.hacked=1">'
    wrong = {**POOR, "metric": "-inf", "sqnr_db": None}
    stub = Stub(
        page,
        {
            **data,
            "status": BENCH_STATUS,
            "front": {**FRONT, "points": [{**START, "label": evil}, wrong], "metric_name": None},
        },
    )
    expect(points(page)).to_have_count(1)
    expect(page.locator(".qb-front .qb-told")).to_contain_text("<img src=x")
    assert page.evaluate("window.hacked") is None
    assert stub.errors == []
