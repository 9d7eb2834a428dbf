"""Facts about ops are asked of the ops: how often their names still stand elsewhere, which may only fall."""

from __future__ import annotations

import re
from collections import Counter

from tests.conftest import ROOT

MOST = 22
"""Lower it when names go; never raise it: declare what is missing on `qbench.ir.op.Op`, or use `is_op`."""

AT_HOME = ("ops", "forms", "formats", "frontends", "exporters")
"""Where ops are declared, made and translated."""


def test_names_with_a_dialect_become_no_more() -> None:
    found: Counter[str] = Counter()
    for path in sorted((ROOT / "qbench").rglob("*.py")):
        place = path.relative_to(ROOT / "qbench")
        if place.parts[0] not in AT_HOME:
            found[str(place)] = len(re.findall(r'"(?:nn|qnn|integer|tflite|onnx)\.[a-z0-9_]+"', path.read_text()))
    assert found.total() <= MOST, found.most_common(20)


def test_the_runtime_names_no_op() -> None:
    names = re.compile(r'"(?:nn|qnn|integer)\.[a-z0-9_]+"|\.op (?:==|!=|in|not in) [("]')
    paths = sorted((ROOT / "qbench" / "runtime").rglob("*.py"))
    assert paths and [path.name for path in paths if names.search(path.read_text())] == []
