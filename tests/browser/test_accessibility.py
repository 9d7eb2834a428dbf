"""axe, the accessibility engine, over every widget's real markup and style, in every look."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anywidget
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from qbench.session.session import Session
from qbench.widgets import (
    BitExactness,
    DivergenceCurves,
    Histogram,
    IRDiff,
    LayerTable,
    NetworkProfile,
    ResultPanel,
    Workbench,
)
from tests.browser.stub import Stub
from tests.browser.test_repairs import REPAIRS
from tests.networks import mlp, samples
from tests.parity.comparisons import comparison


def repaired(session: Session) -> Workbench:
    """A workbench whose list of repairs has one that is applied and one that is not."""
    bench = Workbench(session, layer="relu_1")
    bench.repairs = REPAIRS
    return bench


WIDGETS: dict[str, tuple[str, Callable[[Session], anywidget.AnyWidget]]] = {
    "workbench": ("workbench", lambda session: Workbench(session, comparison(), layer="relu_1")),
    "panes": ("workbench", lambda session: Workbench(session, comparison(), layer="relu_1", height=900)),
    "repairs": ("workbench", repaired),
    "layers": ("layertable", LayerTable),
    "histogram": ("onehistogram", lambda session: Histogram(session, "relu_1")),
    "channels": ("onehistogram", lambda session: Histogram(session, "dense_1.weight")),
    "curves": ("onecurves", lambda session: DivergenceCurves(session, "relu_1")),
    "diff": ("oneirdiff", lambda session: IRDiff(session, 0, 2)),
    "profile": ("networkprofile", NetworkProfile),
    "result": ("resultpanel", ResultPanel),
    "exactness": ("bitexactness", lambda _: BitExactness(comparison())),
}
LOOKS: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "light": ({}, [{}, {"forced_colors": "active"}, {"contrast": "more"}]),
    "dark": ({"theme": "dark"}, [{}, {"contrast": "more"}]),
    "narrow": ({"width": 480}, [{}]),
}
"""How the page is made, and what the reader asks of it."""


@pytest.fixture(scope="module")
def session() -> Session:
    tuned = Session(mlp(), samples(50), samples(30, seed=5))
    tuned.run(progress=False)
    tuned.override("relu_1", threshold=1.0)
    return tuned


def synced(widget: anywidget.AnyWidget) -> dict[str, Any]:
    """What the browser is sent of a widget's own traits."""
    own = set(widget.traits(sync=True)) - set(anywidget.AnyWidget.class_traits(sync=True))
    return {name: getattr(widget, name) for name in own if not name.startswith("_")}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("widget", WIDGETS)
def test_axe_finds_nothing_serious(page: Page, session: Session, widget: str, look: str):
    entry, make = WIDGETS[widget]
    size, wishes = LOOKS[look]
    stub = Stub(page, synced(make(session)), widget=entry, **size)
    page.locator("details").evaluate_all("all => { for (const one of all) one.open = true; }")
    for wish in wishes:
        page.emulate_media(**{"forced_colors": "none", "contrast": "no-preference", **wish})
        found = Axe().run(page).response["violations"]
        serious = [
            f"{wish}: {violation['id']}: {violation['help']}: {[node['html'][:200] for node in violation['nodes'][:3]]}"
            for violation in found
            if violation["impact"] in ("serious", "critical")
        ]
        assert serious == []
    assert stub.errors == []
