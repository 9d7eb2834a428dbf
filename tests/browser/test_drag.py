"""A few real drags on a real network; ``python -m tests.browser.drag --minutes 60`` does many."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page

from tests.browser.drag import MODEL, drag


def test_drags_on_a_real_network_keep_the_kernel_its_memory_and_its_numbers(
    shared_data: Path, page: Page, tmp_path: Path
) -> None:
    assert MODEL.is_relative_to(shared_data)
    assert drag(page, tmp_path, minutes=0.1, seed=0, calibration=8) > 0  # half of what a session takes to start
