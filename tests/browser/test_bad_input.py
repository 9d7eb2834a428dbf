"""The workbench in a browser with what nobody wishes for: nothing breaks, and nothing leaves its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from qbench import views
from qbench.ir.build import build, rebuild
from qbench.ir.frozen import Constant
from qbench.ir.types import TensorType
from qbench.session.session import Session
from qbench.widgets import Workbench
from tests.browser.stub import Stub
from tests.browser.test_accessibility import synced
from tests.hostile import hostile_session
from tests.networks import mlp, node, samples

Data = dict[str, Any]


def usual() -> Data:
    return synced(Workbench(Session(mlp(), samples(20), samples(20, seed=5)), layer="relu_1"))


def many_rows() -> Data:
    data = usual()
    rows = [{**data["layers"]["rows"][i % 9], "name": f"layer_{i}", "group": f"layer_{i}"} for i in range(500)]
    return data | {"layers": {**data["layers"], "rows": rows}}


def equal_values() -> Data:
    graph = mlp()
    constants = {**graph.constants, "dense_1.weight": Constant(np.full((8, 16), 3.0, np.float32))}
    bench = Workbench(Session(rebuild(graph, constants=constants), np.full((20, 12), 3.0, np.float32)))
    bench.select("dense_1", "weight")
    return synced(bench)


def no_numbers() -> Data:
    session = Session(mlp(), samples(20), samples(20, seed=5))
    bench = Workbench(session, layer="relu_1")
    report, nan = session.run(progress=False), float("nan")
    layers = (replace(one, sqnr_db=nan, own_sqnr_db=nan, inherited_sqnr_db=nan) for one in report.by_layer)
    broken = replace(report, by_layer=tuple(layers), output=replace(report.output, sqnr_db=nan))
    view = views.workbench_view(replace(views.State.of(session), report=broken), "relu_1")
    return synced(bench) | {name: getattr(view, name).to_dict() for name in ("layers", "result", "profile")}


def one_layer() -> Data:
    weight = {"w": Constant(np.ones((3, 12), np.float32))}
    graph = build("one", {"x": TensorType(("N", 12), "float32")}, ["y"], [node("nn.dense", ["x", "w"], "y")], weight)
    return synced(Workbench(Session(graph, samples(9))))


def many_channels() -> Data:
    bench = Workbench(Session(mlp(sizes=(12, 3000, 5)), samples(9)))
    bench.select("dense_0", "weight")
    return synced(bench)


def long_names() -> Data:
    session, names = hostile_session()
    return synced(Workbench(session, layer=names[-1]))


@pytest.mark.parametrize(
    "make", [many_rows, equal_values, no_numbers, one_layer, many_channels, long_names], ids=lambda make: make.__name__
)
def test_what_nobody_wishes_for_is_drawn(page: Page, make: Callable[[], Data]):
    stub = Stub(page, make() | {"height": 800})
    table = page.get_by_role("grid", name="Layers")
    for name in ("Boxes", "Graph", "Chosen layer"):
        page.get_by_role("tab", name=name, exact=True).click()
    table.focus()
    page.keyboard.press("End")
    expect(table.locator("[aria-current]")).to_be_visible()
    page.get_by_role("searchbox", name="Filter layers").fill("matches nothing")
    expect(page.get_by_text("No layer fits the filter")).to_be_visible()
    for width in (450, 900, 2880):  # a window of 900 px at 200 %, and one of 1440 px at 50 %
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    drawn = page.evaluate("[...document.querySelectorAll('svg *')].map(one => [...one.attributes].map(a => a.value))")
    assert not any("NaN" in value for values in drawn for value in values)
    assert page.evaluate("window.hacked") is None
    assert stub.errors == []


def test_the_theme_may_change_in_the_middle_of_a_drag(page: Page):
    stub = Stub(page, usual() | {"height": 800})
    handle = page.get_by_role("slider", name="Clipping threshold")
    box = handle.bounding_box()
    page.mouse.move(box["x"] + 9, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] - 51, box["y"] + 30, steps=2)
    page.evaluate("document.body.style.setProperty('--jp-layout-color1', '#111')")
    page.mouse.move(box["x"] - 91, box["y"] + 30, steps=2)
    page.mouse.up()
    wanted = float(handle.get_attribute("aria-valuenow"))
    page.wait_for_function("() => window.sent.at(-1)?.do === 'override'")
    assert stub.sent()[-1]["settings"]["threshold"] == pytest.approx(wanted, rel=1e-4)
    assert page.locator(".qb").evaluate("one => getComputedStyle(one).backgroundColor") == "rgb(17, 17, 17)"
    assert stub.errors == []


def test_views_on_one_page_share_no_name(page: Page):
    stub = Stub(page, usual())
    names = "[...document.querySelectorAll('[id^=qb-]')].map(one => one.id.replace(/-[0-9]+$/, ''))"
    first = set(page.evaluate(names))
    page.evaluate("window.remove()")
    assert first and first.isdisjoint(Stub(page, usual()).page.evaluate(names))
    assert stub.errors == []
