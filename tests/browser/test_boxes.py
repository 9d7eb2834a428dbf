"""The network as boxes: folded, coloured, searched, side by side; what is chosen there is chosen everywhere."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from qbench.session.session import Session
from qbench.views import State, boxes_view
from qbench.widgets import Workbench
from tests.browser.stub import Stub
from tests.browser.test_accessibility import synced
from tests.networks import mlp, samples

LOOP = "<img src=x onerror=window.hacked=1>"


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(mlp(), samples(20), samples(20, seed=3))


@pytest.fixture(scope="module")
def bench(session: Session) -> dict[str, Any]:
    return synced(Workbench(session, layer="relu_1"))


def opened(page: Page, bench: dict[str, Any], **options: Any) -> Stub:
    stub = Stub(page, bench, **options)
    page.locator(".qb-boxes > summary").click()
    return stub


def boxes(page: Page) -> Locator:
    return page.locator(".qb-boxes [role=option]")


def chain(count: int, *, skip: int = 5) -> dict[str, Any]:
    """A long network with residual connections, of names with parts."""
    made = [
        {
            "name": f"stage{at // 50}.block{at // skip}.conv{at}",
            "op": "nn.conv2d",
            "dtype": "float32",
            "layer": None,
            "reads": [read for read in (at - 1, at - skip if at % skip == 0 else -1) if read >= 0],
        }
        for at in range(count)
    ]
    return {"steps": ["source"], "prepared": 0, "panes": [{"step": 0, "boxes": made}]}


def test_a_box_for_each_fused_step_that_opens_and_chooses_its_layer(page: Page, bench: dict[str, Any]):
    stub = opened(page, bench)
    expect(boxes(page)).to_have_count(5)
    names = [option.split(",")[0] for option in boxes(page).evaluate_all("all => all.map(one => one.ariaLabel)")]
    assert names == ["x", "dense_0", "dense_1", "dense_2", "y"]
    expect(page.locator(".qb-active")).to_contain_text("dense_1")  # that is chosen elsewhere
    boxes(page).nth(1).locator(".qb-face").click()
    assert stub.sent()[-1] == {"do": "select", "layer": "relu_0", "where": "boxes"}
    boxes(page).nth(1).locator(".qb-face").dblclick()
    expect(boxes(page)).to_have_count(7)
    expect(boxes(page).nth(3)).to_contain_text("relu_0")
    page.get_by_label("Put together").select_option("none")
    expect(page.locator('.qb-boxes [aria-label^="bias_0,"]')).to_have_count(1)
    stub.update(tensor=bench["tensor"] | {"layer": "dense_2"})
    expect(page.locator(".qb-active")).to_contain_text("dense_2")
    assert stub.errors == []


def test_a_double_click_counts_though_the_graph_is_painted_in_the_middle_of_it(page: Page, bench: dict[str, Any]):
    stub = opened(page, bench)
    expect(page.locator(".qb-active")).to_contain_text("dense_1")
    boxes(page).nth(1).locator(".qb-face").hover()
    page.mouse.down()
    page.mouse.up()
    page.mouse.down(click_count=2)
    stub.update(tensor=bench["tensor"] | {"layer": "dense_2"})
    expect(page.locator(".qb-active")).to_contain_text("dense_2")
    page.mouse.up(click_count=2)
    expect(boxes(page)).to_have_count(7)


def test_keys_walk_along_the_arrows(page: Page, bench: dict[str, Any]):
    stub = opened(page, bench)
    expect(page.locator(".qb-active")).to_contain_text("dense_1")
    graph = page.get_by_role("listbox", name="Graph", exact=True)
    graph.focus()
    page.keyboard.press("ArrowDown")
    assert stub.sent()[-1]["layer"] == "bias_2"
    expect(page.locator(".qb-active")).to_contain_text("dense_2")
    page.keyboard.press("ArrowUp")
    assert stub.sent()[-1]["layer"] == "relu_1"
    page.keyboard.press("Enter")
    expect(boxes(page)).to_have_count(7)
    assert graph.get_attribute("aria-activedescendant") == page.locator(".qb-active").get_attribute("id")
    assert stub.errors == []


@pytest.mark.parametrize(("colour", "shade"), [("error", "low"), ("bits", "narrow"), ("region", "edited")])
def test_colours_say_what_the_rows_of_the_layers_say(page: Page, bench: dict[str, Any], colour: str, shade: str):
    rows = [{**row, "overridden": ["threshold"]} for row in bench["layers"]["rows"]]
    stub = opened(page, bench | {"layers": {**bench["layers"], "rows": rows}})
    page.get_by_label("Colour by").select_option(colour)
    expect(page.locator(f".qb-box.qb-is-{shade}")).not_to_have_count(0)
    expect(page.locator(f".qb-box-legend .qb-is-{shade}")).to_have_count(1)
    assert stub.errors == []


def test_search_goes_from_hit_to_hit(page: Page, bench: dict[str, Any]):
    stub = opened(page, bench | {"boxes": chain(200)})
    page.get_by_label("Put together").select_option("none")
    field = page.get_by_role("searchbox", name="Search boxes")
    field.fill("block7.")
    tally = page.locator(".qb-boxes [role=status]")
    expect(tally).to_have_text("5 found: Enter goes to them")
    field.press("Enter")
    field.press("Enter")
    expect(tally).to_have_text("2 of 5")
    expect(page.locator(".qb-active")).to_have_attribute("aria-label", "stage0.block7.conv36, nn.conv2d")
    field.fill("<b>")
    expect(tally).to_have_text("not found")
    assert stub.errors == []


def test_two_steps_stand_side_by_side(page: Page, bench: dict[str, Any], session: Session):
    stub = opened(page, bench)
    last = len(bench["boxes"]["steps"]) - 1
    page.get_by_label("Beside it", exact=True).select_option(str(last))
    prepared = bench["boxes"]["prepared"]
    assert stub.sent()[-1] == {"do": "boxes", "steps": [prepared, last], "where": "boxes"}
    stub.update(boxes=boxes_view(State.of(session), (prepared, last)).to_dict())
    beside = page.get_by_role("listbox", name="Graph beside it")
    expect(beside.locator(".qb-active")).to_have_count(1)
    page.get_by_label("Put together").select_option("none")
    expect(beside.locator("[aria-label*=requantize]").first).to_be_visible()
    assert stub.errors == []


def test_750_boxes_are_laid_out_and_only_those_in_sight_are_in_the_page(page: Page, bench: dict[str, Any]):
    stub = opened(page, bench | {"boxes": chain(750)})
    page.get_by_label("Put together").select_option("none")
    graph = page.get_by_role("listbox", name="Graph", exact=True)
    expect(boxes(page).first).to_be_visible()
    expect(graph).not_to_have_attribute("aria-busy", "true")
    assert boxes(page).count() < 40
    graph.focus()
    page.keyboard.press("End")
    expect(page.locator(".qb-active")).to_have_attribute("aria-label", "stage14.block149.conv749, nn.conv2d")
    places = boxes(page).evaluate_all(
        "all => all.map(one => Number(/ ([0-9.]+)\\)/.exec(one.getAttribute('transform'))[1]))"
    )
    assert places == sorted(places)  # what reads stands below what it reads
    page.keyboard.press("0")
    expect(boxes(page)).to_have_count(750)
    page.get_by_label("Put together").select_option("prefix")
    expect(boxes(page)).to_have_count(15)
    assert stub.errors == []


@pytest.mark.parametrize("reads", [[], [[], []], [[], [0], [0], [1, 2]], [[3], [0], [1], [2]]])
def test_any_graph_is_drawn(page: Page, bench: dict[str, Any], reads: list[list[int]]):
    made = [{"name": LOOP * 200, "op": LOOP, "dtype": "int8", "layer": None, "reads": some} for some in reads]
    stub = opened(page, bench | {"boxes": {"steps": [LOOP], "prepared": 0, "panes": [{"step": 0, "boxes": made}]}})
    expect(boxes(page)).to_have_count(len(reads))
    assert page.evaluate("window.hacked") is None
    assert "NaN" not in page.locator(".qb-box-panes").inner_html()
    assert stub.errors == []
