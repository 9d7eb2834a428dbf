from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from qbench.session.session import Session
from qbench.views import State, layer_table
from tests.browser.stub import STATUS, Stub
from tests.networks import mlp, samples

OWN = (40.0, 12.0, 31.5, None, 22.0, 50.0, 8.0, 33.0, None)


@pytest.fixture(scope="module")
def view() -> dict[str, Any]:
    session = Session(mlp(), samples(20), samples(20, seed=3))
    session.override("relu_0", threshold=0.5)
    state = State.of(session)
    layers = tuple(
        replace(layer, sqnr_db=45.0, own_sqnr_db=own, inherited_sqnr_db=own and own + 3, ms=0.25)
        for layer, own in zip(state.report.by_layer, OWN, strict=True)
    )
    return layer_table(replace(state, report=replace(state.report, by_layer=layers))).to_dict()


@pytest.fixture
def folded(page: Page, view: dict[str, Any]):
    made = Stub(page, {"layers": view, "status": STATUS}, widget="layertable")
    yield made
    assert made.errors == []


@pytest.fixture
def stub(folded: Stub) -> Stub:
    folded.page.get_by_label("unfold", exact=True).check()
    return folded


def rows(stub: Stub) -> Locator:
    return stub.page.locator(".qb-body [role=row]")


def names(stub: Stub) -> list[str]:
    both_ends = (
        "all => all.map((one) => ['start', 'end'].map((k) => one.querySelector('.qb-' + k).textContent).join(''))"
    )
    return rows(stub).locator(".qb-name").evaluate_all(both_ends)


def show(stub: Stub, *columns: str) -> None:
    chooser = stub.page.locator(".qb-columns")
    chooser.locator("summary").click()
    for name in columns:
        chooser.get_by_label(name, exact=True).check()
    stub.page.keyboard.press("Escape")
    expect(chooser.get_by_role("group")).to_be_hidden()


def looked(stub: Stub, name: str) -> None:
    stub.page.wait_for_function("(name) => window.sent.some((m) => m.do === 'select' && m.layer === name)", arg=name)
    expect(rows(stub).filter(has_text=name)).to_have_attribute("aria-current", "true")


def chosen(stub: Stub) -> list[str]:
    return [name for name, row in zip(names(stub), rows(stub).all(), strict=True)
            if row.get_attribute("aria-selected") == "true"]  # fmt: skip


def test_every_layer_has_a_row_with_what_it_is(stub: Stub, view: dict[str, Any]):
    assert names(stub) == [row["name"] for row in view["rows"]]
    grid = stub.page.get_by_role("grid", name="Layers")
    assert grid.get_attribute("aria-rowcount") == str(len(view["rows"]) + 1)
    relu = rows(stub).nth(2)
    show(stub, "Output", "Bits")
    for text in ("relu_0", "edited", "nn.relu", "N\u00d716", "uint8", "31.5", "34.5", "0.25 ms"):
        expect(relu).to_contain_text(text)
    expect(rows(stub).first.locator(".qb-col-runs_as")).to_have_text("uint8\u00d7int8")
    bits = rows(stub).locator(".qb-col-bits").all_inner_texts()
    assert bits[:3] == ["\u2013", "\u2013", "8"]  # within a fused step are sums of 32
    expect(rows(stub).nth(6)).to_contain_text("worst")
    expect(rows(stub).last).to_contain_text("softmax stays in float")


def test_a_fused_step_is_one_row_that_unfolds(folded: Stub, view: dict[str, Any]):
    assert names(folded) == ["dense_0", "dense_1", "dense_2", "y"]
    first = rows(folded).first
    for text in ("nn.dense + bias_add + relu", "edited", "31.5", "0.75 ms"):
        expect(first).to_contain_text(text)
    expect(rows(folded).nth(2)).to_contain_text("worst")
    assert first.get_by_role("button").get_attribute("aria-expanded") == "false"
    first.get_by_role("button", name="Unfold the 3 layers of this step").click()
    assert names(folded) == ["dense_0", "bias_0", "relu_0", "dense_1", "dense_2", "y"]
    expect(folded.page.get_by_text("9 layers")).to_be_visible()
    rows(folded).nth(1).click()
    looked(folded, "bias_0")
    folded.page.keyboard.press("ArrowLeft")
    assert names(folded) == ["dense_0", "dense_1", "dense_2", "y"]
    expect(first).to_have_attribute("aria-current", "true")
    first.get_by_role("checkbox").click()
    bar = folded.page.get_by_role("group", name="Edit the selected layers")
    expect(bar).to_contain_text("3 layers selected")
    bar.get_by_role("button", name="Keep in float").click()
    assert folded.sent()[-1]["layers"] == ["dense_0", "bias_0", "relu_0"]
    folded.page.get_by_role("searchbox").fill("relu_1")
    assert names(folded) == ["dense_1"]


