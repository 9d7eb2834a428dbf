"""The histogram, the channels and the curves against a model that stands in for the kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from qbench.session.session import Session
from qbench.views import State, tensor_view
from qbench.widgets import DivergenceCurves, Histogram
from tests.browser.stub import Stub
from tests.networks import mlp, samples

STATUS = {"is_busy": False, "message": "", "progress": None, "error": None}


@pytest.fixture(scope="module")
def session() -> Session:
    session = Session(mlp(), samples(60))
    session.run()
    return session


def view(session: Session, layer: str = "relu_1", part: str = "activation", **changes: Any) -> dict[str, Any]:
    """A tensor's view; `changes` are of its histogram."""
    found = tensor_view(State.of(session), layer, part).to_dict()
    return found | {"histogram": found["histogram"] and found["histogram"] | changes}


@pytest.fixture
def show(page: Page):
    made: list[Stub] = []

    def show(tensor: dict[str, Any], widget: str = "onehistogram", **options: Any) -> Stub:
        made.append(Stub(page, {"tensor": tensor, "status": STATUS}, widget=widget, **options))
        return made[-1]

    yield show
    assert [stub.errors for stub in made] == [[] for _ in made]


def handle(page: Page) -> Locator:
    return page.get_by_role("slider", name="Clipping threshold")


def now(page: Page) -> float:
    return float(handle(page).get_attribute("aria-valuenow"))


def overrides(stub: Stub) -> list[dict[str, Any]]:
    stub.page.wait_for_function("window.sent.some((message) => message.do === 'override')")
    return [message for message in stub.sent() if message["do"] == "override"]


def grid_lines(page: Page) -> int:
    return page.locator(".qb-grid line").count()


def test_the_handle_is_a_slider_in_name_and_number(page: Page, show: Any, session: Session):
    show(view(session))
    slider = handle(page)
    largest = view(session)["histogram"]["max"]
    assert (float(slider.get_attribute("aria-valuemin")), now(page)) == (
        0,
        pytest.approx(view(session)["histogram"]["threshold"], rel=1e-5),
    )
    assert float(slider.get_attribute("aria-valuemax")) == pytest.approx(largest)
    assert "SQNR" in slider.get_attribute("aria-valuetext")
    slider.focus()
    before = now(page)
    for key, sign in (("ArrowDown", -1), ("ArrowUp", 1), ("ArrowLeft", -1), ("PageDown", -1)):
        page.keyboard.press(key)
        assert np.sign(now(page) - before) == sign
        before = now(page)
    page.keyboard.press("End")
    assert now(page) == pytest.approx(largest, rel=1e-5)
    assert "clips 0 %" in slider.get_attribute("aria-valuetext")


def test_keys_are_one_gesture_and_the_last_threshold_arrives(page: Page, show: Any, session: Session):
    stub = show(view(session))
    handle(page).focus()
    for _ in range(6):
        page.keyboard.press("ArrowDown")
    last = now(page)
    page.wait_for_function("(t) => Math.abs(window.sent.at(-1).settings?.threshold / t - 1) < 1e-4", arg=last)
    assert len({message["gesture"] for message in overrides(stub)}) == 1


def test_an_answer_of_the_kernel_does_not_take_the_handle_away(page: Page, show: Any, session: Session):
    tensor = view(session)
    stub = show(tensor)
    box = handle(page).bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] - 80, box["y"] + 40, steps=3)
    during = now(page)
    stub.update(tensor=view(session, threshold=tensor["histogram"]["threshold"] * 0.9))
    assert now(page) == during
    page.mouse.move(box["x"] - 120, box["y"] + 40, steps=3)
    page.mouse.up()
    assert now(page) < during
    assert overrides(stub)[-1]["settings"]["threshold"] == pytest.approx(now(page), rel=1e-4)


