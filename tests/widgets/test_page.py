from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from qbench.errors import ExportError
from qbench.session.session import Session
from qbench.widgets import Histogram, IRDiff, Workbench
from tests.hostile import hostile_session
from tests.networks import mlp, samples


class Elements(HTMLParser):
    """Texts of a page by element, and what it would fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: dict[str, list[str]] = {}
        self.sources, self.meta, self._tag = list[str](), dict[str, str](), ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._tag = given.get("id") or tag
        self.texts.setdefault(self._tag, []).append("")
        self.sources += [value for key, value in attrs if key in ("src", "href") and value]
        if tag == "meta" and "http-equiv" in given:
            self.meta[given["http-equiv"]] = given["content"] or ""

    def handle_data(self, data: str) -> None:
        if self._tag:
            self.texts[self._tag][-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._tag = ""


def data_of(text: str) -> dict[str, Any]:
    """What a page draws."""
    return json.loads(gzip.decompress(base64.b64decode(Elements(text).texts["qbench-data"][0])))


@pytest.fixture
def session() -> Session:
    return Session(mlp(), samples(20), samples(30, seed=5))


def test_a_page_is_one_file_that_fetches_nothing_and_runs_one_script(session: Session, tmp_path: Path):
    path = Workbench(session, layer="relu_1").export_html(tmp_path / "bench.html")
    page = Elements(path.read_text("utf-8"))
    assert all(source.startswith("data:image/png;base64,") for source in page.sources)
    (script,) = page.texts["script"]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = page.meta["Content-Security-Policy"]
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    data = data_of(path.read_text("utf-8"))
    assert data["traits"]["tensor"]["layer"] == "relu_1"
    assert {one["layer"] for one in data["tensors"]["layers"]} == {node.name for node in session.prepared.nodes}
    assert data["graphs"]["pairs"]
    assert data["traits"]["status"]["path"] is None  # of the machine that it was made on, nobody needs to know


def test_names_from_models_end_no_element(tmp_path: Path):
    session, names = hostile_session()
    text = Workbench(session).export_html(tmp_path / "bench.html").read_text("utf-8")
    page = Elements(text)
    data = data_of(text)
    assert [row["name"] for row in data["traits"]["layers"]["rows"]] == names
    assert len(re.findall(r"<script", text)) == 2
    assert page.texts["title"] == ["</script><b> - qbench"]


def test_parts_have_pages_of_their_own(session: Session, tmp_path: Path):
    text = Histogram(session, "dense_1.weight").export_html(tmp_path / "one.html").read_text("utf-8")
    data = data_of(text)
    assert [(one["layer"], one["part"]) for one in data["tensors"]["layers"]] == [
        ("dense_1", "activation"),
        ("dense_1", "weight"),
    ]
    text = IRDiff(session).export_html(str(tmp_path / "diff.html")).read_text("utf-8")
    assert "graphs" in data_of(text)


def test_a_page_is_of_the_session_as_it_is_now(session: Session, tmp_path: Path):
    bench = Workbench(session, layer="relu_1")
    bench._receive(None, {"do": "opened"}, None)
    bench._receive(None, {"do": "closed"}, None)  # nobody looks: nothing is drawn
    session.override("relu_1", threshold=0.125)
    session.run()
    text = bench.export_html(tmp_path / "bench.html").read_text("utf-8")
    assert data_of(text)["traits"]["tensor"]["histogram"]["threshold"] == 0.125


def test_a_file_that_cannot_be_written_is_an_error(session: Session, tmp_path: Path):
    with pytest.raises(ExportError, match="cannot write the page to"):
        Histogram(session, "relu_1").export_html(tmp_path / "missing" / "page.html")
