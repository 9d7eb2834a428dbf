"""A page with a widget's module and a model that stands in for the kernel."""

from __future__ import annotations

import json
from typing import Any

from playwright.sync_api import Page

from qbench.widgets.modules import module, style

THEMES = {
    "light": "",
    # what JupyterLab's dark theme sets
    "dark": """--jp-ui-font-color1: rgba(255,255,255,1); --jp-ui-font-color2: rgba(255,255,255,0.7);
      --jp-layout-color1: #111; --jp-layout-color2: #212121; --jp-border-color2: #424242; --jp-brand-color1: #2196f3;
      --jp-success-color1: #4caf50; --jp-warn-color1: #ff9800; --jp-error-color1: #f44336; color-scheme: dark;""",
}
STATUS: dict[str, Any] = {
    "title": "mlp", "is_busy": False, "message": "", "progress": None, "error": None, "undo": None, "redo": None,
    "path": None,
}  # fmt: skip
"""What a widget says while nothing goes on."""
BENCH_STATUS: dict[str, Any] = {**STATUS, "folder": "out", "files": {}, "usual": []}
"""The same of a workbench."""
_RENDER = """async ([code, data]) => {
  const listeners = {};
  const model = {
    get: (name) => data[name],
    on: (name, f) => (listeners[name] ??= new Set()).add(f),
    off: (name, f) => listeners[name]?.delete(f),
    send: (message) => window.sent.push(message),
  };
  window.sent = [];
  window.update = (name, value) => {
    data[name] = value;
    for (const f of listeners[`change:${name}`] ?? []) f();
  };
  window.happen = (event) => {
    for (const f of listeners[event] ?? []) f();
  };
  window.listening = () => Object.values(listeners).reduce((sum, set) => sum + set.size, 0);
  const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  window.remove = (await import(url)).default.render({ model, el: document.getElementById("here") });
}"""


class Stub:
    """A widget in a page, fed with plain data; a workbench without a height has all parts below each other."""

    def __init__(
        self, page: Page, data: dict[str, Any], *, width: int = 1180, theme: str = "light", widget: str = "workbench"
    ) -> None:
        self.page, self.errors = page, list[str]()
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.set_viewport_size({"width": width, "height": 1250})
        page_style = f"body {{ margin: 8px; {THEMES[theme]} background: var(--jp-layout-color1, white) }}"
        page.set_content(
            f"<!doctype html><html lang=en><title>qbench</title><style>{style()}{page_style}</style>"
            "<body><div id=here></div></body></html>"
        )
        data = {**data, "height": data.get("height") or 0} if widget == "workbench" else data
        page.evaluate(_RENDER, [module(widget), json.loads(json.dumps(data, allow_nan=False))])

    def sent(self) -> list[dict[str, Any]]:
        """What the view sent to the kernel so far."""
        every = [{**message} for message in self.page.evaluate("window.sent")]
        for message in every:
            assert message.pop("id")
        return [message for message in every if message["do"] not in ("opened", "closed")]

    def answer(self, status: dict[str, Any]) -> None:
        """Answer what was sent so far with a status, as the kernel would."""
        self.update(status=status | {"answered": self.page.evaluate("window.sent.map((message) => message.id)")})

    def update(self, **data: Any) -> None:
        """Change traits as the kernel would."""
        for name, value in data.items():
            self.page.evaluate("([name, value]) => window.update(name, value)", [name, value])
