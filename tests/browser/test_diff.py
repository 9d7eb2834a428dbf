"""The graph before and after, against a model that stands in for the kernel."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from qbench.session.session import Session
from qbench.views import DiffLine, IRDiffView, State, ir_diff_view
from tests.browser.stub import Stub
from tests.networks import mlp, samples

STATUS = {"is_busy": False, "message": "", "progress": None, "error": None}
ROWS = ".qb-lines .qb-line:not(.qb-diff-head)"


@pytest.fixture(scope="module")
def state() -> State:
    session = Session(mlp(), samples(20))
    session.run()
    return State.of(session)


@pytest.fixture
def show(page: Page):
    made: list[Stub] = []

    def show(graph: IRDiffView, layer: str | None = None, **options: Any) -> Stub:
        data = {"graph": graph.to_dict(), "layer": layer, "status": STATUS}
        made.append(Stub(page, data, widget="oneirdiff", **options))
        return made[-1]

    yield show
    assert [stub.errors for stub in made] == [[] for _ in made]


def long(count: int, every: int = 1) -> IRDiffView:
    """A view of so many lines, of which each `every`-th differs."""
    lines = [
        DiffLine(
            "changed" if i % every == 0 else "same", "node", f"%v{i} = nn.relu(%v{i - 1});",
            f"%v{i} = {'clip' if i % every == 0 else 'nn.relu'}(%v{i - 1});", f"layer_{i}", ("op: nn.relu -> clip",),
        )
        for i in range(count)
    ]  # fmt: skip
    return IRDiffView(("source", "one", "two"), 0, 2, tuple(lines))


def test_what_differs_is_marked_by_signs_words_and_underlines(page: Page, show: Any, state: State):
    view = ir_diff_view(state)
    show(view)
    row = page.locator(ROWS, has_text="%dense_0 = nn.dense")
    expect(row.locator("[role=gridcell]").first).to_have_text("~")
    assert row.locator("[role=gridcell]").first.get_attribute("aria-label") == "changed"
    assert "nn.dense" in row.locator("code").first.locator("mark").all_text_contents()
    assert "integer.dense" in row.locator("code").last.locator("mark").all_text_contents()
    expect(page.locator(ROWS, has_text="%x.quantized = qnn.quantize").locator("[role=gridcell]").first).to_have_text(
        "+"
    )
    row.hover()
    expect(page.locator(".qb-notes")).to_contain_text("op: nn.dense -> integer.dense")
    header = page.get_by_role("columnheader").all_text_contents()
    assert header[1:] == [f"before: {view.steps[view.before]}", f"after: {view.steps[view.after]}"]


def test_a_line_selects_its_layer_and_the_layer_its_lines(page: Page, show: Any, state: State):
    stub = show(ir_diff_view(state))
    page.locator(ROWS, has_text="%dense_1 =").click()
    assert stub.sent()[-1] == {"do": "select", "layer": "dense_1"}
    assert page.locator(".qb-here").count() > 0
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert stub.sent()[-1]["layer"] in ("bias_1", "relu_1")
    stub.update(layer="dense_2")
    here = page.locator(".qb-here")
    expect(here.first).to_contain_text("dense_2")
    expect(here.first).to_be_in_viewport()


def test_what_did_not_change_is_folded_and_unfolds(page: Page, show: Any):
    stub = show(long(100, every=50))
    rows = page.locator(ROWS)
    assert rows.all_text_contents()[2:4] == [
        "\u22ef 47 lines the same: show them",
        " %v49 = nn.relu(%v48);%v49 = nn.relu(%v48);",
    ]
    fold = page.locator(ROWS, has_text="47 lines the same")
    fold.click()
    assert rows.count() == 5 + 47 + 1
    expect(page.locator(f"{ROWS}:focus")).to_contain_text("%v2 =")
    whole = page.get_by_role("button", name="all lines")
    whole.click()
    assert rows.count() == 100
    whole.click()
    assert rows.count() == 7
    stub.update(layer="layer_20")
    expect(page.locator(ROWS, has_text="47 lines").first).to_contain_text("the chosen layer among them")


def test_search_finds_what_is_folded_away(page: Page, show: Any):
    show(long(100, every=50))
    field = page.get_by_role("searchbox", name="Search both graphs")
    field.fill("%v3")
    hits = page.locator(".qb-diff-bar [role=status]").last
    expect(hits).to_have_text("1 of 13")  # 3 and 30..39 by name, 4 and 40 as what they read
    for expected in ("2 of 13", "3 of 13"):
        field.press("Enter")
        expect(hits).to_have_text(expected)
    expect(page.locator(".qb-hit-now")).to_be_in_viewport()
    expect(page.locator(".qb-hit-now")).to_contain_text("%v30 =")
    field.press("Shift+Enter")
    expect(hits).to_have_text("2 of 13")
    field.fill("<b>")
    expect(hits).to_have_text("not found")
    field.press("Escape")
    expect(field).to_have_value("")


def test_two_thousand_lines_are_fluid(page: Page, show: Any):
    stub = show(long(2000))
    rows = page.locator(ROWS)
    assert rows.count() == 2000
    rows.first.focus()
    page.keyboard.press("End")
    expect(rows.last).to_be_in_viewport()
    expect(rows.last).to_be_focused()
    stub.update(layer="layer_1000")
    expect(page.locator(".qb-here")).to_be_in_viewport()
    page.get_by_role("searchbox").fill("%v777 ")
    expect(page.locator(".qb-hit-now")).to_be_in_viewport()
    # only what is in sight is laid out
    assert rows.nth(1990).evaluate("row => getComputedStyle(row).contentVisibility") == "auto"


def test_passes_are_stepped_through(page: Page, show: Any, state: State):
    stub = show(ir_diff_view(state, 2, 3))
    page.get_by_role("button", name="What the pass before did").click()
    assert stub.sent()[-1] == {"do": "compare", "before": 1, "after": 2}
    page.get_by_role("button", name="What the next pass does").click()
    assert stub.sent()[-1] == {"do": "compare", "before": 3, "after": 4}
    page.get_by_label("Before", exact=True).select_option("0")
    assert stub.sent()[-1] == {"do": "compare", "before": 0, "after": 3}
    last = len(ir_diff_view(state).steps) - 1
    stub.update(graph=ir_diff_view(state, last - 1, last).to_dict())
    expect(page.get_by_role("button", name="What the next pass does")).to_be_disabled()


def test_where_one_was_is_kept_when_the_graph_changes(page: Page, show: Any):
    stub = show(long(300))
    row = page.locator(ROWS).nth(200)
    row.focus()
    page.keyboard.press("ArrowDown")
    top = page.locator(".qb-lines").evaluate("element => element.scrollTop")
    assert top > 0
    stub.update(graph=long(300).to_dict())
    expect(page.locator(ROWS).nth(201)).to_be_focused()
    expect(page.locator(ROWS).nth(201)).to_be_in_viewport()


def test_an_edit_writes_only_the_lines_that_it_changed(page: Page, show: Any):
    before = long(60)
    stub = show(before)
    page.evaluate("window.kept = [...document.querySelectorAll('.qb-line code')]")
    line = replace(before.lines[3], right="%v3 = clip(%v2, a_max=6.0);")
    stub.update(graph=replace(before, lines=(*before.lines[:3], line, *before.lines[4:])).to_dict())
    expect(page.locator(ROWS).nth(3).locator("mark").last).to_have_text(", a_max=6.0")
    assert page.evaluate("window.kept.filter((code) => !code.isConnected).length") == 2


def test_nothing_at_all_and_nothing_that_differs(page: Page, show: Any, state: State):
    stub = show(IRDiffView(("source",), 0, 0, ()))
    assert page.locator(ROWS).count() == 0
    stub.update(graph=ir_diff_view(state, 1, 1).to_dict())
    expect(page.locator(ROWS)).to_have_count(1)
    expect(page.locator(ROWS)).to_contain_text("lines the same")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1300, 900, 480])
def test_nothing_overflows(page: Page, show: Any, state: State, width: int, theme: str):
    show(ir_diff_view(state, 0, 2), "dense_1", width=width, theme=theme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
