from __future__ import annotations

import base64
import io
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from qbench.errors import Cancelled, SessionError
from qbench.search.front import Front
from qbench.session.session import Session
from qbench.widgets import LayerTable, ResultPanel, Workbench, pictured
from qbench.widgets.modules import module, style
from tests.networks import mlp, samples
from tests.parity.comparisons import comparison
from tests.widgets.test_page import data_of

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
        ({"do": "go_to", "position": 7}, "outside a history of 1"),
        ({"do": "restore", "name": "nobody"}, "no snapshot 'nobody'"),
        ({"do": "forget", "name": "nobody"}, "no snapshot 'nobody'"),
        ({"do": "compare_versions", "before": "edit 0", "after": "edit 9"}, "no version"),
        ({"do": "load_config", "path": "/nowhere/config.json"}, "/nowhere/config.json"),
        ({"do": "load_config", "name": "x.json", "text": "{]"}, "JSON"),
        ({"do": "load_config", "name": "x.json", "text": '{"tensors": {"relu_9": {"threshold": 1}}}'}, "relu_"),
        ({"do": "save_config", "path": "/proc/none/config.json"}, "cannot write the config"),
        ({"do": "export", "folder": "/proc/none", "files": ["config.json"]}, "cannot write to '/proc/none'"),
        ({"do": "export", "folder": "/proc/none", "files": ["workbench.html"]}, "cannot write to '/proc/none'"),
        ({"do": "export", "folder": "out", "files": []}, "choose what to write"),
        ({"do": "export", "folder": "out", "files": ["../evil"]}, "not '../evil'"),
        ({"do": "override_many", "layers": [], "part": "activation", "settings": {"dtype": "int8"}}, "nothing to"),
        ({"do": "override_many", "layers": ["y"], "part": "activation", "settings": {"dtype": "int8"}}, "'y'"),
        ({"do": "reset_many", "layers": ["relu_0", "y"]}, "has an override"),
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


def test_an_error_says_where_it_happened_and_goes_with_the_next_action(bench: Workbench):
    send(bench, do="restore", name="nobody", where="history")
    assert bench.status["error"]["where"] == "history"
    send(bench, do="select", layer="relu_0")
    assert bench.status["error"] is None


def test_several_layers_are_edited_and_reset_as_one_edit(bench: Workbench, session: Session):
    layers = ["relu_0", "dense_1", "relu_1"]  # the last two are of one group
    send(bench, do="override_many", layers=layers, part="activation", settings={"dtype": "int8"})
    assert {name: override.dtype for name, override in session.config.tensors.items()} == {
        "relu_0": "int8", "relu_1": "int8",
    }  # fmt: skip
    send(bench, do="override_many", layers=["dense_0", "dense_1"], part="weight", settings={"axis": "tensor"})
    assert session.config.tensors["dense_1.weight"].axis == "tensor"
    assert len(session.history.edits) == 3
    send(bench, do="reset_many", layers=["dense_1", "relu_0"])
    assert set(session.config.tensors) == {"dense_0.weight"}
    assert len(session.history.edits) == 4
    assert bench.result["now"]["sqnr_db"] == session.report.output.sqnr_db


def test_history_goes_anywhere_and_snapshots_come_back(bench: Workbench, session: Session):
    send(bench, do="snapshot", name=" first ")
    send(bench, do="snapshot", name="")
    assert [one["name"] for one in bench.history["snapshots"]] == ["first", "snapshot 2"]
    override(bench, threshold=0.05)
    override(bench, threshold=0.06)
    send(bench, do="go_to", position=0)
    assert [one["state"] for one in bench.history["edits"]] == ["now", "undone", "undone"]
    assert bench.history["edits"][2]["outcome"]["sqnr_db"] < bench.history["edits"][0]["outcome"]["sqnr_db"]
    send(bench, do="compare_versions", before="snapshot first", after="edit 2")
    assert bench.versions["settings"] == [{"path": "tensors.relu_1.threshold", "before": None, "after": "0.06"}]
    assert bench.versions["layers"]
    send(bench, do="go_to", position=2)
    send(bench, do="restore", name="first")
    assert session.config.tensors == {}
    assert bench.status["undo"] == "restore snapshot 'first'"
    send(bench, do="forget", name="first")
    assert [one["name"] for one in bench.history["snapshots"]] == ["snapshot 2"]
    assert bench.versions == {}


