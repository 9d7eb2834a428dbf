"""A few real drags on a real network; ``python -m tests.browser.drag --minutes 60`` does many."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.drag import MODEL, drag


def test_drags_on_a_real_network_keep_the_kernel_its_memory_and_its_numbers(page: Page, tmp_path: Path) -> None:
    if not MODEL.exists():
        pytest.skip(f"{MODEL} is absent (set QBENCH_SHARED_DATA to another place)")
    assert drag(page, tmp_path, minutes=0.1, seed=0) > 0
