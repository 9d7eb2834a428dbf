"""Browser tests wait for what they expect: how long that takes says more about what else the machine does."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

PATIENCE = 60_000  # ms


@pytest.fixture
def page(page: Page) -> Page:
    page.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    return page
