from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from qbench.calibration.loss import loss
from qbench.session.session import Session
from qbench.views import State
from qbench.widgets import Workbench
from tests.browser.stub import Stub
from tests.hostile import hostile_session
from tests.networks import mlp, samples

TRAITS = (
    "layers",
    "tensor",
    "values",
    "result",
    "profile",
    "repairs",
    "front",
    "graph",
    "boxes",
    "history",
    "versions",
    "exactness",
    "height",
    "status",
)
Y = np.random.default_rng(6).integers(0, 5, 30)


def data(bench: Workbench) -> dict[str, Any]:
    return {name: getattr(bench, name) for name in TRAITS}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    folder: Path = tmp_path_factory.mktemp("out")
    return Workbench(Session(mlp(), samples(50), (samples(30, seed=5), Y)), layer="relu_1", folder=folder)


@pytest.fixture
def stub(page: Page, bench: Workbench):
    made = Stub(page, data(bench))
    yield made
    assert made.errors == []


def wait_for_message(stub: Stub, do: str) -> dict[str, Any]:
    stub.page.wait_for_function("(what) => window.sent.some((message) => message.do === what)", arg=do)
    return next(message for message in reversed(stub.sent()) if message["do"] == do)


def test_dragging_the_handle_redraws_here_and_is_one_gesture_to_the_kernel(stub: Stub, bench: Workbench):
    handle = stub.page.get_by_role("slider", name="Clipping threshold")
    largest = bench.tensor["histogram"]["max"]
    box = handle.bounding_box()
    stub.page.mouse.move(box["x"] + 9, box["y"] + 30)
    stub.page.mouse.down()
    stub.page.mouse.move(box["x"] - 91, box["y"] + 30, steps=4)
    during = float(handle.get_attribute("aria-valuenow"))
    assert 0 < during < largest
    assert f"Threshold {during:.4g}"[:14] in stub.page.locator(".qb-live").inner_text()
    stub.page.mouse.up()
    wait_for_message(stub, "override")
    assert stub.sent()[-1]["settings"]["threshold"] == pytest.approx(during, rel=1e-4)
    assert len({message["gesture"] for message in stub.sent()}) == 1


def test_what_a_drag_promises_is_what_the_histogram_says(stub: Stub, bench: Workbench):
    state = State.of(bench._session)
    statistics, threshold = state.statistics["relu_1"], bench.tensor["histogram"]["max"] / 2
    grid = state.settings("relu_1").grid
    expected = loss(statistics, grid.qparams(statistics, threshold))
    field = stub.page.get_by_role("spinbutton", name="Threshold")
    handle = stub.page.get_by_role("slider", name="Clipping threshold")
    handle.focus()
    for _ in range(5):
        stub.page.keyboard.press("PageDown")
    assert float(field.input_value()) == pytest.approx(threshold, rel=0.01)
    text = stub.page.locator(".qb-live").inner_text()
    assert float(text.split("alone ")[1].split(" dB")[0]) == pytest.approx(expected.sqnr_db, abs=0.5)
    scale = float(stub.page.get_by_role("spinbutton", name="Scale").input_value())
    assert scale == pytest.approx(grid.qparams(statistics, threshold).scales[0], rel=0.01)


@pytest.mark.parametrize(("label", "key"), [("Threshold", "threshold"), ("Scale", "scale")])
def test_numbers_can_be_typed(stub: Stub, label: str, key: str):
    field = stub.page.get_by_role("spinbutton", name=label)
    field.fill("0.125")
    field.press("Enter")
    assert wait_for_message(stub, "override")["settings"] == {key: 0.125}
    field.fill("-3")
    field.press("Enter")
    assert len(stub.sent()) == 1
    assert float(field.input_value()) > 0


def test_a_number_that_is_being_typed_is_not_replaced_by_what_is_drawn(stub: Stub, bench: Workbench):
    field = stub.page.get_by_role("spinbutton", name="Threshold")
    before = field.input_value()
    field.fill("0.125")
    stub.update(tensor=bench.tensor)
    field.press("Enter")
    assert wait_for_message(stub, "override")["settings"] == {"threshold": 0.125}
    stub.update(tensor=bench.tensor)
    expect(field).to_have_value(before)
    field.fill("0.5")
    field.fill(before)  # no change after all
    field.blur()
    stub.update(tensor={**bench.tensor, "histogram": {**bench.tensor["histogram"], "threshold": 0.25}})
    expect(field).to_have_value("0.25")


def test_a_calibrator_can_be_chosen_and_a_layer_kept_in_float(stub: Stub):
    stub.page.get_by_role("button", name="percentile").click()
    calibrator = {"name": "percentile", "percentile": 99.99}
    assert stub.sent()[-1]["settings"] == {"calibrator": calibrator}
    stub.page.get_by_label("keep this layer in float").check()
    assert stub.sent()[-1]["settings"] == {"keep_float": True}


def test_type_scales_and_symmetry_of_the_chosen_tensor_are_set_where_it_is_shown(stub: Stub, bench: Workbench):
    values = stub.page.locator(".qb-values")
    values.get_by_label("type").select_option("int16")
    assert stub.sent()[-1]["settings"] == {"dtype": "int16"}
    values.get_by_label("range").select_option("symmetric")
    assert (stub.sent()[-1]["layer"], stub.sent()[-1]["settings"]) == ("relu_1", {"symmetric": True})
    expect(values.get_by_label("type")).to_have_value("")


