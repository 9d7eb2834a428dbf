"""Networks as exporters write them give onnxruntime's outputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.frontends.architectures import ARCHITECTURES, feeds
from tests.frontends.models import check, save


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_architecture(tmp_path: Path, name: str) -> None:
    proto = ARCHITECTURES[name]()
    graph = check(save(proto, tmp_path), feeds(proto))
    ours = {source for node in graph.nodes for source in node.sources}
    assert ours <= {node.name for node in proto.graph.node}