def test_configs_are_saved_and_loaded(bench: Workbench, session: Session, tmp_path: Path):
    override(bench, threshold=0.05)
    path = str(tmp_path / "config.json")
    send(bench, do="save_config", path=path)
    assert bench.status["message"] == f"Saved the config to {path}"
    send(bench, do="undo")
    send(bench, do="load_config", path=path)
    assert session.config.tensors["relu_1"].threshold == 0.05
    send(bench, do="load_config", name="other.json", text='{"weights": {"axis": null}}')
    assert (session.config.weights.axis, bench.status["undo"]) == (None, "load 'other.json'")


def test_what_is_exported_can_be_chosen(bench: Workbench, tmp_path: Path):
    send(bench, do="export", folder=str(tmp_path / "a"), files=["config.json", "workbench.html", "overrides.json"])
    assert {path.name for path in (tmp_path / "a").iterdir()} == {"config.json", "overrides.json", "workbench.html"}
    assert bench.status["message"].startswith("Wrote config.json, overrides.json, workbench.html to")
    send(bench, do="export", folder=str(tmp_path / "b" / "c"), files=["workbench.html"])
    assert [path.name for path in (tmp_path / "b" / "c").iterdir()] == ["workbench.html"]
    assert {path.name for path in bench.export()} == set(bench.status["usual"])
    (tmp_path / "d" / "overrides.json" / "in the way").mkdir(parents=True)
    send(bench, do="export", folder=str(tmp_path / "d"), files=["config.json", "overrides.json"], where="export")
    said = bench.status["error"]["text"].splitlines()
    assert "overrides.json" in said[0]
    assert said[1:] == ["Written before that: config.json.", "The session is as it was."]


def test_it_says_where_it_is_saved(bench: Workbench, tmp_path: Path):
    assert bench.status["path"] is None
    saved = Workbench(Session(mlp(), samples(20), path=tmp_path / "s"))
    assert saved.status["path"] == str(tmp_path / "s")


def test_an_edit_from_a_cell_shows_the_numbers_of_the_probe_and_says_so(bench: Workbench, session: Session):
    assert bench.wait(PATIENCE)
    session.override("relu_0", threshold=0.2)
    assert bench.wait(PATIENCE)
    assert bench.result["data"] == "probe"
    assert bench.status["message"] == "numbers of the probe; Re-run evaluates all data"
    send(bench, do="run")
    assert (bench.result["data"], bench.status["message"]) == ("evaluation", "")


def test_parts_stand_alone(session: Session):
    table, panel = LayerTable(session), ResultPanel(session)
    assert (repr(table), repr(panel)) == ("LayerTable(mlp, 9 layers)", "ResultPanel(mlp, 9 layers)")
    table._receive(None, {"do": "select", "layer": "relu_1"}, None)
    assert table.selected == "relu_1"
    table._receive(None, {"do": "select", "layer": "relu1"}, None)
    assert "relu_1" in table.status["error"]["text"]
    for widget in (table, panel):
        assert "image/png" in widget._repr_mimebundle_()[0]
        assert json.loads(json.dumps(widget.view().to_dict(), allow_nan=False))


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


@pytest.mark.parametrize("apart", [True, False])
def test_the_picture_is_an_output_of_its_own_where_the_live_view_can_hide_it(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, apart: bool
):
    outputs: list[set[str]] = []
    monkeypatch.setattr(pictured, "display", lambda data, **_: outputs.append(set(data)))
    monkeypatch.delenv("VSCODE_PID", raising=False)
    if not apart:
        monkeypatch.setenv("VSCODE_PID", "1")
    bench._ipython_display_()
    view = {"text/plain", "application/vnd.jupyter.widget-view+json"}
    assert outputs == ([view, {"image/png"}] if apart else [view | {"image/png"}])


def test_every_message_is_answered(bench: Workbench):
    for message in ({"do": "opened", "id": "a"}, {"do": "dismiss", "id": "b"}, {"do": "nonsense", "id": "c"}):
        bench._receive(None, message, None)
        assert bench.status["answered"][-1] == message["id"]


