"""A page of the system's Chromium without pytest, for what is run by hand."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.conftest import BROWSER_FLAGS, find_browser


@contextmanager
def page_alone(*needed: Path) -> Generator[tuple[Page, Path]]:
    """A page, and a folder of its own; SystemExit where there is no browser, or a file that is needed."""
    browser = find_browser()
    if browser is None or not all(path.exists() for path in needed):
        print("Chromium or the shared data is missing", file=sys.stderr)
        raise SystemExit(2)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=BROWSER_FLAGS)
        yield chromium.new_page(), Path(folder)
        chromium.close()
