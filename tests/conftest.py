"""Fixtures that every test may use: where data is, and which browser to drive."""

from __future__ import annotations

import gc
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import is_hypothesis_test, settings

from qbench.parity.onnxruntime import saturates

ROOT = Path(__file__).resolve().parent.parent
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
# A root user's container has no sandbox and no GPU; the rest keeps the browser from calling home.
BROWSER_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

# How long an example takes says more about what else the machine does than about the code.
settings.register_profile("qbench", deadline=None, derandomize=bool(os.environ.get("CI")))  # CI decides the same twice
settings.load_profile("qbench")


def pytest_collection_finish() -> None:
    """What was imported stays, and most of what is compiled: looking for garbage in it takes a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(gc.get_threshold()[0], 10, 100)


def pytest_sessionfinish() -> None:
    """Look once for what nobody closed; pytest looks five times more."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With QBENCH_EXAMPLES=N, so many examples of each property have to do."""
    few = int(os.environ.get("QBENCH_EXAMPLES", 0))
    for item in items:
        test = getattr(item, "obj", None)
        if few and is_hypothesis_test(test):  # there is no public way to change what the test's own decorator says
            usual = test._hypothesis_internal_use_settings
            test._hypothesis_internal_use_settings = settings(usual, max_examples=min(usual.max_examples, few))


_STATES: dict[np.random.Generator, dict[str, Any]] = {}


@pytest.fixture(autouse=True)
def same_numbers(request: pytest.FixtureRequest) -> None:
    """Each test draws the same of its module's generator, whichever tests drew from it before on the same worker."""
    for made in vars(request.module).values():
        if isinstance(made, np.random.Generator):
            made.bit_generator.state = _STATES.setdefault(made, made.bit_generator.state)


def _folder(variable: str, default: Path) -> Path:
    folder = Path(os.environ.get(variable, default))
    if not folder.is_dir():
        absent = f"{folder} is absent (set {variable} to another place)"
        if os.environ.get("QBENCH_DEMAND_SHARED") == "1":
            pytest.fail(f"QBENCH_DEMAND_SHARED=1, but {absent}")
        pytest.skip(absent)
    return folder


def find_browser() -> Path | None:
    """The Chromium that the environment names, else the first that is on the path."""
    chosen = os.environ.get("QBENCH_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    return Path(chosen) if chosen else None


@pytest.fixture(scope="session")
def onnxruntime_saturates() -> bool:
    """Whether onnxruntime's products of 8 bits are no oracle: without VNNI it adds pairs of them in 16 bits."""
    return saturates()


@pytest.fixture(scope="session")
def exact_onnxruntime(onnxruntime_saturates: bool) -> None:
    """Skips where onnxruntime's integers are no oracle."""
    if onnxruntime_saturates:
        pytest.skip("onnxruntime's sums of 8-bit products saturate on this processor, which has no VNNI")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The models and digits of this repository."""
    return ROOT / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Models and images that are too large for this repository."""
    return _folder("QBENCH_SHARED_DATA", ROOT.parent / "shared" / "data")


@pytest.fixture(scope="session")
def shared_conformance() -> Path:
    """Test vectors recorded from other tools."""
    return _folder("QBENCH_SHARED_CONFORMANCE", ROOT.parent / "shared" / "conformance")


@pytest.fixture(scope="session")
def chromium() -> Path:
    """The system's Chromium, which the browser tests drive."""
    chosen = find_browser()
    if chosen is None:
        pytest.skip("no Chromium on this machine (install the system's package, or set QBENCH_CHROMIUM)")
    return chosen


@pytest.fixture(scope="session")
def browser_type_launch_args(chromium: Path) -> dict[str, object]:
    """Make pytest-playwright launch the system's browser instead of one of its own downloads."""
    return {"executable_path": str(chromium), "args": BROWSER_FLAGS, "headless": True}


@pytest.fixture(scope="session")
def base_url() -> None:
    """Replace the fixture of pytest-base-url, whose form pytest 9 warns of; no test needs a base address."""