def test_columns_are_chosen_and_explained(folded: Stub):
    heads = folded.page.locator(".qb-heads [role=columnheader] button span:first-child")
    before = heads.all_text_contents()
    show(folded, "Worst channel", "Threshold")
    assert [head for head in heads.all_text_contents() if head not in before] == ["Threshold", "Worst channel"]
    folded.page.get_by_role("columnheader", name="Own SQNR").get_by_role("button").focus()
    expect(folded.page.locator(".qb-tip")).to_contain_text("noise that the layer makes itself")
    folded.page.get_by_role("searchbox").focus()
    expect(folded.page.locator(".qb-tip")).to_be_hidden()


def test_nothing_is_cut_at_900_px(page: Page, view: dict[str, Any]):
    stub = Stub(page, {"layers": view, "status": STATUS}, widget="layertable", width=900)
    grid = page.get_by_role("grid")
    assert grid.evaluate("one => one.scrollWidth <= one.clientWidth")
    assert stub.errors == []


def test_sorting_shows_the_first_row(page: Page, view: dict[str, Any]):
    many = [{**view["rows"][0], "name": f"layer_{i}", "group": f"layer_{i}"} for i in range(200)]
    stub = Stub(page, {"layers": {**view, "rows": many}, "status": STATUS}, widget="layertable")
    rows(stub).first.click()
    page.keyboard.press("End")
    looked(stub, "layer_199")
    page.get_by_role("columnheader", name="Own SQNR").get_by_role("button").click()
    assert page.get_by_role("grid").evaluate("one => one.scrollTop") == 0


def test_bars_are_longer_for_more_error_and_differ_by_more_than_colour(stub: Stub):
    widths = [bar.bounding_box()["width"] for bar in stub.page.locator(".qb-body .qb-own").all()]
    measured = [own for own in OWN if own is not None]
    assert sorted(widths) == [width for _, width in sorted(zip(measured, widths, strict=True), reverse=True)]
    image = "one => getComputedStyle(one).backgroundImage"
    assert stub.page.locator(".qb-body .qb-inherited").first.evaluate(image) != "none"
    assert stub.page.locator(".qb-body .qb-own").first.evaluate(image) == "none"


def test_columns_sort_the_worst_first_then_the_other_way_then_as_in_the_graph(stub: Stub, view: dict[str, Any]):
    head = stub.page.get_by_role("columnheader", name="Own SQNR")
    graph_order = names(stub)
    by_error = [name for own, name in sorted(zip(OWN, graph_order, strict=True), key=lambda one: one[0] or 1e9)]
    for state, expected in (("ascending", by_error), ("descending", None), ("none", graph_order)):
        head.get_by_role("button").click()
        assert head.get_attribute("aria-sort") == state
        if expected:
            assert names(stub) == expected
    show(stub, "MACs")
    stub.page.get_by_role("columnheader", name="MACs").get_by_role("button").click()
    macs = {row["name"]: row["macs"] for row in view["rows"]}
    assert [macs[name] for name in names(stub)] == sorted(macs.values(), reverse=True)
    stub.page.keyboard.press("ArrowRight")
    expect(stub.page.get_by_role("columnheader", name="Time").get_by_role("button")).to_be_focused()
    assert stub.page.locator(".qb-heads [tabindex='0']").count() == 1


def test_filters_by_words_and_by_kind(stub: Stub, view: dict[str, Any]):
    search = stub.page.get_by_role("searchbox")
    search.fill("dense  NN.")
    assert names(stub) == ["dense_0", "dense_1", "dense_2"]
    expect(stub.page.get_by_role("status").filter(has_text="3 of 9 layers")).to_be_visible()
    search.fill("softmax stays")
    assert names(stub) == ["y"]
    search.fill("no such layer")
    expect(stub.page.get_by_text("No layer fits the filter.")).to_be_visible()
    stub.page.get_by_role("button", name="Show all layers").click()
    assert len(names(stub)) == 9
    kinds = {"in float": ["y"], "edited": ["relu_0"], "own SQNR below 25 dB": ["bias_0", "bias_1", "dense_2"]}
    for label, expected in kinds.items():
        stub.page.get_by_label("Which layers").select_option(label)
        assert names(stub) == expected


