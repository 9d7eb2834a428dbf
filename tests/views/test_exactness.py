from __future__ import annotations

import dataclasses
import json

import pytest

from qbench.plots import exactness_figure, png
from qbench.session.session import Session
from qbench.views import State, exactness_view
from tests.networks import mlp, samples
from tests.parity.comparisons import comparison, hostile


def test_the_view_says_what_the_comparison_found():
    view = exactness_view(comparison())
    assert (view.different, view.differing, view.elements, view.different_end_to_end) == (33, 2, 2010, 403)
    assert (view.first, view.fed_with, view.missing) == ("conv_2.out", "LiteRT builtin", (("scratch", "only there"),))
    same, apart, real = view.layers
    assert (same.rate, same.predicted, same.rounding, same.largest) == (0, None, "", 0)
    assert (apart.rate, apart.predicted, apart.rate_end_to_end, apart.largest_end_to_end) == (0.03, 0.025, 0.4, 9)
    assert apart.rounding == "tflite_double against litert_builtin" and apart.channels == (0, 25, 0, 5)
    assert (real.is_real, real.largest, real.histogram) == (True, 0.02, ((-2, 3),))
    assert exactness_view(comparison(fed="")).fed_with is None
    assert json.loads(json.dumps(view.to_dict(), allow_nan=False))["layers"][1]["tensor"] == "conv_2.out"
    with pytest.raises(dataclasses.FrozenInstanceError):
        view.first = None  # type: ignore[misc]


def test_the_figure_has_a_bar_for_what_differs_and_a_line_where_theory_expects_it():
    view = exactness_view(comparison())
    rates, histogram, channels = exactness_figure(view).get_axes()
    assert [round(bar.get_x() + bar.get_width(), 6) for bar in rates.patches] == [0.03, 0.3]
    assert [0.025, 0.025] in [list(line.get_xdata()) for line in rates.lines]
    assert [label.get_text().split()[0] for label in rates.get_yticklabels()] == ["conv_1", "conv_2", "softmax"]
    assert [bar.get_height() for bar in histogram.patches] == [20, 8, 2]
    assert channels.patches[0].get_data().values.tolist() == [0, 25, 0, 5]
    _, histogram, _ = exactness_figure(view, "conv_1.out").get_axes()
    assert histogram.texts[0].get_text() == "nothing differs"


def test_any_name_is_drawn_and_many_layers_are_cut_to_those_that_differ():
    assert png(exactness_figure(exactness_view(hostile()))).startswith(b"\x89PNG")
    one = comparison()
    many = dataclasses.replace(one, layers=(one.layers[0],) * 50 + one.layers[1:])
    rates = exactness_figure(exactness_view(many)).get_axes()[0]
    assert len(rates.get_yticklabels()) == 2
    nothing = dataclasses.replace(one, layers=one.layers[:1])
    assert "no difference" in exactness_figure(exactness_view(nothing)).get_suptitle()


def test_layers_are_found_in_a_session_by_what_they_make_and_then_by_name():
    session = Session(mlp(), samples(5))
    session.run(progress=False)
    one = comparison(names=("relu_0", "dense_1", "nobody"))
    made = dataclasses.replace(one.layers[0], name="relu_0.requantize", tensor="relu_1")
    state = State.of(session)
    known = [
        layer.layer for layer in exactness_view(dataclasses.replace(one, layers=(*one.layers, made)), state).layers
    ]
    assert known == ["relu_0", "dense_1", None, "relu_1"]
    assert [layer.layer for layer in exactness_view(one).layers] == [None] * 3
