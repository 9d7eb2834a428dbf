"""A page of its own, opened from a file as whoever was mailed it does."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from qbench.session.session import Session
from qbench.widgets import Histogram, IRDiff, Workbench
from tests.hostile import hostile_session
from tests.networks import mlp, samples


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(mlp(), samples(40), samples(30, seed=5))


class Opened:
    """A page from a file, and what went wrong in it."""

    def __init__(self, page: Page, path: Path, scheme: str = "light") -> None:
        self.page = page
        self.errors, self.requests = list[str](), list[str]()
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda message: self.errors.append(message.text))  # where violations of the policy are told
        page.on("request", lambda request: self.requests.append(request.url))
        page.emulate_media(color_scheme=scheme)
        page.goto(path.as_uri())
        page.locator(".qb").wait_for()


def test_layers_are_looked_at_and_thresholds_tried_without_a_kernel(page: Page, session: Session, tmp_path: Path):
    path = Workbench(session, layer="relu_1").export_html(tmp_path / "bench.html")
    opened = Opened(page, path)
    page.locator(".qb-body [role=row]", has_text="dense_0").click()
    expect(page.locator(".qb-tensor h3")).to_have_text("dense_0")
    page.get_by_role("button", name="weight", exact=True).click()
    expect(page.locator(".qb-facts")).to_contain_text("a scale for each of 16 channels")
    page.get_by_label("unfold", exact=True).check()
    page.locator(".qb-body [role=row]", has_text="relu_0").click()
    handle = page.get_by_role("slider", name="Clipping threshold")
    before = float(handle.get_attribute("aria-valuenow"))
    handle.focus()
    page.keyboard.press("PageDown")
    assert float(handle.get_attribute("aria-valuenow")) < before
    expect(page.locator(".qb-top .qb-status")).to_contain_text("only tried here")
    page.get_by_role("button", name="percentile").click()
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("picture without a kernel")
    alert.get_by_role("button", name="Close").click()
    expect(alert).to_be_hidden()
    assert (opened.errors, opened.requests) == ([], [path.as_uri()])


def test_every_pass_can_be_looked_at(page: Page, session: Session, tmp_path: Path):
    opened = Opened(page, IRDiff(session).export_html(tmp_path / "diff.html"))
    page.get_by_role("button", name="What the pass before did").click()
    after = page.get_by_label("After", exact=True)
    first = int(after.input_value())
    for _ in range(first - 1):
        page.get_by_role("button", name="What the pass before did").click()
    expect(page.get_by_label("Before", exact=True)).to_have_value("0")
    after.select_option("3")
    expect(page.get_by_role("alert")).to_contain_text("what each pass did")
    expect(after).to_have_value("1")
    page.get_by_role("button", name="all lines").click()
    page.locator(".qb-leads").first.click()
    expect(page.locator(".qb-here").first).to_be_visible()
    assert opened.errors == []


def test_nothing_from_a_model_is_run(page: Page, tmp_path: Path):
    session, names = hostile_session()
    opened = Opened(page, Workbench(session).export_html(tmp_path / "hostile.html"))
    for row in range(len(names)):
        page.locator(".qb-body [role=row]").nth(row).click()
    assert page.evaluate("window.hacked") is None
    assert page.locator("#qbench script, #qbench img, #qbench b").count() == 0
    assert opened.errors == []


def test_a_script_that_would_get_in_is_not_run(page: Page, session: Session, tmp_path: Path):
    path = Histogram(session, "relu_1").export_html(tmp_path / "page.html")
    text = path.read_text("utf-8")
    path.write_text(
        text.replace("</main>", "</main><script>window.hacked = 1</script><img src=x onerror='hacked = 1'>")
    )
    opened = Opened(page, path)
    assert page.evaluate("window.hacked") is None
    assert any("Content Security Policy" in error for error in opened.errors)


@pytest.mark.parametrize("width", [900, 1400])
def test_it_follows_the_readers_theme_and_fits(page: Page, session: Session, tmp_path: Path, width: int):
    page.set_viewport_size({"width": width, "height": 900})
    path = Workbench(session).export_html(tmp_path / "bench.html")
    papers = []
    for scheme in ("light", "dark"):
        Opened(page, path, scheme)
        papers.append(page.locator(".qb").evaluate("element => getComputedStyle(element).backgroundColor"))
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert papers[0] == "rgb(255, 255, 255)" != papers[1]


def test_without_scripts_there_is_a_picture(browser: object, session: Session, tmp_path: Path):
    path = Histogram(session, "relu_1").export_html(tmp_path / "page.html")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    expect(page.get_by_alt_text("mlp - qbench")).to_be_visible()
    context.close()
