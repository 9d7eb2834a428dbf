from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from qbench.report.entries import Flip, Latency
from qbench.session.session import Session
from qbench.views import Picture, State, result_view
from tests.browser.stub import STATUS, Stub
from tests.networks import mlp, samples

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
FLIPS = (Flip(3, 1, 2, 1), Flip(7, 0, 4, 4), Flip(11, 2, 3, 0))


def views() -> dict[str, Any]:
    session = Session(mlp(), samples(20), (samples(30, seed=5), np.random.default_rng(6).integers(0, 5, 30)))
    state = State.of(session)
    before = state.report
    output = replace(
        before.output, sqnr_db=20.5, agreement=0.9, top1=0.5, flipped=3, flips=FLIPS, latency=Latency(0.25, 1.0, 2, 1)
    )
    now = replace(state, report=replace(before, output=output))
    old = replace(before, output=replace(before.output, sqnr_db=22.0, agreement=0.8, top1=0.5, flips=FLIPS[:1]))
    return {
        "first": result_view(replace(state, report=old)).to_dict(),
        "edited": result_view(now, old, lambda index: Picture(PNG, 20, 10) if index == 3 else None).to_dict(),
    }


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    return views()


def panel(page: Page, view: dict[str, Any]) -> Stub:
    return Stub(page, {"result": view, "status": STATUS}, widget="resultpanel")


def test_numbers_before_and_after_the_last_edit(page: Page, result: dict[str, Any]):
    stub = panel(page, result["edited"])
    for name, texts in {
        "sqnr": ("20.5 dB", "\u25bc \u22121.50 dB by last edit"),
        "agreement": ("90.00 %", "\u25b2 +10.00 points by last edit"),
        "top1": ("50.00 %", "same after last edit"),
        "latency": ("0.25 ms", "float 1 ms (4\u00d7)", "2 threads, 1 sample a run"),
        "samples": ("30 samples", "evaluation data"),
    }.items():
        for text in texts:
            expect(page.locator(f'[data-name="{name}"]')).to_contain_text(text)
    expect(page.get_by_role("status").filter(has_text="before the last edit 22.0 dB")).to_have_count(1)
    assert stub.errors == []


def test_what_outputs_say_beside_numbers(page: Page, result: dict[str, Any]):
    said = {"found_db": 23.25, "varies_db": 4.5, "texts_alike": 0.975, "nats_lost": 0.0021}
    edited = result["edited"]
    before = edited["before"] | {"found_db": 24.0, "varies_db": 4.5, "texts_alike": 0.95}
    stub = panel(page, edited | {"now": edited["now"] | said, "before": before})
    for name, texts in {
        "found": ("23.3 dB", "\u25bc \u22120.75 dB by last edit"),
        "varies": ("4.5 dB", "same after last edit"),
        "texts": ("97.50 %", "\u25b2 +2.50 points by last edit"),
        "agreement": ("loses 0.0021 nats",),
    }.items():
        for text in texts:
            expect(page.locator(f'[data-name="{name}"]')).to_contain_text(text)
    stub.update(result=edited)
    expect(page.locator('[data-name="found"], [data-name="varies"], [data-name="texts"]')).to_have_count(0)
    assert stub.errors == []


def test_flipped_samples_are_pictures_or_numbers_and_say_who_is_right(page: Page, result: dict[str, Any]):
    stub = panel(page, result["edited"])
    flips = page.get_by_role("region", name="Samples whose prediction flipped")
    expect(flips).to_contain_text("3 predictions flipped")
    items = flips.get_by_role("listitem")
    expect(items.nth(0)).to_contain_text("float says 1, quantized 2; float is right")
    expect(items.nth(0).get_by_role("img", name="Sample 3")).to_have_js_property("naturalWidth", 1)
    expect(items.nth(1)).to_contain_text("the quantized model is right; new with the last edit")
    expect(items.nth(1)).to_contain_text("#7")
    expect(items.nth(2)).to_contain_text("neither is right: it is 0")
    stub.update(result=result["first"] | {"now": result["first"]["now"] | {"flipped": 0}})
    expect(flips).to_be_hidden()


def test_the_probe_is_called_so_and_the_reader_hears_only_of_all_data(page: Page, result: dict[str, Any]):
    stub = panel(page, result["first"])
    heard = page.locator(".qb-result > .qb-heard")
    before = heard.inner_text()
    assert "22.0 dB" in before
    probe = result["edited"] | {"data": "probe", "samples": 8}
    stub.update(result=probe)
    expect(page.locator('[data-name="sqnr"]')).to_contain_text("probe")
    expect(page.locator('[data-name="samples"]')).to_contain_text("8 samples")
    expect(page.locator('[data-name="samples"]')).to_contain_text("a probe, for a quick look")
    assert heard.inner_text() == before
    stub.update(result=result["edited"])
    expect(heard).to_contain_text("20.5 dB")
    expect(page.locator('[data-name="sqnr"]')).not_to_contain_text("probe")