def test_an_edit_is_not_answered_before_it_is_made(bench: Workbench, monkeypatch: pytest.MonkeyPatch):
    bench.wait()
    before, real, seen = bench._session.generation, bench._do, list[int]()

    def see(change: Any) -> None:
        if "me" in change["new"]["answered"]:
            seen.append(bench._session.generation)

    def meanwhile(message: Any) -> None:
        bench._changed()  # as the thread of an evaluation does at any time
        real(message)

    monkeypatch.setattr(bench, "_do", meanwhile)
    bench.observe(see, "status")
    edit = {"do": "override", "layer": "relu_0", "part": "activation", "settings": {"threshold": 0.05}, "id": "me"}
    bench._receive(None, edit, None)
    bench.wait()
    assert seen and min(seen) > before


def test_all_that_is_sent_is_strict_json(bench: Workbench):
    for name in ("layers", "tensor", "result", "graph", "history", "versions", "exactness", "status"):
        json.dumps(getattr(bench, name), allow_nan=False)


def test_wrong_arguments_are_refused(session: Session):
    with pytest.raises(TypeError, match="layerr"):
        Workbench(session, layerr="relu_1")
    with pytest.raises(SessionError, match="'relu_1'"):
        Workbench(session, layer="relu1")


def test_a_comparison_is_shown_and_stays_when_the_session_is_edited(session: Session, tmp_path: Path):
    bench = Workbench(session, comparison(names=("relu_0", "relu_1", "elsewhere")))
    assert [one["layer"] for one in bench.exactness["layers"]] == ["relu_0", "relu_1", None]
    shown = bench.exactness
    override(bench, threshold=0.3)
    assert bench.exactness == shown
    page = data_of(bench.export_html(tmp_path / "bench.html").read_text("utf-8"))
    assert page["traits"]["exactness"] == shown


def test_repairs_are_found_applied_and_undone(bench: Workbench, session: Session, tmp_path: Path):
    override(bench, "dense_1", "weight", dtype="int4", axis="tensor")
    assert bench.repairs == {}
    send(bench, do="repairs", where="repairs")
    assert bench.status["error"] is None
    before, rows = session.config, bench.repairs["rows"]
    assert rows
    assert not any(row["is_applied"] for row in rows)
    page = data_of(bench.export_html(tmp_path / "bench.html").read_text("utf-8"))
    assert page["traits"]["repairs"] == bench.repairs
    send(bench, do="apply", repair=0, label=rows[0]["label"], where="repairs")
    assert session.config != before
    assert (bench.status["undo"], bench.repairs["is_stale"]) == (rows[0]["label"], True)
    assert bench.repairs["rows"][0]["is_applied"]
    gain = bench.result["now"]["sqnr_db"] - bench.result["before"]["sqnr_db"]
    assert gain == pytest.approx(rows[0]["gain_db"], abs=1e-5)  # dB; a search sums in another order
    send(bench, do="undo")
    assert session.config == before
    assert bench.repairs["rows"] == rows
    send(bench, do="apply", repair=len(rows), label="gone", where="repairs")
    assert "no longer in the list of repairs" in bench.status["error"]["text"]
    assert session.config == before


def test_a_search_draws_points_to_take(bench: Workbench, session: Session, tmp_path: Path):
    override(bench, "dense_1", "weight", dtype="int4", axis="tensor")
    assert bench.front == {}
    send(bench, do="search", at_least=60.0, max_ms=None, seconds=20, where="front")
    assert bench.status["error"] is None
    points = bench.front["points"]
    assert (points[0]["label"], points[0]["is_current"]) == ("start", True)
    assert len(points) > 1
    page = data_of(bench.export_html(tmp_path / "bench.html").read_text("utf-8"))
    assert page["traits"]["front"] == bench.front
    place = len(points) - 1
    send(bench, do="take", point=place, label=points[place]["label"], where="front")
    assert session.front is not None
    assert session.config == session.front.rows[place].config
    assert [point["is_current"] for point in bench.front["points"]].index(True) <= place
    assert bench.status["undo"] == f"take {points[place]['label']}"
    assert len(bench.figure().subfigs) == 2
    before = session.config
    send(bench, do="take", point=place + 1, label="gone", where="front")
    assert "no longer in the plot" in bench.status["error"]["text"]
    send(bench, do="search", at_least=None, max_ms=-1, seconds=1, where="front")
    assert "max_ms=-1: it must be a positive number" in bench.status["error"]["text"]
    assert session.config == before