@pytest.mark.parametrize("how", ["buttons", "keys", "wheel", "drag"])
def test_zooming_shows_the_integers_and_back(page: Page, show: Any, session: Session, how: str):
    show(view(session))
    plot = page.locator(".qb-figure svg")
    box = plot.bounding_box()
    assert grid_lines(page) == 0
    expect(page.locator(".qb-hint")).to_have_text("zoom in to see the integers")
    at = box["x"] + 200, box["y"] + 120
    if how == "buttons":
        for _ in range(4):
            page.get_by_role("button", name="Zoom in").click()
    elif how == "keys":
        plot.focus()
        for _ in range(9):
            page.keyboard.press("+")
    elif how == "wheel":
        page.mouse.move(*at)
        page.mouse.wheel(0, -500)
        assert grid_lines(page) == 0  # nobody touched the plot: the wheel is the page's
        page.mouse.click(*at)
        for _ in range(8):
            page.mouse.wheel(0, -500)
    else:
        page.mouse.move(*at)
        page.mouse.down()
        page.mouse.move(at[0] + 60, at[1], steps=3)
        page.mouse.up()
    expect(page.locator(".qb-grid line").first).to_be_attached()
    scale, zero = session.encodings["relu_1"].qparams.scale, session.encodings["relu_1"].qparams.zero_point
    labels = [int(text) for text in page.locator(".qb-grid text").all_text_contents() if text.isdigit()]
    assert labels == sorted(labels)
    assert all(0 <= label <= 255 for label in labels)
    values = [
        float(text.replace("\u2212", "-"))
        for text in page.locator(".qb-axis").last.locator("text").all_text_contents()
        if text
    ]
    assert min(values) - 30 * scale < (labels[0] - zero) * scale < max(values) + 30 * scale
    if how == "keys":
        page.keyboard.press("0")
    else:
        page.get_by_role("button", name="Show all of it").click()
    assert grid_lines(page) == 0


def test_arrow_keys_take_finer_steps_the_closer_one_looks(page: Page, show: Any, session: Session):
    show(view(session))
    handle(page).focus()
    page.keyboard.press("ArrowDown")
    first, before = now(page), view(session)["histogram"]["threshold"]
    for _ in range(6):
        page.keyboard.press("+")
    page.keyboard.press("ArrowDown")
    assert 0 < first - now(page) < (before - first) / 5
    for _ in range(60):
        page.keyboard.press("ArrowDown")
    assert page.locator(".qb-handle.qb-off").count() == 0  # it stays in sight


def test_channels_are_chosen_by_keys_mouse_and_number(page: Page, show: Any, session: Session):
    tensor = view(session, "dense_1", "weight")
    channels = tensor["histogram"]["by_channel"]
    show(tensor)
    slider = page.get_by_role("slider", name="Channel")
    assert slider.get_attribute("aria-valuetext") == "all 8 channels"
    assert handle(page).count() == 0
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert slider.get_attribute("aria-valuenow") == "1"
    expect(page.locator(".qb-facts")).to_contain_text("Channel 1: 16 values")
    assert now(page) == pytest.approx(channels["thresholds"][1], rel=1e-5)
    box = slider.bounding_box()
    page.mouse.click(box["x"] + box["width"] - 16, box["y"] + 60)
    assert slider.get_attribute("aria-valuenow") == "7"
    page.get_by_role("spinbutton", name="Number of the channel").fill("3")
    page.keyboard.press("Enter")
    assert slider.get_attribute("aria-valuenow") == "3"
    weakest = int(np.argmin(channels["sqnr_db"]))
    page.get_by_role("button", name="worst").click()
    assert slider.get_attribute("aria-valuenow") == str(weakest)
    slider.focus()
    page.keyboard.press("Escape")
    assert slider.get_attribute("aria-valuetext") == "all 8 channels"


def test_the_threshold_of_one_channel_is_sent_with_those_of_the_others(page: Page, show: Any, session: Session):
    tensor = view(session, "dense_1", "weight")
    stub = show(tensor)
    page.get_by_role("slider", name="Channel").focus()
    page.keyboard.press("Home")
    field = page.get_by_role("spinbutton", name="Threshold")
    field.fill("0.125")
    field.press("Enter")
    others = tensor["histogram"]["by_channel"]["thresholds"][1:]
    assert overrides(stub)[-1]["settings"] == {"threshold": [0.125, *others]}
    stub.update(tensor=view(session, "dense_1", "weight"))
    assert page.get_by_role("slider", name="Channel").get_attribute("aria-valuenow") == "0"  # the same channel still


def test_what_a_threshold_costs_is_told_by_mouse_and_by_keys(page: Page, show: Any, session: Session):
    tensor = view(session)
    stub = show(tensor, "onecurves")
    told = page.locator(".qb-told")
    assert told.inner_text().startswith("Now ")
    mse = next(choice for choice in tensor["curves"]["choices"] if choice["label"] == "mse")
    row = page.get_by_role("button", name="percentile")
    row.focus()
    percentile = next(choice for choice in tensor["curves"]["choices"] if choice["label"].startswith("percentile"))
    assert "percentile 99.99" in told.inner_text()
    assert f"rounding error {percentile['rounding'] ** 0.5:.3g} rms" in told.inner_text()
    slider = page.get_by_role("slider", name="Threshold to look at")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    looked = float(slider.get_attribute("aria-valuenow"))
    assert looked < mse["threshold"]
    assert slider.get_attribute("aria-valuetext").startswith(told.inner_text()[:8])
    page.keyboard.press("Enter")
    assert overrides(stub)[-1]["settings"]["threshold"] == pytest.approx(looked, rel=1e-4)
    box = slider.bounding_box()
    page.mouse.move(box["x"] + 120, box["y"] + 100)
    assert told.inner_text().startswith("At ")
    page.mouse.move(2, 2)
    assert told.inner_text().startswith("Now ")


