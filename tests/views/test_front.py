from __future__ import annotations

import json

from matplotlib.text import Text

from qbench import plots
from qbench.quant.config import QuantConfig
from qbench.search.front import Found, Front, Limits
from qbench.search.repairs import KeepFloat, Widen
from qbench.views import front_view
from tests.networks import mlp

PLAIN = QuantConfig()
FLOAT = KeepFloat("", ("dense_0", "relu_0")).apply(PLAIN)
WIDE = Widen("", ("relu_1",)).apply(FLOAT)


def found(label: str, config: QuantConfig, metric: float, ms: float) -> Found:
    return Found(
        label=label, config=config, metric=metric, metric_chosen_on=metric, metric_held_back=metric - 0.01,
        sqnr_db=20.0, ms=ms, bytes=100,
    )  # fmt: skip


FRONT = Front(
    (found("start", PLAIN, 0.5, 1.0), found("float", FLOAT, 0.9, 2.0), found("wide", WIDE, float("-inf"), 3.0)),
    1.0,
    Limits(at_least=0.85),
)


def test_points_say_what_counts_and_which_layers_they_are_about():
    view = front_view(FRONT, FLOAT, mlp(), "AP50")
    assert [point.is_current for point in view.points] == [False, True, False]
    assert [point.is_best for point in view.points] == [False, True, False]
    assert [point.on_front for point in view.points] == [True, True, False]
    assert [point.layers for point in view.points] == [(), ("dense_0", "relu_0"), ("dense_0", "relu_0", "relu_1")]
    assert (view.metric_name, view.met, view.stopped) == ("AP50", True, False)
    assert json.loads(json.dumps(view.to_dict(), allow_nan=False))["points"][2]["metric"] == "-inf"


def test_the_picture_says_the_best_one_and_leaves_out_what_is_no_number():
    drawn = plots.front_figure(front_view(FRONT))
    texts = " ".join(text.get_text() for text in drawn.findobj(Text) if isinstance(text, Text))
    assert "float" in texts
    assert "0.9 at 2 ms" in texts