def test_a_probe_counts_samples_and_says_what_that_means_for_all(page: Page, result: dict[str, Any]):
    now = result["edited"]["now"] | {"agreement": 29 / 32, "flipped": 3}
    before = result["edited"]["before"] | {"agreement": 1.0, "flipped": 0}
    stub = panel(page, result["edited"] | {"data": "probe", "samples": 32, "now": now, "before": before})
    card = page.locator('[data-name="agreement"]')
    expect(card).to_contain_text("29 of 32")
    expect(card).to_contain_text("of all: 76 to 97 %")  # Wilson's interval of 29 in 32: 0.758 to 0.968
    expect(card).to_contain_text("\u25bc \u22123 samples by last edit")
    expect(card).not_to_contain_text("points")
    assert stub.errors == []


def test_changes_are_told_since_the_start_or_a_snapshot_too_and_not_of_stale_numbers(
    page: Page, result: dict[str, Any]
):
    start = result["edited"]["now"] | {"sqnr_db": 30.5}
    view = result["edited"] | {"baselines": [{"label": "start", "outcome": start}]}
    stub = panel(page, view)
    card = page.locator('[data-name="sqnr"]')
    expect(card).to_contain_text("\u22121.50 dB by last edit")
    page.get_by_label("Compare the result with").select_option("start")
    expect(card).to_contain_text("\u221210.00 dB since start")
    stub.update(result=view)
    expect(card).to_contain_text("since start")
    stub.update(result=view | {"is_stale": True})
    expect(card).not_to_contain_text("since start")
    expect(page.locator('[data-name="top1"]')).not_to_contain_text("same")
    assert stub.errors == []


def test_classes_have_names_where_the_user_gave_them(page: Page, result: dict[str, Any]):
    flips = [flip | {"names": ["<b>cat</b>", "dog", "cow"]} for flip in result["edited"]["flips"]]
    stub = panel(page, result["edited"] | {"flips": flips})
    items = page.get_by_role("region", name="Samples whose prediction flipped").get_by_role("listitem")
    expect(items.nth(2)).to_contain_text("float says <b>cat</b>, quantized dog; neither is right: it is cow")
    assert stub.errors == []


def test_latency_is_measured_on_demand(page: Page, result: dict[str, Any]):
    stub = panel(page, result["first"])
    page.get_by_role("button", name="Measure").click()
    assert stub.sent() == [{"do": "latency", "where": "result"}]


def test_without_labels_classes_or_numbers_it_says_so(page: Page, result: dict[str, Any]):
    nothing = {"sqnr_db": None, "agreement": None, "top1": None, "flipped": None}
    stub = panel(page, result["first"] | {"now": nothing, "data": "calibration", "top1_float": None})
    expect(page.locator('[data-name="top1"]')).to_contain_text("no labels")
    expect(page.locator('[data-name="agreement"]')).to_contain_text("no choice between classes")
    expect(page.locator('[data-name="samples"]')).to_contain_text("which flatters")
    stub.update(result=result["first"] | {"now": nothing | {"sqnr_db": "inf"}})
    expect(page.locator('[data-name="sqnr"] .qb-card-value')).to_have_text("exact")
    assert stub.errors == []


def test_progress_is_shown_and_can_be_cancelled(page: Page, result: dict[str, Any]):
    stub = panel(page, result["first"])
    expect(page.get_by_role("progressbar")).to_be_hidden()
    stub.update(status=STATUS | {"is_busy": True, "message": "evaluation: 5 of 30 samples", "progress": 1 / 6})
    expect(page.get_by_role("progressbar")).to_have_js_property("value", 1 / 6)
    expect(page.get_by_role("status").filter(has_text="5 of 30")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    assert stub.sent() == [{"do": "cancel"}]


def test_what_was_known_already_is_said_to_be(page: Page, result: dict[str, Any]):
    view = {**result["edited"], "data": "evaluation", "steps_ran": 0, "steps": 9}
    stub = Stub(page, {"result": view, "status": STATUS}, widget="resultpanel")
    expect(page.locator('[data-name="samples"]')).to_contain_text("nothing had to run")
    stub.update(result={**view, "steps_ran": 2})
    expect(page.locator('[data-name="samples"]')).to_contain_text("2 of 9 steps ran")
    assert stub.errors == []


def test_what_makes_the_numbers_worth_less_stands_above_them(page: Page, result: dict[str, Any]):
    text = "<img src=x onerror=window.hacked=1> reaches 255"
    stub = panel(page, result["edited"] | {"caveats": [text]})
    expect(page.get_by_role("list", name="What to know of these numbers")).to_have_text(text)
    stub.update(result=result["edited"])
    expect(page.locator(".qb-caveats")).to_be_hidden()
    assert page.evaluate("window.hacked") is None
    assert stub.errors == []
