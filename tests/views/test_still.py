from __future__ import annotations

import json
from typing import Any

import pytest

from qbench.session.session import Session
from qbench.views import State, ir_diff_view, still_graphs, still_tensors, tensor_view
from qbench.views import still as still_module
from qbench.views.view import plain
from tests.networks import mlp, samples


@pytest.fixture(scope="module")
def state() -> State:
    session = Session(mlp(), samples(40))
    session.run()
    return State.of(session)


def near(found: Any, expected: Any) -> None:
    """Equal but for the digits that were left out."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key in expected:
            near(found[key], expected[key])
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for pair in zip(found, expected, strict=True):
            near(*pair)
    else:
        assert found == (pytest.approx(expected, rel=1e-5) if isinstance(expected, float) else expected)


def test_every_tensor_is_there_once_and_all_is_as_in_its_own_view(state: State):
    still = still_tensors(state).to_dict()
    json.dumps(still, allow_nan=False)
    assert len(still["layers"]) == 9 + 3  # layers, and weights
    histograms = [one["histogram"] for one in still["layers"] if one["histogram"] is not None]
    assert len(set(histograms)) == 3 + 3 < len(histograms)  # groups, and weights
    for one in still["layers"]:
        exact = tensor_view(state, one["layer"], one["part"]).to_dict()
        for kind in ("curves", "histogram"):
            drawing = {} if one[kind] is None else still["drawings"][one[kind]]
            full = exact.pop(kind) or {}
            merged = ("counts", "start", "width", "by_channel")
            near(*({key: view[key] for key in view if key not in merged} for view in (drawing, full)))
        assert {key: one[key] for key in exact} == exact


def test_drawings_are_small_and_lose_no_value(state: State):
    still = still_tensors(state, ["dense_1"])
    assert {one["layer"] for one in still.layers} == {"dense_1"}
    activation, weight = (still.drawings[one["histogram"]] for one in still.layers)
    assert len(activation["counts"]) <= 1024
    assert sum(activation["counts"]) == state.statistics["relu_1"].count
    assert [sum(counts) for counts in weight["by_channel"]["counts"]] == [16] * 8


def test_channels_merge_in_pairs(state: State):
    view = tensor_view(state, "dense_1", "weight").histogram.by_channel
    few = view.coarser(10)
    assert {len(counts) for counts in few.counts} == {8}
    assert few.widths[0] == 64 * view.widths[0]
    assert few.counts[0][4] == sum(view.counts[0][256:320])
    assert view.coarser(10_000) == view


def test_what_each_pass_did_is_there_and_what_all_did(state: State):
    still = still_graphs(state, (2, 4), (None, 99))
    last = len(still.steps) - 1
    pairs = {(before, after): lines for before, after, lines in still.pairs}
    assert {(i, i + 1) for i in range(last)} | {(0, last), (2, 4)} <= pairs.keys()
    assert len(set(still.texts)) == len(still.texts)
    for (before, after), lines in pairs.items():
        view = ir_diff_view(state, before, after)
        text = still.texts
        said = [
            (kind, section, text[left], text[right], None if layer < 0 else text[layer], tuple(text[n] for n in notes))
            for kind, section, left, right, layer, notes in lines
        ]
        assert said == [tuple(getattr(line, key) for key in plain(line)) for line in view.lines]


def test_of_many_tensors_the_noisiest_have_curves_and_all_a_histogram(state: State, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(still_module, "_CURVES", 1)
    found = still_tensors(state)
    with_curves = {one["layer"] for one in found.layers if one["curves"] is not None}
    worst = min((layer for layer in state.report.by_layer if layer.encoded), key=lambda layer: layer.sqnr_db)
    assert with_curves == {layer.name for layer in state.report.by_layer if layer.encoded == worst.encoded}
    others = [one for one in found.layers if one["curves"] is None and one["histogram"] is not None]
    assert others and all("in the notebook" in one["absent"] for one in others)


def test_many_tensors_share_the_bins(state: State, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(still_module, "_ALL_BINS", 6 * 100)
    monkeypatch.setattr(still_module, "_ALL_CHANNEL_COUNTS", 6 * 160)
    drawings = [one for one in still_tensors(state).drawings if "counts" in one]
    assert all(len(one["counts"]) <= 100 for one in drawings)
    channels = [one["by_channel"] for one in drawings if one["by_channel"]]
    assert channels and all(len(one["counts"][0]) <= max(8, 160 // len(one["counts"])) for one in channels)
