"""What the guide for contributors draws is what the contracts say."""

from __future__ import annotations

import re
import tomllib

from tests.conftest import ROOT

GUIDE = ROOT / ".github" / "CONTRIBUTING.md"


def drawing() -> str:
    """The rooms from high to low, as the first contract has them, each with the first sentence of its package."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(one["layers"] for one in contracts if one["type"] == "layers" and "qbench.ir" in one["layers"])
    rows = [" | ".join(room.strip().removeprefix("qbench.") for room in layer.split("|")) for layer in layers]
    return "```\n" + "\n".join(rows) + "\n```"


def test_the_drawing_of_the_rooms_is_the_contract():
    found = re.search(r"<!-- layers -->\n(.*?)\n<!-- /layers -->", GUIDE.read_text("utf-8"), re.DOTALL)
    assert found is not None and found.group(1) == drawing()


def test_every_place_that_it_names_is_there():
    named = set(re.findall(r"`((?:qbench|tests|data|notebooks)/[\w/.]+)`", GUIDE.read_text("utf-8")))
    assert named
    assert not [place for place in named if not (ROOT / place).exists()]
