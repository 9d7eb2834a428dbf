from __future__ import annotations

import base64
import io
import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from qbench.errors import SessionError
from qbench.session.session import Session
from qbench.widgets import Workbench
from qbench.widgets.modules import module, style
from tests.engine.networks import mlp, samples

Y = np.random.default_rng(6).integers(0, 5, 30)
PATIENCE = 60


@pytest.fixture
def session() -> Session:
    return Session(mlp(), samples(20), (samples(30, seed=5), Y))


@pytest.fixture
def bench(session: Session, tmp_path: Path) -> Workbench:
    return Workbench(session, layer="relu_1", folder=tmp_path / "out")


def send(bench: Workbench, **message: Any) -> None:
    bench._receive(None, message, None)
    assert bench.wait(PATIENCE)


def override(bench: Workbench, layer: str = "relu_1", part: str = "activation", **settings: Any) -> None:
    send(bench, do="override", layer=layer, part=part, settings=settings)


def test_it_runs_what_was_not_run_and_shows_it(bench: Workbench, session: Session):
    assert not session.is_stale
    assert bench.result["now"]["sqnr_db"] == session.report.output.sqnr_db
    assert [row["name"] for row in bench.layers["rows"]] == [node.name for node in session.prepared.nodes]
    assert (bench.tensor["layer"], bench.status["undo"]) == ("relu_1", None)


def test_an_override_runs_and_undo_takes_it_back(bench: Workbench, session: Session):
    first = bench.result["now"]["sqnr_db"]
    override(bench, threshold=0.05)
    assert session.config.tensors["relu_1"].threshold == 0.05
    assert bench.result["now"]["sqnr_db"] < bench.result["before"]["sqnr_db"] == first
    assert bench.tensor["histogram"]["threshold"] == 0.05
    assert "threshold=0.05" in bench.status["undo"]
    send(bench, do="undo")
    assert bench.result["now"]["sqnr_db"] == first
    assert bench.status["undo"] is None
    send(bench, do="redo")
    assert bench.result["before"]["sqnr_db"] == first
    send(bench, do="reset", layer="relu_1", part="activation")
    assert bench.result["now"]["sqnr_db"] == first
    assert session.config.tensors == {}


def test_a_weight_is_overridden_by_its_own_name(bench: Workbench, session: Session):
    send(bench, do="select", layer="dense_1", part="weight")
    assert bench.tensor["histogram"]["channels"] == 8
    override(bench, "dense_1", "weight", axis="tensor")
    assert set(session.config.tensors) == {"dense_1.weight"}
    assert bench.tensor["histogram"]["channels"] == 1
    assert bench.tensor["curves"] is not None


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"do": "undo"}, "nothing to undo"),
        ({"do": "select", "layer": "relu1"}, "relu_1"),
        ({"do": "override", "layer": "relu_1", "part": "activation", "settings": {"treshold": 1}}, "threshold"),
        ({"do": "override", "layer": "nobody", "part": "activation", "settings": {}}, "no layer is called 'nobody'"),
        ({"do": "override", "layer": "relu_1", "part": "activation", "settings": {"threshold": -1}}, "-1"),
        ({"do": "compare", "before": -4, "after": 2}, "no step -4"),
        ({"do": "fly"}, "means nothing"),
        ({}, "means nothing"),
    ],
)
def test_what_goes_wrong_is_shown_and_changes_nothing(bench: Workbench, message: dict[str, Any], words: str):
    before = bench.result
    send(bench, **message)
    assert words in bench.status["error"]["text"]
    assert "Nothing was changed" in bench.status["error"]["text"]
    assert bench.result == before
    send(bench, do="dismiss")
    assert bench.status["error"] is None


def test_an_edit_that_cannot_be_run_says_how_to_take_it_back(bench: Workbench, session: Session):
    override(bench, calibrator={"name": "registered", "callable": "nobody"})
    assert "no calibrator is registered as 'nobody'" in bench.status["error"]["text"]
    assert "Undo takes the last edit back" in bench.status["error"]["text"]
    assert "image/png" not in bench._repr_mimebundle_()[0]
    send(bench, do="undo")
    assert bench.status["error"] is None
    assert not session.is_stale


def test_any_exception_is_shown(bench: Workbench, session: Session, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("division by <zero>")

    monkeypatch.setattr(session, "run", broken)
    override(bench, threshold=0.3)
    assert "ZeroDivisionError: division by <zero>" in bench.status["error"]["text"]
    assert not bench.status["is_busy"]


def test_steps_of_the_pipeline_can_be_compared(bench: Workbench):
    send(bench, do="compare", before=0, after=1)
    assert (bench.graph["before"], bench.graph["after"]) == (0, 1)
    override(bench, threshold=0.3)
    assert (bench.graph["before"], bench.graph["after"]) == (0, 1)


def test_edits_from_many_threads_end_with_the_newest(bench: Workbench, session: Session):
    thresholds = [0.1 + i / 10 for i in range(8)]
    threads = [
        threading.Thread(
            target=bench._receive,
            args=(
                None,
                {"do": "override", "layer": "relu_1", "part": "activation", "settings": {"threshold": t}},
                None,
            ),
        )
        for t in thresholds
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert bench.wait(PATIENCE)
    assert not session.is_stale
    assert bench.tensor["histogram"]["threshold"] == session.config.tensors["relu_1"].threshold
    assert bench.result["now"]["sqnr_db"] == session.report.output.sqnr_db
    assert bench.status["error"] is None


def test_edits_from_a_cell_are_shown_on_refresh(bench: Workbench, session: Session):
    session.override("relu_0", threshold=0.2)
    bench.refresh()
    assert bench.wait(PATIENCE)
    assert bench.result["now"]["sqnr_db"] == session.report.output.sqnr_db
    assert "relu_0" in bench.status["undo"]


def test_without_a_kernel_there_is_a_picture_and_no_address(bench: Workbench):
    data, _ = bench._repr_mimebundle_()
    assert {"text/plain", "image/png", "application/vnd.jupyter.widget-view+json"} <= set(data)
    assert repr(bench) == "Workbench(mlp, 9 layers)"
    assert "0x" not in data["text/plain"]
    picture = base64.b64decode(data["image/png"])
    assert len(picture) < 150_000
    with Image.open(io.BytesIO(picture)) as image:
        assert image.width > 1000


def test_all_that_is_sent_is_strict_json(bench: Workbench):
    for name in ("layers", "tensor", "result", "graph", "status"):
        json.dumps(getattr(bench, name), allow_nan=False)


def test_wrong_arguments_are_refused(session: Session):
    with pytest.raises(TypeError, match="layerr"):
        Workbench(session, layerr="relu_1")
    with pytest.raises(SessionError, match="'relu_1'"):
        Workbench(session, layer="relu1")


def test_modules_are_linked_into_one():
    text = module("workbench")
    assert "import " not in text.replace('"', "").split("export default")[0].replace("imports nothing", "")
    assert text.count("export default") == 1
    assert text.count("const $dom = ") == 1
    assert text.index("const $dom") < text.index("const $histogram")
    assert ".qb" in style()