def test_layers_are_chosen_by_mouse_and_by_keys(stub: Stub):
    rows(stub).filter(has_text="dense_0").click()
    looked(stub, "dense_0")
    for key, name in (("ArrowDown", "bias_0"), ("End", "y"), ("ArrowUp", "bias_2"), ("Home", "dense_0")):
        stub.page.keyboard.press(key)
        looked(stub, name)
    active = stub.page.get_by_role("grid").get_attribute("aria-activedescendant")
    assert stub.page.locator(f"#{active}").get_attribute("aria-current") == "true"


def test_layers_are_selected_by_keys(stub: Stub):
    grid = stub.page.get_by_role("grid")
    rows(stub).filter(has_text="relu_0").click()
    stub.page.keyboard.press("Shift+ArrowDown")
    stub.page.keyboard.press("Shift+ArrowDown")
    assert chosen(stub) == ["relu_0", "dense_1", "bias_1"]
    stub.page.keyboard.press("Shift+ArrowUp")
    assert chosen(stub) == ["relu_0", "dense_1"]
    stub.page.keyboard.press(" ")
    assert chosen(stub) == ["relu_0"]
    stub.page.keyboard.press("Escape")
    assert chosen(stub) == []
    stub.page.keyboard.press("Control+a")
    assert len(chosen(stub)) == 9
    expect(grid).to_be_focused()
    stub.page.keyboard.press("/")
    expect(stub.page.get_by_role("searchbox")).to_be_focused()


def test_layers_are_selected_by_mouse(stub: Stub):
    rows(stub).nth(1).get_by_role("checkbox").click()
    rows(stub).nth(4).get_by_role("checkbox").click(modifiers=["Shift"])
    assert chosen(stub) == ["bias_0", "relu_0", "dense_1", "bias_1"]
    rows(stub).nth(2).click(modifiers=["Control"])
    assert chosen(stub) == ["bias_0", "dense_1", "bias_1"]
    everyone = stub.page.get_by_label("Select all layers shown")
    assert everyone.evaluate("one => one.indeterminate")
    everyone.click()
    assert len(chosen(stub)) == 9
    stub.page.get_by_role("button", name="Clear selection").click()
    assert chosen(stub) == []
    expect(stub.page.get_by_role("group", name="Edit the selected layers")).to_be_hidden()


def test_selected_layers_are_edited_at_once(stub: Stub):
    bar = stub.page.get_by_role("group", name="Edit the selected layers")
    stub.page.get_by_role("grid").focus()
    stub.page.keyboard.press("Control+a")
    expect(bar).to_contain_text("9 layers selected")
    expect(bar.get_by_role("button", name="Apply")).to_be_disabled()
    bar.get_by_label("calibrator").select_option("kl_nvidia")
    bar.get_by_label("range").select_option("symmetric")
    expect(bar).to_contain_text("8 of them have quantized activations")
    bar.get_by_role("button", name="Apply").click()
    message = stub.sent()[-1]
    assert (message["do"], message["part"], message["where"]) == ("override_many", "activation", "layers")
    assert message["settings"]["symmetric"] is True
    assert message["settings"]["calibrator"]["name"] == "kl"
    assert message["layers"] == ["dense_0", "dense_1", "dense_2"]  # which stand for their steps

    bar.get_by_label("Of which tensors").select_option("weights")
    bar.get_by_label("scales").select_option("per tensor")
    bar.get_by_label("type").select_option("int4")
    bar.get_by_role("button", name="Apply").click()
    message = stub.sent()[-1]
    assert message["layers"] == ["dense_0", "dense_1", "dense_2"]
    assert message["settings"] == {"axis": "tensor", "dtype": "int4"}
    bar.get_by_role("button", name="Keep in float").click()
    assert stub.sent()[-1]["settings"] == {"keep_float": True}
    bar.get_by_role("button", name="Take back edits").click()
    assert (stub.sent()[-1]["do"], len(stub.sent()[-1]["layers"])) == ("reset_many", 9)


