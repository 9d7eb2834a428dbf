"""axe, the accessibility engine, over every widget's real markup and style, in every theme."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anywidget
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from qbench.session.session import Session
from qbench.widgets import DivergenceCurves, Histogram, IRDiff, LayerTable, ResultPanel, Workbench
from tests.browser.stub import THEMES, Stub
from tests.engine.networks import mlp, samples

WIDGETS: dict[str, Callable[[Session], anywidget.AnyWidget]] = {
    "workbench": lambda session: Workbench(session, layer="relu_1"),
    "layertable": LayerTable,
    "onehistogram": lambda session: Histogram(session, layer="relu_1"),
    "onecurves": lambda session: DivergenceCurves(session, layer="relu_1"),
    "oneirdiff": IRDiff,
    "resultpanel": ResultPanel,
}


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


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("widget", WIDGETS)
def test_axe_finds_nothing_serious(page: Page, session: Session, widget: str, theme: str):
    shown = WIDGETS[widget](session)
    stub = Stub(page, synced(shown), theme=theme, widget=widget)
    found = Axe().run(page, context="#here").response["violations"]
    serious = [
        f"{violation['id']}: {violation['help']}: {[node['html'][:200] for node in violation['nodes'][:3]]}"
        for violation in found
        if violation["impact"] in ("serious", "critical")
    ]
    assert serious == []
    assert stub.errors == []
