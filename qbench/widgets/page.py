"""One file to mail: a widget as a web page, which needs no kernel, no network and no other file."""

import base64
import gzip
import hashlib
import html
import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from qbench.files import exported, write_text
from qbench.widgets.modules import FOLDER, page_module, style

# Nothing is fetched, and only the one script runs whose digest is said here, and workers that it makes: names from
# models cannot bring another.
_POLICY = (
    "default-src 'none'; script-src 'sha256-{}'; style-src 'unsafe-inline'; img-src data:; worker-src blob:; "
    "base-uri 'none'; form-action 'none'"
)
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width">
<meta name="generator" content="qbench">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main id="qbench"></main>
<p class="qb-made">{about}</p>
<noscript><img src="data:image/png;base64,{picture}" alt="{title}"></noscript>
<script type="application/gzip" id="qbench-data">{data}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def page(widget: str, title: str, data: Mapping[str, Any], picture: bytes) -> str:
    """The text of a page.

    Parameters
    ----------
    widget
        Its module, as `qbench.widgets.modules.module` gave it.
    title
        Of the page; may be any text.
    data
        ``traits``, perhaps ``made`` (a time) and ``config`` (its JSON), and what `qbench.views.still_tensors` and
        `qbench.views.still_graphs` gave as ``tensors`` and ``graphs``.
    picture
        PNG for where scripts do not run, as in a mail's preview.
    """
    script = page_module(widget)
    return _PAGE.format(
        policy=_POLICY.format(base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()),
        title=html.escape(f"{title[:200]} - qbench"),
        style=f"{style()}\n{(FOLDER / 'page.css').read_text('utf-8')}",
        about=_about(data),
        picture=base64.b64encode(picture).decode(),
        data=_embedded(data),
        script=script,
    )


def _about(data: Mapping[str, Any]) -> str:
    """When it was made and by which config, as HTML."""
    made = f" on {html.escape(str(data['made']))}" if "made" in data else ""
    said = f"Made by qbench{made}. Drawn from what this file holds: nothing is fetched, and nothing is sent."
    if "config" not in data:
        return said
    config = html.escape(str(data["config"]))
    return f"{said}</p><details class=qb-made><summary>Config</summary><pre>{config}</pre></details><p>"


def write_page(path: str | PathLike[str], text: str) -> Path:
    """Write a page; ExportError where that fails."""
    path = Path(path)
    with exported(path, "the page to "):
        write_text(path, text)
    return path


def _embedded(data: Mapping[str, Any]) -> str:
    """Strict JSON, compressed, in letters of which none can end the element that it stands in."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
