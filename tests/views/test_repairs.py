from __future__ import annotations

import json
from dataclasses import replace

import pytest
from matplotlib.text import Text

from qbench import plots
from qbench.quant.config import QuantConfig
from qbench.search.advice import Advice
from qbench.search.cost import Cost
from qbench.search.judge import Worth
from qbench.search.proposals import global_repairs
from qbench.search.quality import Quality
from qbench.search.repairs import Calibrate, KeepFloat, Repair, Widen
from qbench.session.session import Session
from qbench.views import State, repairs_view, workbench_view
from tests.networks import mlp, samples

INF = float("inf")
NOW = QuantConfig()


@pytest.fixture(scope="module")
def state() -> State:
    return State.of(Session(mlp(), samples(20), samples(20, seed=3)))


def advice(repair: Repair, after: Quality, *, exact: float = INF, more_bytes: int = 0) -> Advice:
    """What a repair gives on a model of 20 dB that a metric calls 0.5, in 2 ms and 1000 bytes."""
    before = Quality(20.0 if exact == INF else 0.5, None, 0.4 if after.held_back else None, 20.0)
    return Advice(
        repair, 3.0, before, after, Quality(exact, None, None, INF), Cost(2.5, 1000 + more_bytes), Cost(2.0, 1000),
        Worth(30.0, 1.1), Worth(20.0, 1.0),
    )  # fmt: skip


def test_decibels_are_a_share_of_the_noise_and_costs_a_share_of_what_there_is(state: State):
    found = advice(KeepFloat("why", ("dense_0", "relu_0")), Quality(30.0, None, None, 30.0), more_bytes=250)
    (row,) = repairs_view(state, NOW, [found], NOW).rows
    assert (row.gain_db, row.gain_metric, row.returned) == (10.0, None, pytest.approx(0.9))
    assert (row.more_ms, row.dearer, row.more_bytes, row.larger) == (0.5, 0.25, 250, 0.25)
    assert row.layers == row.where == ("dense_0", "relu_0")


def test_a_metric_is_a_share_of_what_is_lost(state: State):
    measured = replace(state.report, output=replace(state.report.output, metric_name="AP50", metric=0.5))
    found = advice(KeepFloat("why", ("dense_0",)), Quality(0.65, None, 0.5, 19.0), exact=0.7)
    view = repairs_view(replace(state, report=measured), NOW, [found], NOW)
    (row,) = view.rows
    assert view.metric_name == "AP50"
    assert (row.gain_metric, row.returned) == (pytest.approx(0.15), pytest.approx(0.75))
    assert (row.gain_db, row.gain_held_back) == (-1.0, pytest.approx(0.1))


def test_nothing_lost_and_nothing_measured_are_no_share(state: State):
    rows = repairs_view(
        state,
        NOW,
        [
            advice(KeepFloat("", ("dense_0",)), Quality(0.5, None, None, None), exact=0.5),
            advice(KeepFloat("", ("dense_0",)), Quality(-INF, None, None, None)),
            advice(KeepFloat("", ("dense_0",)), Quality(INF, None, None, INF)),
        ],
        NOW,
    ).rows
    assert [row.returned for row in rows] == [0.0, 0.0, 1.0]
    assert [row.gain_db for row in rows] == [None, None, INF]


def test_tensors_are_marked_by_the_layers_that_make_them(state: State):
    made = state.quantized.prepared.nodes[2]
    (row,) = repairs_view(state, NOW, [advice(Widen("", made.outputs), Quality(30.0, None, None, 30.0))], NOW).rows
    assert row.layers == (made.name,)


def test_what_is_applied_and_what_is_stale_says_so(state: State):
    keep, whole = KeepFloat("", ("dense_0",)), next(r for r in global_repairs(NOW) if isinstance(r, Calibrate))
    found = [advice(keep, Quality(30.0, None, None, 30.0)), advice(whole, Quality(21.0, None, None, 21.0))]
    assert not repairs_view(state, NOW, found, NOW).is_stale
    view = repairs_view(state, keep.apply(NOW), found, NOW)
    assert view.is_stale
    assert [row.is_applied for row in view.rows] == [True, False]
    assert view.rows[1].layers == ()


def test_it_is_strict_json_and_in_the_picture(state: State):
    found = [advice(KeepFloat("<b>", ("dense_0",)), Quality(INF, None, None, INF))]
    view = repairs_view(state, NOW, found, NOW)
    assert json.loads(json.dumps(view.to_dict(), allow_nan=False))["rows"][0]["gain_db"] == "inf"
    empty = repairs_view(state, NOW, [], NOW)
    for shown, words in ((view, "keep float 'dense_0'"), (empty, "nothing that was tried helps")):
        figure = plots.workbench_figure(workbench_view(state, "relu_1", repairs=shown))
        said = [text.get_text() for text in figure.findobj(Text)]
        assert any(words in one for one in said)
