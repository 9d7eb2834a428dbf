"""What the newest probe says of the whole network, beside the handle and in the bar that stays in sight."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from qbench.session.session import Session
from qbench.views import Glance, Outcome
from qbench.widgets import Workbench
from tests.browser.stub import Stub
from tests.browser.test_accessibility import synced
from tests.networks import mlp, samples


@pytest.fixture(scope="module")
def bench() -> dict[str, Any]:
    return synced(Workbench(Session(mlp(), samples(40), samples(64, seed=5)), layer="relu_1"))


def glance(bench: dict[str, Any], threshold: float, sqnr_db: float, tensor: str = "relu_1") -> dict[str, Any]:
    now, before = Outcome(sqnr_db, 31 / 32, None, 1, None), Outcome(20.0, 1.0, None, 0, None)
    found = Glance({tensor: threshold}, now, before, 32)
    return {"status": bench["status"] | {"is_busy": True, "message": "probing", "glance": found.to_dict()}}


def test_the_newest_number_stands_beside_the_handle_with_its_threshold(page: Page, bench: dict[str, Any]):
    stub = Stub(page, bench)
    beside, bar = page.locator(".qb-answer"), page.locator(".qb-outcome")
    expect(beside).to_have_text("")
    expect(bar.locator(".qb-mark")).to_be_hidden()
    handle = page.get_by_role("slider", name="Clipping threshold")
    handle.focus()
    page.keyboard.press("PageDown")
    stub.update(**glance(bench, 0.75, 18.25))
    expect(beside).to_have_text("18.3 dB, 31 of 32 agree at 0.75")
    expect(bar).to_have_text("18.3 dB, 31 of 32 agree \u25bc \u22121.8 dBprobe")
    page.keyboard.press("PageDown")  # the handle moves on: the number still says what it is of
    expect(beside).to_have_text("18.3 dB, 31 of 32 agree at 0.75")
    stub.update(**glance(bench, 0.6, 20.02))
    expect(beside).to_contain_text("20.0 dB")
    expect(bar).not_to_contain_text("\u25b2")
    stub.update(status=bench["status"])
    expect(beside).to_have_text("")
    at = float(handle.get_attribute("aria-valuenow"))
    # where the last step is not sent yet, a new picture leaves the handle, and its number, where the user put it
    page.wait_for_function("at => Math.abs(window.sent.at(-1)?.settings?.threshold / at - 1) < 1e-4", arg=at)
    stub.update(**glance(bench, at, 18.25))
    stub.update(status=bench["status"])  # evaluated: the number stays as long as the handle does
    expect(beside).to_have_text(f"18.3 dB, 31 of 32 agree at {at:.4g}")
    stub.update(tensor=bench["tensor"])
    expect(beside).to_have_text("")
    assert stub.errors == []


def test_a_number_of_another_tensor_is_not_beside_this_handle(page: Page, bench: dict[str, Any]):
    stub = Stub(page, bench | glance(bench, 0.75, 18.25, tensor="relu_0"))
    expect(page.locator(".qb-outcome")).to_contain_text("18.3 dB")
    expect(page.locator(".qb-answer")).to_have_text("")
    assert stub.errors == []


def test_the_result_stays_in_sight_while_the_page_scrolls(page: Page, bench: dict[str, Any]):
    stub = Stub(page, bench)
    page.set_viewport_size({"width": 1000, "height": 500})
    page.mouse.wheel(0, 10_000)
    page.wait_for_function("window.scrollY > 300")
    expect(page.locator(".qb-outcome")).to_be_in_viewport()
    assert stub.errors == []
