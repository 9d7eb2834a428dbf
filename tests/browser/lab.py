"""A real JupyterLab for tests: its own folders, its own port, gone when the test is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page

from tests.conftest import ROOT

TOKEN = "qbench"
_START = 300  # seconds that a busy machine may take


# the status bar says idle before the notebook knows its kernel
_READY = """(name) => {
  const context = window.jupyterapp.shell.currentWidget?.context;
  const session = context?.sessionContext;
  return context?.path.endsWith(name) && session?.isReady && session.session?.kernel?.status === "idle";
}"""
_SETTINGS = {
    "notification": {"fetchNews": "false", "checkForUpdates": False},
}


def notebook(path: Path, *cells: str) -> None:
    """Write a notebook; with a kernel in its metadata, or a dialog asks for one."""
    code = [
        {"cell_type": "code", "id": f"c{i}", "metadata": {}, "source": cell, "outputs": [], "execution_count": None}
        for i, cell in enumerate(cells)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path.write_text(json.dumps({"cells": code, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}))


@contextmanager
def jupyterlab(folder: Path, theme: str = "JupyterLab Light") -> Generator[str]:
    """The address of a JupyterLab that serves a folder."""
    home = folder / ".jupyter-test"
    names = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "JUPYTERLAB_WORKSPACES_DIR",
             "JUPYTERLAB_SETTINGS_DIR")  # fmt: skip
    own = {name: str(home / name.lower()) for name in names}
    settings = Path(own["JUPYTERLAB_SETTINGS_DIR"]) / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    for name, values in (_SETTINGS | {"themes": {"theme": theme}}).items():
        (settings / f"{name}.jupyterlab-settings").write_text(json.dumps(values))
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    options = {
        "ServerApp.port": 0, "ServerApp.open_browser": False, "ServerApp.root_dir": str(folder),
        "IdentityProvider.token": TOKEN, "ServerApp.allow_root": True, "LabApp.expose_app_in_browser": True,
        "LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
    }  # fmt: skip
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        *(f"--{key}={value}" for key, value in options.items()),
    ]
    log = folder / "jupyter.log"
    with log.open("w") as output:
        server = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **own, "PYTHONPATH": path}, stdout=output, stderr=output
        )
        try:
            yield _address(server, Path(own["JUPYTER_RUNTIME_DIR"]), log)
        finally:
            server.terminate()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _address(server: subprocess.Popen[bytes], runtime: Path, log: Path) -> str:
    """Wait until the server says where it is, and answers."""
    from tests.browser.waiting import until

    def found() -> str | None:
        assert server.poll() is None, log.read_text()
        for file in runtime.glob("jpserver-*.json"):
            try:
                address = json.loads(file.read_text())["url"]
                urllib.request.urlopen(f"{address}api?token={TOKEN}", timeout=5).close()
            except (OSError, ValueError):
                return None
            return address
        return None

    return until(found, _START)


def run_all(page: Page, address: str, name: str) -> None:
    """Open a notebook, and none that was open, and run its cells."""
    page.goto(f"{address}lab/tree/{name}?token={TOKEN}&reset")
    page.wait_for_function("window.jupyterapp?.commands?.hasCommand('notebook:run-all-cells')", timeout=_START * 1000)
    page.locator(".jp-Notebook .jp-CodeCell").first.wait_for(timeout=_START * 1000)
    page.wait_for_function(_READY, arg=name, timeout=_START * 1000)
    page.evaluate("void window.jupyterapp.commands.execute('notebook:run-all-cells')")  # not: until they have run


def save(page: Page) -> None:
    """Save the notebook that is open, the state of its widgets too."""
    page.evaluate("window.jupyterapp.shell.currentWidget.context.save()")


def restart(page: Page) -> None:
    """Restart the kernel of the notebook that is open: all that it held is gone."""
    page.evaluate("window.jupyterapp.shell.currentWidget.context.sessionContext.session.kernel.restart()")
    page.wait_for_function(_READY, arg="", timeout=_START * 1000)