def test_selection_sort_and_filter_survive_new_numbers(stub: Stub, view: dict[str, Any]):
    stub.page.get_by_role("columnheader", name="Own SQNR").get_by_role("button").click()
    stub.page.get_by_role("searchbox").fill("dense")
    rows(stub).nth(1).get_by_role("checkbox").click()
    before, selected = names(stub), chosen(stub)
    stub.update(layers={**view, "rows": [{**row, "ms": 9.5} for row in view["rows"]]})
    assert (names(stub), chosen(stub)) == (before, selected)
    expect(rows(stub).first).to_contain_text("9.5 ms")


def test_an_error_is_shown_in_the_table_with_the_way_out(stub: Stub):
    stub.update(status={**STATUS, "error": {"text": "it <i>went</i> wrong", "where": "layers", "can_undo": True}})
    alert = stub.page.locator(".qb-layers").get_by_role("alert")
    expect(alert).to_contain_text("it <i>went</i> wrong")
    alert.get_by_role("button", name="Undo").click()
    assert stub.sent()[-1] == {"do": "undo"}


def test_five_hundred_layers_are_smooth(page: Page, view: dict[str, Any]):
    many = [{**view["rows"][i % 9], "name": f"layer_{i}", "group": f"layer_{i}"} for i in range(500)]
    stub = Stub(page, {"layers": {**view, "rows": many, "worst": "layer_3"}, "status": STATUS}, widget="layertable")
    assert rows(stub).count() < 60
    rows(stub).first.click()
    page.keyboard.press("End")
    looked(stub, "layer_499")
    expect(page.get_by_text("layer_499")).to_be_in_viewport()
    assert rows(stub).count() < 60
    page.keyboard.press("Control+a")
    expect(page.get_by_text("500 layers selected")).to_be_visible()
    page.get_by_role("grid").evaluate("grid => { grid.scrollTop = 3000; }")
    expect(rows(stub).filter(has_text="layer_118")).to_be_visible()
    active = page.get_by_role("grid").get_attribute("aria-activedescendant")
    assert page.locator(f"#{active}").count() == 1
    assert stub.errors == []


def test_holding_a_key_asks_the_kernel_now_and_then_and_late_answers_do_not_count(page: Page, view: dict[str, Any]):
    many = [{**view["rows"][i % 9], "name": f"layer_{i}", "group": f"layer_{i}"} for i in range(60)]
    stub = Stub(page, {"layers": {**view, "rows": many}, "status": STATUS}, widget="layertable")
    rows(stub).first.click()
    page.evaluate(
        """() => { for (let i = 0; i < 40; i++) document.querySelector('[role=grid]').dispatchEvent(
          new KeyboardEvent('keydown', { key: 'ArrowDown', bubbles: true })); }"""
    )
    looked(stub, "layer_40")
    assert len(stub.sent()) < 20


def test_numbers_and_room_do_not_scroll_what_is_being_read(page: Page, view: dict[str, Any]):
    many = [{**view["rows"][i % 9], "name": f"layer_{i}", "group": f"layer_{i}"} for i in range(200)]
    shown = {**view, "rows": many}
    stub = Stub(page, {"layers": shown, "status": STATUS}, widget="layertable")
    grid = page.get_by_role("grid")
    rows(stub).first.click()
    grid.hover()
    page.mouse.wheel(0, 2000)
    page.wait_for_function("() => document.querySelector('[role=grid]').scrollTop === 2000")
    stub.update(layers={**shown, "rows": [{**row, "ms": 1.5} for row in many]})
    page.set_viewport_size({"width": 1100, "height": 900})
    expect(rows(stub).first).to_contain_text("1.5 ms")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert grid.evaluate("one => one.scrollTop") == 2000


def test_a_model_without_layers_and_one_with_a_single_layer(page: Page, view: dict[str, Any]):
    stub = Stub(page, {"layers": {**view, "rows": [], "worst": None}, "status": STATUS}, widget="layertable")
    expect(page.get_by_text("0 layers", exact=True)).to_be_visible()
    page.get_by_role("grid").focus()
    page.keyboard.press("End")
    stub.update(layers={**view, "rows": view["rows"][:1], "worst": None})
    assert len(names(stub)) == 1
    assert stub.errors == []
