"""The workbench in a real JupyterLab, with a real kernel."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import PATIENCE
from tests.browser.lab import TOKEN, jupyterlab, notebook, restart, run_all, save

PREPARE = """
import numpy as np, qbench as qb
cal, ev = np.load({data!r} + "/mnist_calibration.npz"), np.load({data!r} + "/mnist_evaluation.npz")
session = qb.Session(
    qb.load({data!r} + "/mnist_mlp.onnx"),
    calibration=cal["x"][:100], evaluation=(ev["x"][:200], ev["y"][:200]), path="mnist.session",
)
"""
SHOW = 'workbench = qb.Workbench(session, layer="relu_1", folder="out")\nworkbench'
RESUME = """
import numpy as np, qbench as qb
session = qb.Session.resume("mnist.session")
"""


@pytest.fixture
def lab(page: Page, tmp_path: Path, data_dir: Path) -> Generator[str]:
    """A JupyterLab with two notebooks: one makes a session, the other resumes it. No page may raise."""
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.set_viewport_size({"width": 1500, "height": 1300})
    notebook(tmp_path / "tune.ipynb", PREPARE.format(data=str(data_dir)), SHOW)
    notebook(tmp_path / "resume.ipynb", RESUME, SHOW)
    with jupyterlab(tmp_path) as address:
        yield address
    assert errors == []


def opened(page: Page) -> Locator:
    """The workbench, once it is drawn and nothing runs."""
    bench = page.locator(".jp-NotebookPanel .qb")
    bench.get_by_role("tab", name="Layers", exact=True).click()
    expect(bench.locator(".qb-body [role=row]")).to_have_count(4)
    bench.get_by_label("unfold", exact=True).check()
    expect(bench.locator(".qb-body [role=row]")).to_have_count(9)
    expect(bench).to_have_attribute("data-busy", "false")
    return bench


def sqnr(bench: Locator) -> Locator:
    return bench.locator('[data-name="sqnr"] .qb-card-value')


def test_tuning_a_layer(page: Page, lab: str, tmp_path: Path):
    run_all(page, lab, "tune.ipynb")
    bench = opened(page)
    bench.locator(".qb-body [role=row]", has_text="relu_2").click()
    expect(bench.locator(".qb-tensor h3")).to_have_text("relu_2")

    undo = bench.get_by_role("button", name="Undo", exact=True)
    before = sqnr(bench).inner_text()
    expect(undo).to_be_disabled()
    handle = bench.get_by_role("slider", name="Clipping threshold")
    bench.locator(".qb-values .qb-plot").evaluate(
        "one => one.scrollIntoView({ block: 'center' })"
    )  # where the mouse gets to
    box, plot = handle.bounding_box(), bench.locator(".qb-values .qb-plot").bounding_box()
    assert box is not None and plot is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(plot["x"] + 0.2 * plot["width"], box["y"] + 20, steps=5)
    page.mouse.up()
    expect(undo).to_be_enabled()
    expect(sqnr(bench)).not_to_have_text(before)
    expect(bench).to_have_attribute("data-busy", "false")  # the probe's numbers are others
    assert float(sqnr(bench).inner_text().split()[0]) < float(before.split()[0])
    expect(bench.locator(".qb-body [role=row]", has_text="relu_2")).to_contain_text("edited")

    page.evaluate("void window.jupyterapp.commands.execute('notebook:create-output-view')")
    other = page.locator(".jp-LinkedOutputView .qb")
    expect(sqnr(other)).to_have_text(sqnr(bench).inner_text())
    other.get_by_role("tab", name="Graph", exact=True).click()
    expect(bench.get_by_role("tab", name="Graph", exact=True)).to_have_attribute("aria-selected", "false")
    other.locator(".qb-body [role=row]", has_text="dense_1").click()
    expect(bench.locator(".qb-tensor h3")).to_have_text("dense_1")  # what is chosen in one is chosen in both
    bench.locator(".qb-body [role=row]", has_text="relu_2").click()
    page.evaluate(
        """for (const one of [...window.jupyterapp.shell.widgets("main")])
             if (one.node.querySelector(".jp-LinkedOutputView")) one.close()"""
    )
    expect(other).to_have_count(0)

    undo.click()
    expect(sqnr(bench)).to_have_text(before)
    handle.focus()
    page.keyboard.press("ArrowLeft")
    expect(undo).to_be_enabled()
    undo.click()
    expect(undo).to_be_disabled()

    bench.get_by_role("button", name="Export").click()
    dialog = bench.get_by_role("dialog")
    dialog.get_by_label("workbench.html").check()
    dialog.get_by_label("model.qdq.onnx").uncheck()
    dialog.get_by_role("button", name="Export").click()
    expect(dialog).to_contain_text("Wrote")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"config.json", "report.json", "model.qbench", "workbench.html"}
    expect(bench.get_by_role("alert")).to_be_hidden()


def test_a_reload_of_the_page_and_a_restart_of_the_kernel_lose_nothing(page: Page, lab: str):
    run_all(page, lab, "tune.ipynb")
    bench = opened(page)
    first = sqnr(bench).inner_text()
    still = page.locator(".jp-OutputArea-child .jp-RenderedImage img")
    expect(still).to_have_count(1)
    expect(still).to_be_hidden()  # while the view is live
    bench.get_by_role("tab", name="History").click()
    bench.get_by_label("Name of the snapshot").fill("untouched")
    bench.get_by_role("button", name="Keep snapshot").click()
    expect(bench.locator(".qb-kept")).to_contain_text("untouched")
    field = bench.get_by_role("spinbutton", name="Threshold")
    field.fill("0.5")
    field.press("Enter")
    expect(bench.get_by_role("button", name="Undo", exact=True)).to_be_enabled()
    expect(sqnr(bench)).not_to_have_text(first)
    expect(bench).to_have_attribute("data-busy", "false")
    expect(bench.locator(".qb-top .qb-status")).to_have_text("")  # the numbers are those of all data
    edited = sqnr(bench).inner_text()

    save(page)  # where pages find which view was shown; the kernel goes on
    with page.context.browser.new_context() as another:  # somebody else looks at the same session
        other = another.new_page()
        other.set_default_timeout(PATIENCE)
        other.goto(f"{lab}lab/tree/tune.ipynb?token={TOKEN}&reset")
        there = opened(other)
        expect(sqnr(there)).to_have_text(edited)
        there.get_by_role("button", name="Undo", exact=True).click()
        expect(sqnr(bench)).to_have_text(first)
        bench.get_by_role("button", name="Redo").click()
        expect(sqnr(there)).to_have_text(edited)
        expect(bench).to_have_attribute("data-busy", "false")

    page.reload()
    bench = opened(page)
    expect(sqnr(bench)).to_have_text(edited)
    expect(bench.locator(".qb-tensor h3")).to_have_text("relu_1")
    bench.get_by_role("button", name="Undo", exact=True).click()  # and it is alive
    expect(sqnr(bench)).to_have_text(first)
    bench.get_by_role("button", name="Redo").click()
    expect(sqnr(bench)).to_have_text(edited)
    expect(bench).to_have_attribute("data-busy", "false")

    restart(page)
    page.reload()
    expect(still).to_be_visible()  # the model of the view is gone, and nobody has run the cell again
    run_all(page, lab, "resume.ipynb")
    bench = opened(page)
    expect(sqnr(bench)).to_have_text(edited)
    expect(bench.locator(".qb-body [role=row]", has_text="relu_1")).to_contain_text("edited")
    bench.get_by_role("tab", name="History").click()
    expect(bench.locator(".qb-kept")).to_contain_text("untouched")
    bench.get_by_role("button", name="Undo", exact=True).click()
    expect(sqnr(bench)).to_have_text(first)
    expect(bench.get_by_role("button", name="Undo", exact=True)).to_be_disabled()
