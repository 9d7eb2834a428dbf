from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from qbench import plots, views
from qbench.engine.report import Flip, Latency
from qbench.session.session import Session
from tests.engine.networks import mlp, samples
from tests.hostile import hostile_session

SESSION = Session(mlp(), samples(20), samples(20, seed=3))


@pytest.fixture(scope="module")
def state() -> views.State:
    return views.State.of(SESSION)


def texts(figure: object) -> list[str]:
    from matplotlib.text import Text

    return [text.get_text() for text in figure.findobj(Text)]


def test_every_view_has_a_figure(state: views.State):
    view = views.workbench_view(state, "relu_1")
    figures = [
        plots.histogram_figure(view.tensor.histogram),
        plots.histogram_figure(view.tensor.histogram, log=False),
        plots.histogram_figure(views.histogram_view(state, "dense_1", "weight")),
        plots.curves_figure(view.tensor.curves),
        plots.layers_figure(view.layers),
        plots.layers_figure(view.layers, most=3),
        plots.result_figure(view.result),
        plots.ir_diff_figure(views.ir_diff_view(state)),
        plots.ir_diff_figure(views.ir_diff_view(state), most=2),
    ]
    for figure in figures:
        data = plots.png(figure)
        with Image.open(io.BytesIO(data)) as image:
            assert image.format == "PNG"
            assert min(image.size) > 50


def test_flipped_samples_are_drawn(state: views.State):
    made = views.picture(SESSION.prepared, {"x": np.zeros((1, 1, 28, 28), np.float32)})
    output = replace(state.report.output, flipped=20, flips=tuple(Flip(i, 1, 2) for i in range(20)))
    flipping = replace(state, report=replace(state.report, output=replace(output, latency=Latency(1.5, 3.0, 2, 1))))
    figure = plots.result_figure(views.result_view(flipping, None, lambda index: made if index else None))
    assert {"1 > 2", "#0", "20 flipped", "1.5 ms", "float 3 ms, threads: 2"} <= set(texts(figure))
    assert sum(len(axes.images) for axes in figure.axes) == 11


@pytest.mark.parametrize(("layer", "part"), [("relu_1", "activation"), ("dense_1", "weight"), ("y", "activation")])
def test_the_workbench_is_one_small_picture(state: views.State, layer: str, part: views.Part):
    figure = plots.workbench_figure(views.workbench_view(state, layer, part))
    assert "relu_1" in texts(figure)
    assert len(plots.png(figure)) < 150_000


def test_names_from_files_are_drawn_as_they_are():
    session, names = hostile_session()
    state = views.State.of(session)
    for name in names:
        figure = plots.workbench_figure(views.workbench_view(state, name))
        plots.png(figure)
        assert not any("\n" in text for text in texts(figure))


def test_a_figure_needs_no_pyplot():
    import subprocess
    import sys

    code = "import sys, qbench.plots; print('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
