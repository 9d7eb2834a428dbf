"""Drag thresholds of a real network in a real JupyterLab: ``python -m tests.browser.drag [--minutes 10] [--seed N]``.

EfficientNet-Lite0 of ``../shared``, each drag followed by the probe and the evaluation of all data, the next one often
before that is done. At the end the kernel is the one that was started, its memory never was larger than the cache and
`BESIDE_CACHE`, and the last report is that of a fresh session with the same config, to the last bit.
"""

from __future__ import annotations

import argparse
import os
import random
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic

from playwright.sync_api import Locator, Page, expect

import qbench as qb
from qbench.report.report import Report
from tests.browser.alone import page_alone
from tests.browser.lab import jupyterlab, notebook, run_all
from tests.conftest import ROOT

SHARED = Path(os.environ.get("QBENCH_SHARED_DATA", ROOT.parent / "shared" / "data"))
MODEL = SHARED / "models" / "imagenet" / "efficientnet_lite0_bn.onnx"
CACHE, BESIDE_CACHE = 256 << 20, 1 << 30
"""Bytes of the session's cache, and of all else: Python, compiler and kernels, programs, what an evaluation holds, and
the data, which is there twice, as the notebook's arrays and as the session's own (0.1 GB here).
"""
CALIBRATION, EVALUATION = 16, 64
PATIENCE = 600_000
CELLS = (
    """import faulthandler, os
from pathlib import Path
faulthandler.enable(open("fault.log", "w"))
Path("pid").write_text(str(os.getpid()))
from tests.browser.drag import prepared
import qbench as qb
session = prepared({calibration}, path="dragged.session")
workbench = qb.Workbench(session)""",
    "workbench",
)


def prepared(calibration: int = CALIBRATION, **options: object) -> qb.Session:
    """The session that is dragged in, or one like it."""
    import numpy as np
    from PIL import Image

    def images(folder: str, count: int) -> np.ndarray:
        paths = sorted((SHARED / "imagenet" / folder).glob("*.jpg"))[:count]
        pixels = np.stack([np.asarray(Image.open(path).convert("RGB"), np.float32) for path in paths])
        return ((pixels - 127) / 128).transpose(0, 3, 1, 2)

    data = images("calib", calibration), images("dev", EVALUATION)
    return qb.Session(qb.load(MODEL), *data, cache_bytes=CACHE, **options)


CLICKED = """(table, part) => {
  const low = table.getBoundingClientRect().bottom;
  const high = table.querySelector(".qb-head-group").getBoundingClientRect().bottom;
  const rows = [...table.querySelectorAll(".qb-body [role=row]")].filter(row => {
    const { top, bottom } = row.getBoundingClientRect();
    return top >= high && bottom <= low;
  });
  const row = rows[Math.floor(part * rows.length)];
  row.click();
  return row.dataset.index;
}"""
"""Clicks one of the rows that the table shows whole, and gives its index."""


class Kernel:
    """The process behind the notebook, as the system sees it."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.pid = folder, int((folder / "pid").read_text())

    def check(self) -> None:
        """AssertionError where it died, and what it said then."""
        said = (self._folder / "fault.log").read_text()
        assert said == "", said
        assert int((self._folder / "pid").read_text()) == self.pid, "another kernel runs"
        assert Path(f"/proc/{self.pid}").exists(), (
            f"the kernel died: {(self._folder / 'jupyter.log').read_text()[-2000:]}"
        )

    def megabytes(self, field: str) -> int:
        """VmRSS, what is resident, or VmHWM, the most that ever was."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) >> 10 for line in lines if line.startswith(field))


@contextmanager
def workbench(page: Page, folder: Path, calibration: int = CALIBRATION) -> Generator[Locator]:
    """The workbench in a JupyterLab of its own, once nothing runs any more."""
    page.set_viewport_size({"width": 1500, "height": 1300})
    page.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    notebook(folder / "drag.ipynb", *(cell.format(calibration=calibration) for cell in CELLS))
    with jupyterlab(folder) as address:
        run_all(page, address, "drag.ipynb")
        bench = page.locator(".qb")
        expect(bench.locator(".qb-body [role=row]").first).to_be_visible()
        settle(bench)
        yield bench


