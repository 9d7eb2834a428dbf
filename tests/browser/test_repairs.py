from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from qbench.session.session import Session
from qbench.views import State, history_view, ir_diff_view, workbench_view
from tests.browser.stub import BENCH_STATUS, Stub
from tests.networks import mlp, samples

ROW: dict[str, Any] = {
    "label": "keep float 'dense_0', 'bias_0', 'relu_0'", "what": "keep float", "where": ["31", "32", "33"],
    "why": "prefix: 6.0 dB together", "layers": ["dense_0", "bias_0", "relu_0"], "gain_db": 6.0, "gain_metric": None,
    "gain_held_back": None, "returned": 0.75, "ms": 2.5, "more_ms": 0.5, "dearer": 0.25, "bytes": 1100,
    "more_bytes": 100, "larger": 0.1, "is_applied": False,
}  # fmt: skip
WHOLE = {
    **ROW, "label": "calibrator max", "what": "calibrator max", "where": [], "layers": [], "gain_db": "inf",
    "more_ms": -0.5, "dearer": -0.25, "more_bytes": 0, "larger": 0.0, "is_applied": True,
}  # fmt: skip
REPAIRS: dict[str, Any] = {"rows": [ROW, WHOLE], "metric_name": None, "is_stale": False}


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    session = Session(mlp(), samples(20), samples(20, seed=3))
    state = State.of(session)
    view = workbench_view(state, "relu_1").to_dict()
    shown = {name: view[name] for name in ("layers", "tensor", "result", "profile")}
    history = history_view(session, lambda _: state.report).to_dict()
    return {**shown, "graph": ir_diff_view(state).to_dict(), "history": history, "versions": {}, "exactness": {}}


def rows(page: Page) -> Any:
    return page.locator(".qb-repair-table tbody tr")


def test_they_are_found_on_demand_with_progress_and_a_way_out(page: Page, data: dict[str, Any]):
    stub = Stub(page, {**data, "status": BENCH_STATUS})
    panel = page.get_by_role("region", name="What to do")
    panel.get_by_role("button", name="Find repairs").click()
    assert stub.sent()[-1] == {"do": "repairs", "where": "repairs"}
    busy = {"is_busy": True, "is_finding": True, "message": "finding repairs: 1 of 4 tried", "progress": 0.25}
    stub.update(status={**BENCH_STATUS, **busy})
    expect(panel).to_contain_text("1 of 4 tried")
    expect(panel.get_by_role("button", name="Find repairs")).to_be_hidden()
    panel.get_by_role("button", name="Cancel").click()
    assert stub.sent()[-1] == {"do": "cancel"}
    stub.update(status=BENCH_STATUS, repairs=REPAIRS)
    expect(panel.get_by_role("button", name="Find again")).to_be_visible()
    expect(rows(page)).to_have_count(2)
    stub.update(repairs={**REPAIRS, "rows": []})
    expect(panel).to_contain_text("Nothing that was tried gives back")
    assert stub.errors == []


def test_gains_and_costs_are_numbers_with_bars(page: Page, data: dict[str, Any]):
    Stub(page, {**data, "status": BENCH_STATUS, "repairs": REPAIRS, "height": 800})
    first, second = rows(page).all()
    for words in ("dense_0, bias_0 and 1 more", "+6.0 dB", "+0.5 ms to 2.5 ms", "+100 B to 1.10 kB", "prefix: 6.0 dB"):
        expect(first).to_contain_text(words)
    widths = first.locator(".qb-share > span").evaluate_all("bars => bars.map((bar) => bar.style.width)")
    assert widths == ["75%", "25%", "10%"]
    page.set_viewport_size({"width": 1400, "height": 900})  # two panes beside each other: nothing is scrolled to
    page.get_by_role("tab", name="What to do").click()
    assert page.locator(".qb-repair-scroll").evaluate("one => one.clientWidth && one.scrollWidth <= one.clientWidth")
    for words in ("the whole model", "exact", "\u22120.5 ms", "\u00b10"):
        expect(second).to_contain_text(words)


def test_a_metric_stands_before_the_decibels(page: Page, data: dict[str, Any]):
    row = {**ROW, "gain_metric": 0.139, "gain_held_back": 0.12}
    Stub(page, {**data, "status": BENCH_STATUS, "repairs": {**REPAIRS, "metric_name": "AP50", "rows": [row]}})
    expect(rows(page)).to_contain_text("+0.139 AP50, +6.0 dB, +0.12 on held-back data")


def test_apply_is_a_message_and_what_is_applied_keeps_the_focus(page: Page, data: dict[str, Any]):
    stub = Stub(page, {**data, "status": BENCH_STATUS, "repairs": REPAIRS})
    apply = rows(page).first.get_by_role("button")
    apply.focus()
    page.keyboard.press("Enter")
    assert stub.sent()[-1] == {"do": "apply", "repair": 0, "label": ROW["label"], "where": "repairs"}
    stub.update(repairs={**REPAIRS, "rows": [{**ROW, "is_applied": True}, WHOLE], "is_stale": True})
    expect(apply).to_be_focused()
    expect(apply).to_have_text("Applied")
    sent = len(stub.sent())
    page.keyboard.press("Enter")
    assert len(stub.sent()) == sent
    expect(page.locator(".qb-repairs")).to_contain_text("Measured for an earlier config")


@pytest.mark.parametrize("way", ["hover", "focus"])
def test_pointing_at_a_repair_marks_its_layers(page: Page, data: dict[str, Any], way: str):
    stub = Stub(page, {**data, "status": BENCH_STATUS, "repairs": REPAIRS})
    hint, marked = page.locator(".qb-profile .qb-hint"), page.locator(".qb-layers .qb-hinted")
    expect(marked).to_have_count(0)
    getattr(rows(page).first if way == "hover" else rows(page).first.get_by_role("button"), way)()
    expect(marked).to_have_count(1)
    expect(marked).to_contain_text("dense_0")
    assert hint.get_attribute("d").count("z") == 1
    getattr(rows(page).last if way == "hover" else rows(page).last.get_by_role("button"), way)()
    expect(marked).to_have_count(0)
    assert hint.get_attribute("d") is None
    assert stub.sent() == []


def test_names_are_text(page: Page, data: dict[str, Any]):
    evil = '<img src=x onerror="window.hacked=1">'
    stub = Stub(
        page,
        {
            **data,
            "status": BENCH_STATUS,
            "repairs": {**REPAIRS, "rows": [{**ROW, "layers": [evil], "label": evil, "why": evil}]},
        },
    )
    expect(rows(page)).to_contain_text("<img src=x")
    assert page.evaluate("window.hacked") is None
    assert page.locator(".qb-repairs img").count() == 0
    assert stub.errors == []