def test_a_click_lets_a_calibrator_choose(page: Page, show: Any, session: Session):
    stub = show(view(session), "onecurves")
    page.get_by_role("button", name="max", exact=False).first.click()
    assert overrides(stub)[-1]["settings"] == {"calibrator": {"name": "max"}}
    page.locator(".qb-choice text").last.click()
    assert overrides(stub)[-1]["settings"] == {"calibrator": {"name": "power_of_two"}}
    current = page.locator('.qb-choices button[aria-pressed="true"]')
    expect(current).to_contain_text("decides")
    assert page.locator(".qb-choice.qb-current").count() == 1


def test_per_channel_weights_say_why_they_have_no_curves(page: Page, show: Any, session: Session):
    show(view(session, "dense_1", "weight"), "onecurves")
    expect(page.locator(".qb-absent")).to_contain_text("Each channel has a threshold of its own")


def bins(start: float, width: float, count: int, zeros: int, value: float) -> dict[str, Any]:
    """All values in one bin."""
    values = {"min": value, "max": value, "count": count, "zeros": zeros, "threshold": abs(value)}
    return values | {"start": start, "width": width, "counts": [count]}


BAD = {
    "constant": bins(0.2998046875, 2**-13, 7, 0, 0.3),
    "zeros": bins(0.0, 1e-40, 7, 7, 0.0) | {"scale": 1.0},
    "one value": bins(-2.0, 2**-10, 1, 0, -2.0),
    "empty": {"counts": [], "count": 0, "zeros": 0},
    "infinite scale": {"scale": "inf", "threshold": "inf", "high": "inf", "low": "-inf"},
    "far threshold": {"threshold": 1e6, "scale": 1e6 / 255},
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("widget", ["onehistogram", "onecurves"])
def test_odd_tensors_are_drawn(page: Page, show: Any, session: Session, widget: str, case: str):
    stub = show(view(session, **BAD[case]), widget)
    assert page.get_by_role("alert").is_hidden()
    if widget == "onehistogram":
        handle(page).focus()
        page.keyboard.press("ArrowUp")
        page.keyboard.press("+")
    drawn = page.locator("svg").first.evaluate("svg => svg.outerHTML")
    assert "NaN" not in drawn
    stub.update(tensor=view(session))
    assert page.get_by_role("alert").is_hidden()


def test_one_channel_and_two_thousand(page: Page, show: Any, session: Session):
    weight = view(session, "dense_1", "weight")
    channels = weight["histogram"]["by_channel"]
    many = {key: value * 250 if isinstance(value, list) else value for key, value in channels.items()}
    show(weight | {"histogram": weight["histogram"] | {"by_channel": many, "channels": 2000}})
    slider = page.get_by_role("slider", name="Channel")
    slider.focus()
    page.keyboard.press("End")
    assert slider.get_attribute("aria-valuenow") == "1999"
    page.get_by_role("button", name="sorted").click()
    page.get_by_role("button", name="log range").click()
    one = {key: value[:1] if isinstance(value, list) else value for key, value in channels.items()}
    stub = show(
        weight | {"histogram": weight["histogram"] | {"by_channel": one, "channels": 1, "scale": 0.01, "zero_point": 0}}
    )
    expect(page.locator(".qb-channels")).to_contain_text("range of the channel")
    assert handle(page).count() == 1
    assert stub.errors == []


@pytest.mark.parametrize("width", [1400, 900, 420])
def test_nothing_overflows(page: Page, show: Any, session: Session, width: int):
    for widget, tensor in (("onehistogram", view(session, "dense_1", "weight")), ("onecurves", view(session))):
        show(tensor, widget, width=width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_what_the_widgets_send_is_what_the_stub_is_fed(session: Session):
    assert Histogram(session, "relu_1").tensor == view(session)
    assert DivergenceCurves(session, "relu_1").tensor == view(session)
