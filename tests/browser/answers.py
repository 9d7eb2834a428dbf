"""How long one waits for a number after a drag: ``python -m tests.browser.answers [--drags 20]``.

EfficientNet-Lite0 of ``../shared`` in a real JupyterLab. From letting the handle go to the first frame in which what
the whole network loses with that very threshold stands beside it; each drag starts when nothing runs any more.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from statistics import median

from playwright.sync_api import Locator, Page, expect

from tests.browser.alone import page_alone
from tests.browser.drag import MODEL, any_row, settle, workbench

_WATCH = """() => {
  window.waits = [];
  let from = null;
  const at = () => document.querySelector(".qb-handle")?.getAttribute("aria-valuenow");
  document.addEventListener("pointerdown", () => { from = at(); }, true);
  document.addEventListener("pointerup", ({ target }) => {
    const isMoved = Math.abs(at() / from - 1) >= 1e-3; // not at the least there is already
    if (!target.closest(".qb-plot") || !isMoved) return;
    const begin = performance.now();
    const look = () => {
      const handle = document.querySelector(".qb-handle");
      const text = handle?.querySelector(".qb-answer").textContent.replaceAll("\\u2212", "-");
      const said = /at ([0-9.e+-]+)$/.exec(text ?? "");
      const wait = performance.now() - begin;
      const isThere = said && Math.abs(Number(said[1]) / Number(handle.getAttribute("aria-valuenow")) - 1) < 1e-3;
      if (isThere || wait > 60000) window.waits.push(wait);
      else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  }, true);
}"""


def waits(page: Page, folder: Path, drags: int, seed: int = 0) -> list[float]:
    """Milliseconds of each drag."""
    rng, done = random.Random(seed), 0
    with workbench(page, folder) as bench:
        page.evaluate(_WATCH)
        while done < drags:
            if drag(page, bench, rng):
                done += 1
                page.wait_for_function("count => window.waits.length >= count", arg=done)
                settle(bench)
        return page.evaluate("window.waits")


def drag(page: Page, bench: Locator, rng: random.Random) -> bool:
    """Look at a layer, and once it is there move its threshold to a smaller one; whether it has one."""
    row = any_row(bench, rng)
    expect(row).to_have_attribute("aria-current", "true")
    name = row.locator(".qb-name").get_attribute("title") or ""
    expect(bench.locator(".qb-tensor h3")).to_have_attribute("title", name)
    handle, plot = bench.get_by_role("slider", name="Clipping threshold"), bench.locator(".qb-values .qb-plot")
    if not handle.count() or not handle.is_visible():
        return False
    bench.locator(".qb-values .qb-plot").evaluate("one => one.scrollIntoView({ block: 'center' })")
    grip, frame = handle.locator(".qb-grip").bounding_box(), plot.bounding_box()
    assert grip is not None and frame is not None
    x, y = grip["x"] + grip["width"] / 2, grip["y"] + grip["height"] / 2
    before = threshold(handle)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - rng.uniform(0.1, 0.4) * frame["width"], y, steps=12)
    is_moved = abs(threshold(handle) / before - 1) >= 1e-3  # as `_WATCH` asks
    page.mouse.up()
    return is_moved


def threshold(handle: Locator) -> float:
    """Where a handle stands."""
    return float(handle.get_attribute("aria-valuenow") or "nan")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.browser.answers", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--drags", type=int, default=20)
    options = parser.parse_args()
    with page_alone(MODEL) as (page, folder):
        taken = waits(page, folder, options.drags)
    print(f"{len(taken)} drags: median {median(taken):.0f} ms, first {taken[0]:.0f}, worst {max(taken):.0f}: ")
    print(" ".join(f"{wait:.0f}" for wait in taken))


if __name__ == "__main__":
    main()
