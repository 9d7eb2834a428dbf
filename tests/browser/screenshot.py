"""Make the README's picture: ``python -m tests.browser.screenshot`` opens a notebook in a real JupyterLab.

``python -m tests.browser.screenshot OUT.png --dark`` shows the dark theme.
"""

from __future__ import annotations

import argparse
import io
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import expect, sync_playwright

from qbench.files import write_bytes
from tests.browser.lab import jupyterlab, notebook, run_all
from tests.conftest import BROWSER_FLAGS, ROOT, find_browser

PICTURE = ROOT / "notebooks" / "images" / "workbench.png"
SIZE = {"width": 1480, "height": 1080}
CELLS = (
    f"""import numpy as np, qbench as qb
calibration, evaluation = (np.load(f"{ROOT}/data/mnist_{{part}}.npz") for part in ("calibration", "evaluation"))
session = qb.Session(
    qb.load("{ROOT}/data/mnist_cnn.onnx"), calibration["x"], (evaluation["x"], evaluation["y"])
)
workbench = qb.Workbench(session, layer="branch_2_relu")""",
    "workbench",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", nargs="?", type=Path, default=PICTURE)
    parser.add_argument("--dark", action="store_true")
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        picture = take(Path(folder), "JupyterLab Dark" if options.dark else "JupyterLab Light")
    write_bytes(options.out, small(picture))


def take(folder: Path, theme: str) -> bytes:
    """The page after a threshold was dragged, scrolled to the workbench."""
    notebook(folder / "workbench.ipynb", *CELLS)
    with jupyterlab(folder, theme) as address, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(find_browser()), args=BROWSER_FLAGS)
        page = browser.new_page(viewport=SIZE)
        run_all(page, address, "workbench.ipynb")
        bench = page.locator(".qb")
        bench.wait_for(timeout=300_000)
        page.evaluate("window.jupyterapp.commands.execute('application:toggle-left-area')")
        handle = bench.get_by_role("slider", name="Clipping threshold")
        handle.focus()
        for _ in range(4):
            page.keyboard.press("PageDown")
        expect(bench.locator('[data-name="sqnr"]')).to_contain_text("by last edit", timeout=300_000)
        expect(bench).to_have_attribute("data-busy", "false", timeout=300_000)
        bench.evaluate("element => element.closest('.jp-OutputArea').scrollIntoView({ block: 'start' })")
        return page.screenshot()


def small(picture: bytes) -> bytes:
    """The same picture in 200 colours."""
    out = io.BytesIO()
    with Image.open(io.BytesIO(picture)) as image:
        image.convert("RGB").quantize(200).save(out, format="png", optimize=True)
    return out.getvalue()


if __name__ == "__main__":
    main()
