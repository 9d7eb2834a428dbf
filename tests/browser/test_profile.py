from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from qbench.session.session import Session
from qbench.views import State, profile_view
from tests.browser.stub import STATUS, Stub
from tests.networks import mlp, samples


@pytest.fixture(scope="module")
def view() -> dict[str, Any]:
    session = Session(mlp(), samples(20), samples(20, seed=3))
    session.override("relu_0", threshold=0.05)
    return profile_view(State.of(session)).to_dict()


def shown(page: Page, view: dict[str, Any], **options: Any) -> Stub:
    return Stub(page, {"profile": view, "status": STATUS}, widget="networkprofile", **options)


def many(view: dict[str, Any], count: int) -> dict[str, Any]:
    steps = [
        {**view["steps"][i % 4], "name": f"step_{i}", "layers": [f"layer_{i}"], "reads": [i - 1] if i else []}
        for i in range(count)
    ]
    return {**view, "steps": steps, "falls": [count // 2]}


def place(page: Page, step: int, steps: int) -> tuple[float, float]:
    box = page.get_by_role("slider").bounding_box()
    left, right = box["x"] + 40, box["x"] + box["width"] - 12
    return left + (step + 0.5) * (right - left) / steps, box["y"] + 90


def test_the_fall_is_named_and_is_a_click_away(page: Page, view: dict[str, Any]):
    stub = shown(page, view)
    assert view["steps"][view["falls"][0]]["name"] == "dense_0"
    expect(page.locator(".qb-fall text").first).to_contain_text("dense_0")
    page.get_by_role("button", name="dense_0").click()
    assert stub.sent()[-1] == {"do": "select", "layer": "relu_0"}
    expect(page.locator(".qb-told")).to_contain_text("lost for good, by its own noise")
    assert stub.errors == []


def test_pointing_tells_clicking_selects_and_dragging_takes_a_stretch(page: Page, view: dict[str, Any]):
    stub = shown(page, view)
    page.mouse.move(*place(page, 1, 4))
    expect(page.locator(".qb-told")).to_contain_text("dense_1 (uint8)")
    assert stub.sent() == []
    page.mouse.click(*place(page, 1, 4))
    assert stub.sent()[-1] == {"do": "select", "layer": "relu_1"}
    page.mouse.move(*place(page, 0, 4))
    page.mouse.down()
    page.mouse.move(*place(page, 1, 4), steps=3)
    page.mouse.up()
    layers = ["dense_0", "bias_0", "relu_0", "dense_1", "bias_1", "relu_1"]
    assert stub.sent()[-1] == {"do": "region", "layers": layers}
    page.get_by_role("button", name="Clear stretch").click()
    assert stub.sent()[-1] == {"do": "region", "layers": []}
    assert stub.errors == []


def test_keys_walk_and_take_a_stretch(page: Page, view: dict[str, Any]):
    stub = shown(page, view)
    slider = page.get_by_role("slider")
    slider.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert stub.sent()[-1] == {"do": "select", "layer": "relu_1"}
    expect(slider).to_have_attribute("aria-valuenow", "2")
    page.keyboard.press("Shift+ArrowRight")
    assert [m["layers"] for m in stub.sent() if m["do"] == "region"] == [
        ["dense_1", "bias_1", "relu_1", "dense_2", "bias_2"]
    ]
    page.keyboard.press("Escape")
    assert stub.sent()[-1] == {"do": "region", "layers": []}
    assert stub.errors == []


def test_weights_have_a_view_of_their_own(page: Page, view: dict[str, Any]):
    stub = shown(page, view)
    expect(page.locator(".qb-channel-dot")).to_have_count(0)
    page.get_by_role("button", name="Weights").click()
    expect(page.locator(".qb-channel-dot")).to_have_count(2)  # of all layers, and in the legend
    expect(page.locator(".qb-reach")).to_have_count(0)
    assert stub.errors == []


def test_two_thousand_steps_are_a_few_elements(page: Page, view: dict[str, Any]):
    stub = shown(page, many(view, 2000))
    assert page.locator(".qb-profile svg *").count() < 150
    expect(page.locator(".qb-fall text")).to_contain_text("step_1000")
    page.mouse.click(*place(page, 1500, 2000))
    chosen = int(stub.sent()[-1]["layer"].removeprefix("layer_"))
    assert abs(chosen - 1500) < 5
    page.get_by_role("slider").focus()
    for _ in range(12):
        page.keyboard.press("+")
    page.keyboard.press("End")
    expect(page.locator(".qb-told")).to_contain_text("step_1999")
    assert page.locator(".qb-profile svg *").count() < 150
    assert stub.errors == []


@pytest.mark.parametrize("ratio", [None, "inf", "-inf", 0.0, -30.0])
def test_what_cannot_be_measured_is_drawn_too(page: Page, view: dict[str, Any], ratio: Any):
    name = "<img src=x onerror=window.hacked=1>" * 300
    steps = [{**step, "sqnr_db": ratio, "own_db": ratio, "name": name} for step in view["steps"]]
    stub = shown(page, {**view, "steps": steps, "output_db": ratio})
    page.mouse.move(*place(page, 0, 4))
    assert page.evaluate("window.hacked") is None
    assert "NaN" not in page.locator(".qb-profile svg").inner_html()
    stub.update(profile={**view, "steps": [], "falls": []})
    expect(page.locator(".qb-profile")).to_be_hidden()
    stub.update(profile={**view, "steps": view["steps"][:1], "falls": []})
    expect(page.locator(".qb-profile")).to_be_visible()
    assert stub.errors == []