def test_buttons_say_what_they_want(stub: Stub, bench: Workbench):
    expect(stub.page.get_by_role("button", name="Undo")).to_be_disabled()
    stub.update(status={**bench.status, "undo": "override relu_1", "redo": "reset relu_1"})
    for name, do in (("Undo", "undo"), ("Redo", "redo"), ("Re-run", "run")):
        stub.page.get_by_role("button", name=name).click()
        assert stub.sent()[-1] == {"do": do, "where": "top"}
    stub.page.get_by_label("Before", exact=True).select_option("0")
    assert stub.sent()[-1] == {"do": "compare", "before": 0, "after": bench.graph["after"], "where": "graph"}


def test_errors_are_shown_and_can_be_closed(stub: Stub, bench: Workbench):
    alert = stub.page.get_by_role("alert")
    expect(alert).to_be_hidden()
    stub.update(status={**bench.status, "error": {"text": "no <b>such</b> thing", "where": "", "can_undo": False}})
    expect(alert).to_contain_text("no <b>such</b> thing")
    alert.get_by_role("button", name="Close").click()
    assert stub.sent()[-1] == {"do": "dismiss"}


def test_a_layer_in_float_says_why(page: Page, bench: Workbench):
    bench.select("y")
    stub = Stub(page, data(bench))
    bench.select("relu_1")
    expect(page.locator(".qb-absent")).to_contain_text("softmax stays in float")
    expect(page.locator(".qb-figure")).to_be_hidden()
    stub.update(tensor=bench.tensor)
    expect(page.locator(".qb-figure")).to_be_visible()
    assert stub.errors == []


def test_per_channel_weights_have_no_handle(page: Page, bench: Workbench):
    bench.select("dense_1", "weight")
    stub = Stub(page, data(bench))
    bench.select("relu_1")
    expect(page.locator(".qb-facts")).to_contain_text("a scale for each of 8 channels")
    assert page.get_by_role("slider", name="Clipping threshold").count() == 0
    assert stub.errors == []


def test_names_from_models_are_only_text(page: Page):
    session, names = hostile_session()
    bench = Workbench(session)
    stub = Stub(page, data(bench))
    for name in names:
        bench.select(name)
        stub.update(tensor=bench.tensor)
    bench._receive(None, {"do": "select", "layer": "<img src=y onerror='window.hacked=1'>"}, None)
    stub.update(status=bench.status)
    expect(page.get_by_role("alert")).to_contain_text("<img")
    assert page.evaluate("window.hacked") is None
    assert page.locator("#here script, #here img, #here b").count() == 0
    assert stub.errors == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1500, 900, 480])
def test_nothing_overflows(page: Page, bench: Workbench, width: int, theme: str):
    Stub(page, data(bench), width=width, theme=theme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    above, below = page.get_by_role("grid", name="Layers").bounding_box(), page.locator(".qb-tensor").bounding_box()
    assert above["y"] + above["height"] <= below["y"]


def test_a_view_that_goes_leaves_no_listener(stub: Stub):
    assert stub.page.evaluate("window.listening()") == len(TRAITS) + 2  # and that the kernel has died, said in two ways
    stub.page.evaluate("window.remove()")
    assert stub.page.evaluate("window.listening()") == 0


def test_a_busy_kernel_is_said_until_it_answers(page: Page, bench: Workbench):
    page.clock.install()
    stub = Stub(page, data(bench))
    view, busy = page.locator(".qb"), page.get_by_text("The kernel is busy")
    expect(view).to_have_attribute("data-busy", "true")  # it was said that the view is open
    stub.update(status=bench.status)  # which says nothing of that
    expect(view).to_have_attribute("data-busy", "true")
    stub.answer(bench.status)
    expect(view).to_have_attribute("data-busy", "false")
    page.clock.run_for(10_000)
    expect(busy).to_be_hidden()
    page.get_by_role("button", name="Re-run").click()
    page.clock.run_for(1000)
    expect(busy).to_be_hidden()
    page.clock.run_for(4000)
    expect(busy).to_be_visible()
    stub.answer(bench.status)
    expect(busy).to_be_hidden()
    assert stub.errors == []


def test_a_dead_kernel_is_said_and_how_to_go_on(page: Page, bench: Workbench):
    stub = Stub(page, data(bench) | {"status": bench.status | {"is_busy": True, "path": "a <b>.session"}})
    page.evaluate("window.happen('comm_live_update')")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text('qb.Session.resume("a <b>.session")')
    alert.get_by_role("button", name="Copy the line").click()
    line = 'import qbench as qb; session = qb.Session.resume("a <b>.session"); qb.Workbench(session)'
    assert page.evaluate("String(getSelection())") == line
    expect(page.get_by_role("progressbar")).to_be_hidden()
    expect(page.get_by_role("button", name="Re-run")).to_be_disabled()
    before = len(stub.sent())
    page.get_by_role("grid", name="Layers").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Control+z")
    assert len(stub.sent()) == before
    assert stub.errors == []
