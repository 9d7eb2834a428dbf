from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.lab import jupyterlab, notebook, run_all

PREPARE = """
import numpy as np, qbench as qb
cal, ev = np.load({data!r} + "/mnist_calibration.npz"), np.load({data!r} + "/mnist_evaluation.npz")
session = qb.Session(
    qb.load({data!r} + "/mnist_mlp.onnx"),
    calibration=cal["x"][:100], evaluation=(ev["x"][:200], ev["y"][:200]), path="mnist.session",
)
"""
SHOW = 'workbench = qb.Workbench(session, layer="relu_1", folder="out")\nworkbench'
PATIENCE = 60_000


def test_tuning_a_layer_in_a_real_jupyterlab(page: Page, tmp_path: Path, data_dir: Path):
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.set_viewport_size({"width": 1500, "height": 1300})
    notebook(tmp_path / "tune.ipynb", PREPARE.format(data=str(data_dir)), SHOW)
    with jupyterlab(tmp_path) as address:
        run_all(page, address, "tune.ipynb")
        bench = page.locator(".qb")
        bench.wait_for(timeout=PATIENCE)
        expect(bench.locator(".qb-body [role=row]")).to_have_count(9)
        bench.locator(".qb-body [role=row]", has_text="relu_2").click()
        expect(bench.locator(".qb-tensor h3")).to_have_text("relu_2", timeout=PATIENCE)

        sqnr, undo = bench.locator('[data-name="sqnr"] .qb-card-value'), bench.get_by_role("button", name="Undo")
        before = sqnr.inner_text()
        expect(undo).to_be_disabled()
        handle = bench.get_by_role("slider", name="Clipping threshold")
        box = handle.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
        page.mouse.down()
        page.mouse.move(box["x"] * 0.25, box["y"] + 20, steps=5)
        page.mouse.up()
        expect(undo).to_be_enabled(timeout=PATIENCE)
        expect(sqnr).not_to_have_text(before, timeout=PATIENCE)
        expect(bench).to_have_attribute("data-busy", "false", timeout=PATIENCE)  # the probe's numbers are others
        assert float(sqnr.inner_text().split()[0]) < float(before.split()[0])
        expect(bench.locator(".qb-body [role=row]", has_text="relu_2")).to_contain_text("edited")

        undo.click()
        expect(sqnr).to_have_text(before, timeout=PATIENCE)
        handle.focus()
        page.keyboard.press("ArrowLeft")
        expect(undo).to_be_enabled(timeout=PATIENCE)
        undo.click()
        expect(undo).to_be_disabled(timeout=PATIENCE)

        bench.get_by_role("button", name="Export").click()
        bench.get_by_role("dialog").get_by_role("button", name="Export").click()
        expect(bench.get_by_role("dialog")).to_contain_text("Wrote", timeout=PATIENCE)
        names = {path.name for path in (tmp_path / "out").iterdir()}
        assert names == {"config.json", "report.json", "model.qbench", "model.qdq.onnx"}
        assert bench.get_by_role("alert").is_hidden()
    assert errors == []
