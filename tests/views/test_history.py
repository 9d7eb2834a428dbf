from __future__ import annotations

import json

import pytest

from qbench.errors import SessionError
from qbench.quant.config import QuantConfig
from qbench.report.report import Report
from qbench.session.session import Session
from qbench.views import comparison_view, history_view
from tests.networks import mlp, samples


@pytest.fixture
def session() -> Session:
    session = Session(mlp(), samples(20), samples(30, seed=5))
    session.run()
    session.snapshot("as it came")
    session.override("relu_0", threshold=0.05)
    session.override("dense_1", keep_float=True)
    session.undo()
    return session


def nothing(_: QuantConfig) -> Report | None:
    return None


def test_edits_and_snapshots_say_where_they_stand(session: Session):
    first = session.snapshots["as it came"]
    view = history_view(session, lambda config: first.report if config == first.config else None)
    assert [(edit.key, edit.state) for edit in view.edits] == [
        ("edit 0", "done"), ("edit 1", "now"), ("edit 2", "undone"),
    ]  # fmt: skip
    assert view.edits[1].label == "override 'relu_0': threshold=0.05"
    assert view.edits[0].outcome.sqnr_db == first.report.output.sqnr_db
    assert view.edits[1].outcome is None
    (kept,) = view.snapshots
    assert (kept.name, kept.is_now, kept.outcome.sqnr_db) == ("as it came", False, first.report.output.sqnr_db)
    session.undo()
    assert history_view(session, nothing).snapshots[0].is_now


def test_other_sessions_are_compared_too(session: Session):
    report = session.run()
    other = Session(mlp(), samples(40, seed=9), samples(30, seed=5))
    others = {"more data": other}
    assert [(one.key, one.outcome) for one in history_view(session, nothing, others).others] == [
        ("session more data", None)
    ]
    theirs = other.run(progress=False)
    view = comparison_view(session, "session more data", "edit 1", {session.config: report}.get, others)
    assert view.before.outcome.sqnr_db == theirs.output.sqnr_db
    assert [name for name, _, _ in view.profile] == [layer.name for layer in report.by_layer]
    assert {name: (a, b) for name, a, b in view.profile}["relu_0"] == (
        theirs.layer("relu_0").sqnr_db,
        report.layer("relu_0").sqnr_db,
    )
    with pytest.raises(SessionError, match="no version"):
        comparison_view(session, "session gone", "edit 1", nothing, others)


def test_two_versions_are_compared_by_settings_and_by_what_came_of_them(session: Session):
    report = session.run()
    reports = {session.config: report}.get
    view = comparison_view(session, "snapshot as it came", "edit 1", reports)
    assert [(one.path, one.before, one.after) for one in view.settings] == [("tensors.relu_0.threshold", None, "0.05")]
    old = session.snapshots["as it came"].report
    assert view.before.outcome.sqnr_db == old.output.sqnr_db
    assert view.after.outcome.sqnr_db == report.output.sqnr_db
    changed = {one.name: one.gain_db for one in view.layers}
    assert changed["relu_0"] == pytest.approx(report.layer("relu_0").sqnr_db - old.layer("relu_0").sqnr_db)
    gains = [abs(one.gain_db) for one in view.layers]
    assert gains == sorted(gains, reverse=True)
    assert min(gains) >= 0.05
    json.dumps(view.to_dict(), allow_nan=False)


def test_the_histograms_of_a_tensor_lie_over_each_other(session: Session):
    report, other = session.run(), Session(mlp(), samples(40, seed=9), samples(30, seed=5))
    other.run(progress=False)
    reports, others = {session.config: report}.get, {"more data": other}
    view = comparison_view(session, "snapshot as it came", "edit 1", reports, layer="relu_0")
    before, after = view.histograms
    assert (before.counts, before.count) == (after.counts, 20 * 16)
    assert after.threshold == 0.05 < before.threshold
    before, after = comparison_view(session, "session more data", "edit 1", reports, others, "relu_0").histograms
    assert (sum(before.counts), sum(after.counts), max(len(before.counts), len(after.counts)) <= 128) == (
        640,
        320,
        True,
    )
    assert comparison_view(session, "edit 1", "edit 2", reports, layer="relu_0").histograms == ()
    assert comparison_view(session, "edit 1", "edit 1", reports, layer="none").histograms == ()


def test_what_was_not_evaluated_is_compared_by_settings_alone(session: Session):
    view = comparison_view(session, "edit 1", "edit 2", nothing)
    assert (view.before.outcome, view.layers) == (None, ())
    assert [one.path for one in view.settings] == ["layers.dense_1.keep_float"]
    assert comparison_view(session, "edit 1", "edit 1", nothing).settings == ()


@pytest.mark.parametrize("key", ["edit 3", "edit -1", "edit x", "snapshot nobody", "", "now"])
def test_a_version_that_is_not_there_is_an_error(session: Session, key: str):
    with pytest.raises(SessionError, match="no version"):
        comparison_view(session, key, "edit 0", nothing)
