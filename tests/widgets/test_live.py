from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from qbench.errors import Cancelled
from qbench.session.session import Session
from qbench.views import layer_table, outcome
from qbench.widgets import LayerTable, ResultPanel, Workbench
from qbench.widgets.live import Live
from tests.networks import mlp, samples

PATIENCE = 60
Y = np.random.default_rng(6).integers(0, 5, 60)


@pytest.fixture
def session() -> Session:
    return Session(mlp(), samples(20), (samples(60, seed=5), Y), probe_samples=7)


@pytest.fixture
def live(session: Session) -> Live:
    return Live.of(session)


class Gate:
    """Stands before a method of the session: each call waits until it is let through."""

    def __init__(self, session: Session, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.arrived, self.open = threading.Semaphore(0), threading.Semaphore(0)
        self.calls, self._call = 0, getattr(session, name)
        monkeypatch.setattr(session, name, self)

    def __call__(self, *args: Any, cancel: Any = None, **kwargs: Any) -> Any:
        self.calls += 1
        self.arrived.release()
        while not self.open.acquire(timeout=0.01):
            if cancel is not None and cancel.is_set():
                raise Cancelled("stopped")
        return self._call(*args, **kwargs)


def shown(live: Live) -> tuple[str, int, bool]:
    state = live.state()
    return state.report.output.data, state.report.output.samples, state.is_stale


def threshold(session: Session, value: float, name: str = "relu_0") -> Callable[[], None]:
    return lambda: session.override(name, threshold=value)


def test_an_edit_is_probed_first_and_then_evaluated(session: Session, live: Live, monkeypatch: pytest.MonkeyPatch):
    first = session.report
    live.request()
    assert live.wait(PATIENCE)
    baseline = session.last_probe
    gate = Gate(session, "run", monkeypatch)
    live.edit(threshold(session, 0.05))
    assert gate.arrived.acquire(timeout=PATIENCE)
    assert shown(live) == ("probe", 7, False)
    assert live.before == baseline
    assert live.stage.is_busy
    gate.open.release()
    assert live.wait(PATIENCE)
    assert shown(live) == ("evaluation", 60, False)
    assert live.before.output == first.output
    assert not live.stage.is_busy


def test_the_networks_numbers_come_before_those_of_each_layer(session: Session, live: Live):
    live.request()
    assert live.wait(PATIENCE)
    before, seen = session.last_probe, list[tuple[object, bool]]()
    watcher = lambda: seen.append((live.glance, live.shows_probe))  # noqa: E731 watchers are held weakly: a name for it
    live.watchers.add(watcher)
    live.edit(threshold(session, 0.05))
    assert live.wait(PATIENCE)
    glance, shows_probe = next((glance, shows) for glance, shows in seen if glance is not None)
    assert not shows_probe  # layers are those of before
    assert glance.thresholds == {"relu_0": 0.05}
    assert (glance.now, glance.before) == (outcome(session.last_probe.output), outcome(before.output))
    assert glance.samples == 7
    assert live.glance is None  # all numbers are there


def test_a_step_of_a_drag_lets_the_probe_before_it_come_to_a_number_and_others_do_not(
    session: Session, live: Live, monkeypatch: pytest.MonkeyPatch
):
    gate = Gate(session, "probe", monkeypatch)
    live.edit(threshold(session, 0.05), "drag", moves=True)
    assert gate.arrived.acquire(timeout=PATIENCE)
    live.edit(threshold(session, 0.1), "drag", moves=True)
    gate.open.release()
    assert gate.arrived.acquire(timeout=PATIENCE)
    assert live.glance.thresholds == {"relu_0": 0.05}  # not stopped: it came to its number, and no further
    live.edit(threshold(session, 0.2), "drag")
    assert gate.arrived.acquire(timeout=PATIENCE)  # stopped, though nobody let it through
    for _ in range(3):
        gate.open.release()
    assert live.wait(PATIENCE)
    assert session.report.layer("relu_0").threshold == 0.2
    assert [edit.label[-3:] for edit in session.history.edits[1:]] == ["0.2"]


def test_a_page_that_opens_has_the_first_edit_prepared(session: Session):
    bench = Workbench(session)
    assert session.last_probe is None
    bench._receive(None, {"do": "opened"}, None)
    assert bench.wait(PATIENCE)
    assert session.last_probe is not None
    assert not bench.status["is_busy"]


def test_a_newer_edit_stops_the_evaluation_and_its_numbers_are_shown(
    session: Session, live: Live, monkeypatch: pytest.MonkeyPatch
):
    gate = Gate(session, "run", monkeypatch)
    for value in (0.05, 0.1, 0.2):
        live.edit(threshold(session, value))
        assert gate.arrived.acquire(timeout=PATIENCE)
        assert live.state().quantized.config.tensors["relu_0"].threshold == value
        assert shown(live) == ("probe", 7, False)
    gate.open.release()
    assert live.wait(PATIENCE)
    assert gate.calls == 3
    assert session.report.layer("relu_0").threshold == 0.2
    assert shown(live) == ("evaluation", 60, False)


def test_cancelled_it_says_so_keeps_the_probe_and_goes_on_later(
    session: Session, live: Live, monkeypatch: pytest.MonkeyPatch
):
    gate = Gate(session, "run", monkeypatch)
    live.edit(threshold(session, 0.05))
    assert gate.arrived.acquire(timeout=PATIENCE)
    live.cancel()
    assert live.wait(PATIENCE)
    assert (live.stage.is_busy, live.stage.error) == (False, None)
    assert "Re-run goes on" in live.stage.message
    assert shown(live) == ("probe", 7, False)
    gate.open.release()
    live.request()
    assert live.wait(PATIENCE)
    assert shown(live) == ("evaluation", 60, False)


def test_the_steps_of_a_drag_are_one_edit_compared_with_what_was_before_it(session: Session, live: Live):
    first = session.report
    for gesture in ("one", "two"):
        for value in (0.5, 0.4, 0.3):
            live.edit(threshold(session, value, "relu_0" if gesture == "one" else "relu_1"), gesture)
        assert live.wait(PATIENCE)
        if gesture == "one":
            assert live.before == first
    assert [edit.label for edit in session.history.edits] == [
        "start", "override 'relu_0': threshold=0.3", "override 'relu_1': threshold=0.3",
    ]  # fmt: skip
    live.edit(session.undo)
    live.edit(session.undo)
    assert session.config.tensors == {}


def test_an_edit_in_between_ends_a_drag(session: Session, live: Live):
    live.edit(threshold(session, 0.5), "drag")
    session.override("relu_1", threshold=0.7)
    live.edit(threshold(session, 0.4), "drag")
    assert len(session.history.edits) == 4
    live.edit(threshold(session, 0.4), "drag")  # changes nothing
    live.edit(threshold(session, 0.3), "drag")
    assert [edit.label[-3:] for edit in session.history.edits[1:]] == ["0.5", "0.7", "0.3"]


def test_edits_from_elsewhere_are_probed_and_runs_from_elsewhere_are_shown(session: Session, live: Live):
    session.override("relu_0", threshold=0.05)
    assert live.wait(PATIENCE)
    assert session.is_stale  # nobody asked for a whole evaluation
    assert shown(live) == ("probe", 7, False)
    session.run()
    assert live.wait(PATIENCE)
    assert shown(live) == ("evaluation", 60, False)
    assert not live.stage.is_busy


def test_what_was_evaluated_once_is_shown_again_at_once(session: Session, live: Live, monkeypatch: pytest.MonkeyPatch):
    first = session.report
    live.edit(threshold(session, 0.05))
    assert live.wait(PATIENCE)
    gate = Gate(session, "run", monkeypatch)
    live.edit(session.undo)
    assert gate.arrived.acquire(timeout=PATIENCE)
    assert live.state().report == first
    gate.open.release()
    assert live.wait(PATIENCE)


def test_an_error_is_told_and_the_next_edit_goes_on(session: Session, live: Live, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object, **__: object) -> None:
        raise MemoryError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(session, "probe", broken)
        live.edit(threshold(session, 0.05))
        assert live.wait(PATIENCE)
    assert isinstance(live.stage.error, MemoryError)
    live.edit(session.undo)
    assert live.wait(PATIENCE)
    assert live.stage.error is None


def test_latency_is_measured_when_asked(session: Session, live: Live):
    assert live.state().report.output.latency is None
    live.request("latency")
    assert live.wait(PATIENCE)
    assert live.state().report.output.latency.quantized_ms > 0


def test_what_each_layer_gains_alone_in_float_is_measured_on_the_probe(session: Session, live: Live):
    assert live.state().alone_db == {}
    live.request("sensitivity")
    assert live.wait(PATIENCE)
    table = session.sensitivity(progress=False, on="probe")
    whole = session.probe().output.sqnr_db
    assert whole is not None
    assert live.state().alone_db == {
        name: pytest.approx(alone - whole) for name, alone in zip(table["name"], table["sqnr_db"], strict=True)
    }
    assert {row.name: row.alone_db for row in layer_table(live.state()).rows}["dense_0"] is not None
    live.edit(lambda: session.override("relu_0", threshold=0.5))
    assert live.wait(PATIENCE)
    assert live.state().alone_db == {}  # of another config


def test_widgets_of_a_session_stay_in_step(session: Session):
    one, two, table, panel = Workbench(session), Workbench(session), LayerTable(session), ResultPanel(session)
    assert one.wait(PATIENCE)
    one._receive(
        None, {"do": "override", "layer": "relu_0", "part": "activation", "settings": {"threshold": 0.05}}, None
    )
    assert one.wait(PATIENCE)
    for widget in (one, two, panel):
        assert widget.result["now"]["sqnr_db"] == session.report.output.sqnr_db
        assert widget.result["data"] == "evaluation"
    assert two.status["undo"] == one.status["undo"] == "override 'relu_0': threshold=0.05"
    assert table.layers == two.layers
    assert [row["overridden"] for row in table.layers["rows"] if row["overridden"]] == [["threshold"]]
    two._receive(None, {"do": "select", "layer": "dense_1"}, None)
    assert (two.tensor["layer"], one.tensor["layer"] != "dense_1") == ("dense_1", True)


def test_a_view_that_is_nowhere_to_be_seen_is_not_drawn_until_it_is(session: Session):
    panel = ResultPanel(session)
    for do in ("opened", "closed"):
        panel._receive(None, {"do": do}, None)
    old = panel.result
    session.override("relu_0", threshold=0.05)
    session.run()
    assert panel.wait(PATIENCE)
    assert panel.result is old
    panel._receive(None, {"do": "opened"}, None)
    assert panel.result["now"]["sqnr_db"] == session.report.output.sqnr_db


def test_a_closed_widget_follows_no_more_and_a_session_without_widgets_is_let_go():
    session = Session(mlp(), samples(20))
    panel, other = ResultPanel(session), ResultPanel(session)
    panel.close()
    old = panel.result
    session.override("relu_0", threshold=0.05)
    session.run()
    assert other.wait(PATIENCE)
    assert panel.result is old
    assert other.result["now"]["sqnr_db"] == session.report.output.sqnr_db
    other.close()
    live, gone = weakref.ref(other._live), weakref.ref(session)
    del session, panel, other
    gc.collect()
    assert (live(), gone()) == (None, None)
