"""What readers of the notebooks see: a question, an answer, pictures that are up to date."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from qbench import plots
from qbench.widgets import Workbench
from tests.conftest import ROOT

FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(path.name for path in FOLDER.glob("*.ipynb"))


def cells(name: str) -> list[dict[str, Any]]:
    return json.loads((FOLDER / name).read_text("utf-8"))["cells"]


def sources(name: str, kind: str) -> list[str]:
    return ["".join(cell["source"]) for cell in cells(name) if cell["cell_type"] == kind]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_begins_with_its_question_and_ends_with_its_answer(name: str):
    first, *_, before, last = cells(name)
    assert first["cell_type"] == "markdown"
    assert "?" in "".join(first["source"])
    assert any("Answer" in "".join(cell["source"]) for cell in (before, last) if cell["cell_type"] == "markdown")
    assert not any("NBVAL" in source for source in sources(name, "code"))  # tags say it


def test_the_quick_start_has_ten_lines_and_ends_in_the_workbench():
    (code,) = sources("01_quickstart.ipynb", "code")
    assert len([line for line in code.splitlines() if line]) <= 10
    assert code.splitlines()[-1] == "qb.Workbench(session)"


def test_the_gallery_has_every_figure():
    gallery = sources("09_inside.ipynb", "code")[-1]
    assert [name for name in plots.__all__ if name.endswith("_figure") and f"plots.{name}(" not in gallery] == []


def test_the_picture_of_the_quick_start_is_what_it_draws_today(monkeypatch: pytest.MonkeyPatch):
    (code,) = (cell for cell in cells("01_quickstart.ipynb") if cell["cell_type"] == "code")
    kept = next(output["data"]["image/png"] for output in code["outputs"] if "image/png" in output.get("data", {}))
    monkeypatch.chdir(Path(FOLDER))
    names: dict[str, Any] = {}
    exec("".join(code["source"]), names)
    drawn = plots.png(Workbench(names["session"]).figure())
    pixels = [
        np.asarray(Image.open(io.BytesIO(png)).convert("L"), np.float32) for png in (base64.b64decode(kept), drawn)
    ]
    assert pixels[0].shape == pixels[1].shape
    assert np.abs(pixels[0] - pixels[1]).mean() < 2  # of 255: letters may be set a little differently elsewhere