def test_points_come_while_the_search_goes_on_and_cancel_ends_it(
    bench: Workbench, session: Session, monkeypatch: pytest.MonkeyPatch
):
    seen = list[tuple[int, str]]()

    def told(front: Front) -> None:
        seen.append((len(bench.front["points"]), bench.status["message"]))
        bench._receive(None, {"do": "cancel"}, None)

    search = session.search
    monkeypatch.setattr(session, "search", lambda **options: search(**{**options, "tell": both(options["tell"], told)}))
    send(bench, do="search", at_least=None, max_ms=None, seconds=None, where="front")
    assert [count for count, _ in seen] == [1]
    assert seen[0][1].startswith("searching: 1 configs measured, best so far")
    assert bench.front["stopped"]


def both(*functions: Callable[[Front], object]) -> Callable[[Front], None]:
    def each(front: Front) -> None:
        for function in functions:
            function(front)

    return each


def test_an_edit_stops_the_search_for_repairs_and_it_starts_anew(
    bench: Workbench, session: Session, monkeypatch: pytest.MonkeyPatch
):
    begun, configs = threading.Event(), list[object]()

    def advice(*, progress: Any, cancel: threading.Event) -> tuple[()]:
        configs.append(session.config)
        progress("repairs", 1, 4)
        assert bench.status["is_finding"]
        assert (bench.status["message"], bench.status["progress"]) == ("finding repairs: 1 of 4 tried", 0.25)
        begun.set()
        if len(configs) == 1:
            assert cancel.wait(PATIENCE)
            raise Cancelled("an edit came")
        return ()

    monkeypatch.setattr(session, "advice", advice)
    bench._receive(None, {"do": "repairs"}, None)
    assert begun.wait(PATIENCE)
    override(bench, threshold=0.05)
    assert bench.status["error"] is None
    assert configs[-1] == session.config != configs[0]
    assert bench.repairs == {"rows": [], "metric_name": None, "is_stale": False}
    assert not bench.status["is_finding"]


def test_cancel_stops_the_search_for_repairs(bench: Workbench, session: Session, monkeypatch: pytest.MonkeyPatch):
    begun = threading.Event()

    def advice(*, progress: Any, cancel: threading.Event) -> tuple[()]:
        begun.set()
        assert cancel.wait(PATIENCE)
        raise Cancelled("enough")

    monkeypatch.setattr(session, "advice", advice)
    bench._receive(None, {"do": "repairs"}, None)
    assert begun.wait(PATIENCE)
    send(bench, do="cancel")
    assert (bench.repairs, bench.status["is_finding"], bench.status["error"]) == ({}, False, None)


def test_modules_are_linked_into_one():
    text = module("workbench")
    assert not any(line.lstrip().startswith("import ") for line in text.splitlines())
    assert text.count("export default") == 1
    assert text.count("const $dom = ") == 1
    assert text.index("const $dom") < text.index("const $histogram")
    assert ".qb" in style()


def test_what_is_no_session_is_refused_with_the_way_to_make_one():
    with pytest.raises(SessionError, match=r"shows a session, not str: make one with qbench.Session"):
        Workbench("model.onnx")


def test_results_are_compared_with_the_start_and_flips_have_names(session: Session):
    bench = Workbench(session, labels=["zero", "one", "two", "three", "four"])
    session.snapshot("kept")
    send(bench, do="override", layer="relu_0", part="activation", settings={"threshold": 0.02})
    labels = [one["label"] for one in bench.result["baselines"]]
    assert labels == ["start", "snapshot kept"]
    assert bench.result["flips"]
    assert all(set(flip["names"][:2]) <= {"zero", "one", "two", "three", "four"} for flip in bench.result["flips"])
