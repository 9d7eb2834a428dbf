"""Values of both models in a browser: asked for when they are seen, one channel in detail by mouse and by keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from qbench.session.session import Session
from qbench.views import values_view
from qbench.widgets import Workbench
from tests.browser.stub import Stub
from tests.browser.test_accessibility import synced
from tests.networks import residual

SESSION = Session(residual(), np.random.default_rng(2).normal(size=(20, 3, 6, 7)).astype(np.float32))
ASKED = {"do": "values", "layer": "relu_1", "part": "activation", "sample": 0, "channel": None, "where": "values"}


@pytest.fixture(scope="module")
def bench() -> dict[str, Any]:
    return synced(Workbench(SESSION, layer="relu_1"))


def tab(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name, exact=True).click()


def test_they_are_asked_for_once_they_are_seen_and_no_longer_than_that(page: Page, bench: dict[str, Any]):
    stub = Stub(page, bench | {"height": 860})
    assert stub.sent() == []
    tab(page, "Values")
    expect(page.locator(".qb-value-note")).to_contain_text("Both models run")
    assert stub.sent() == [ASKED]
    stub.update(values=values_view(SESSION.values("relu_1")).to_dict())
    expect(page.locator(".qb-maps img")).to_have_count(12)
    expect(page.locator(".qb-value-note")).to_be_hidden()
    stub.update(tensor={**bench["tensor"], "layer": "relu_2"})
    expect(page.locator(".qb-value-note")).to_be_visible()  # the old ones are of another layer
    assert stub.sent()[1:] == [{**ASKED, "layer": "relu_2"}]
    tab(page, "Graph")
    assert stub.sent()[2:] == [{"do": "values", "layer": None}]
    assert stub.errors == []


def test_a_channel_is_chosen_with_keys_and_with_its_map(page: Page, bench: dict[str, Any]):
    stub = Stub(page, bench | {"height": 860})
    tab(page, "Values")
    view = values_view(SESSION.values("relu_1"))
    stub.update(values=view.to_dict())
    plot = page.get_by_role("slider", name="Channel").last
    plot.focus()
    page.keyboard.press("ArrowRight")
    worst = view.channels[0].channel
    assert stub.sent()[-1] == {**ASKED, "channel": worst}
    stub.update(values=values_view(SESSION.values("relu_1"), channel=worst).to_dict())
    expect(page.locator(".qb-value-table")).to_contain_text(f"relu_1, activation, channel {worst}: SQNR")
    page.get_by_role("button", name="All channels").last.click()
    assert stub.sent()[-1] == ASKED
    assert stub.errors == []