def drag(
    page: Page,
    folder: Path,
    minutes: float,
    seed: int,
    calibration: int = CALIBRATION,
    say: Callable[[str], None] = print,
) -> int:
    """Drag until the time is over, and check; the number of drags."""
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    rng, drags = random.Random(seed), 0
    with workbench(page, folder, calibration) as bench:
        kernel, end = Kernel(folder), monotonic() + 60 * minutes
        say(f"kernel {kernel.pid}: {kernel.megabytes('VmRSS')} MB before the first drag")
        while not drags or monotonic() < end:
            drags += one_drag(page, bench, rng)
            kernel.check()
            if rng.random() < 0.2:
                settle(bench)
            undo = bench.get_by_role("button", name="Undo", exact=True)
            if rng.random() < 0.1 and undo.is_enabled():
                undo.click()
            if drags % 20 == 1:
                say(f"{drags} drags, {kernel.megabytes('VmRSS')} MB, at most {kernel.megabytes('VmHWM')} MB")
        settle(bench)
        kernel.check()
        most = kernel.megabytes("VmHWM")
        say(f"{drags} drags; {kernel.megabytes('VmRSS')} MB resident, at most {most} MB")
    assert errors == []
    assert most << 20 <= CACHE + BESIDE_CACHE, f"{most} MB were resident with a cache of {CACHE >> 20} MB"
    dragged = qb.Session.resume(folder / "dragged.session")
    assert dragged.report is not None
    assert not dragged.is_stale, "nothing ran any more, but the last report is of an older config"
    fresh = prepared(calibration, config=dragged.config).run(progress=False)
    said = different(numbers(dragged.report), numbers(fresh))
    assert not said, f"a fresh session with the same config gives other numbers: {said}"
    say("a fresh session with the same config gives the same numbers")
    return drags


def any_row(bench: Locator, rng: random.Random) -> Locator:
    """A row of the table of layers that is in sight, clicked at once: the table may be drawn anew meanwhile."""
    index = bench.locator(".qb-table").evaluate(CLICKED, rng.random())
    return bench.locator(f".qb-body [role=row][data-index='{index}']")


def one_drag(page: Page, bench: Locator, rng: random.Random) -> int:
    """Select a layer that has a threshold and move it, in many small steps; how many were dragged, 0 or 1."""
    any_row(bench, rng)
    handle = bench.get_by_role("slider", name="Clipping threshold")
    bench.locator(".qb-values .qb-plot").evaluate(
        "one => one.scrollIntoView({ block: 'center' })"
    )  # where the mouse gets to
    box = handle.bounding_box() if handle.count() and handle.is_visible() else None
    if box is None:
        return 0
    x, y = box["x"] + box["width"] / 2, box["y"] + min(20, box["height"] / 2)
    page.mouse.move(x, y)
    page.mouse.down()
    for _ in range(rng.randint(1, 4)):
        page.mouse.move(x * rng.uniform(0.6, 1.1), y, steps=rng.randint(3, 12))
    page.mouse.up()
    return 1


def settle(bench: Locator) -> None:
    """Until nothing runs, and the numbers are those of all data."""
    expect(bench).to_have_attribute("data-busy", "false")
    expect(bench.locator(".qb-top .qb-status")).to_have_text("")


def numbers(report: Report) -> Mapping[str, object]:
    """What a report says, but for times, by name."""
    layers = {layer.name: replace(layer, ms=None) for layer in report.by_layer}
    return {"output": replace(report.output, latency=None), **layers}


def different(one: Mapping[str, object], other: Mapping[str, object]) -> Mapping[str, object]:
    """Where two reports differ, and what each says there."""
    names = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    return {name: (one.get(name), other.get(name)) for name in names}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.browser.drag", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with page_alone(MODEL) as (page, folder):
        drag(page, folder, options.minutes, options.seed)


if __name__ == "__main__":
    main()
