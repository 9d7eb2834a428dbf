from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from qbench import plots, views
from qbench.evaluate.values import Values
from qbench.plots.figures import ACCENT, BAD, GOOD, POOR, TEXT
from qbench.report.entries import Flip, Latency, OutputLoss
from qbench.session.session import Session
from tests.hostile import hostile_session
from tests.networks import mlp, samples

SESSION = Session(mlp(), samples(20), samples(20, seed=3))


@pytest.fixture(scope="module")
def state() -> views.State:
    return views.State.of(SESSION)


def texts(figure: object) -> list[str]:
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
        plots.values_figure(views.values_view(SESSION.values("relu_1"))),
        plots.values_figure(views.values_view(_image_values(), channel=1)),
        plots.values_figure(views.ValuesView(layer="relu_1", part="activation", tensor="", absent="nothing")),
        plots.result_figure(view.result),
        plots.profile_figure(view.profile),
        plots.ir_diff_figure(views.ir_diff_view(state)),
        plots.ir_diff_figure(views.ir_diff_view(state), most=2),
    ]
    for figure in figures:
        data = plots.png(figure)
        with Image.open(io.BytesIO(data)) as image:
            assert image.format == "PNG"
            assert min(image.size) > 50


def _image_values() -> Values:
    exact = np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype(np.float32)
    return Values("conv", "activation", "conv", exact, np.round(exact), None, 1)


def test_flipped_samples_are_drawn(state: views.State):
    made = views.picture(SESSION.prepared, {"x": np.zeros((1, 1, 28, 28), np.float32)})
    output = replace(state.report.output, flipped=20, flips=tuple(Flip(i, 1, 2) for i in range(20)))
    flipping = replace(state, report=replace(state.report, output=replace(output, latency=Latency(1.5, 3.0, 2, 1))))
    figure = plots.result_figure(views.result_view(flipping, None, lambda index: made if index else None))
    assert {"1 > 2", "#0", "20 flipped", "1.5 ms", "float 3 ms, threads: 2"} <= set(texts(figure))
    assert sum(len(axes.images) for axes in figure.axes) == 11


def test_what_outputs_say_is_drawn(state: views.State):
    losses = (
        OutputLoss(name="y", sqnr_db=8.0, cosine=0.9, found_db=23.26, texts_alike=0.975, nats_lost=0.002),
        OutputLoss(name="z", sqnr_db=8.0, cosine=0.9, found_db=21.04),
        OutputLoss(name="t", sqnr_db=38.0, cosine=1.0, varies_db=4.04),
    )
    report = replace(state.report, output=replace(state.report.output, losses=losses, flipped=0))
    view = views.result_view(replace(state, report=report))
    assert (view.now.found_db, view.now.texts_alike, view.now.nats_lost) == (21.04, 0.975, 0.002)
    found = set(texts(plots.result_figure(view)))
    assert {"where it finds", "21.0 dB", "how it varies", "4.0 dB"} <= found
    assert {"texts read alike", "97.50%", "loses 0.0020 nats"} <= found


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


def figures(state: views.State) -> list[Figure]:
    view = views.workbench_view(state, "relu_1")
    weight = views.tensor_view(state, "dense_1", "weight")
    return [
        plots.histogram_figure(view.tensor.histogram), plots.curves_figure(view.tensor.curves),
        plots.channels_figure(weight.histogram), plots.tensor_figure(weight), plots.tensor_figure(view.tensor),
        plots.ir_diff_figure(views.ir_diff_view(state)),
        plots.values_figure(views.values_view(SESSION.values("relu_1"))),
    ]  # fmt: skip


def test_letters_stay_letters_in_vector_files_which_are_the_same_each_time(state: views.State):
    for first, second in zip(figures(state), figures(state), strict=True):
        drawn = [io.BytesIO(), io.BytesIO()]
        for figure, out in zip((first, second), drawn, strict=True):
            figure.savefig(out, format="svg", metadata={"Date": None})
        assert drawn[0].getvalue() == drawn[1].getvalue()
        text = drawn[0].getvalue().decode()
        assert "<text" in text
        assert "<image" not in text  # nothing is a bitmap
        pdf = io.BytesIO()
        first.savefig(pdf, format="pdf")
        assert b"/Type3" not in pdf.getvalue().replace(b" ", b"")


def test_letters_are_large_enough_to_be_read_and_axes_say_what_they_are(state: views.State):
    for figure in figures(state)[:5]:
        assert min(text.get_fontsize() for text in figure.findobj(Text) if text.get_text()) >= 7
        assert all(axes.get_ylabel() for axes in figure.axes)
        assert figure.axes[-1].get_xlabel()


def test_legends_say_what_is_drawn(state: views.State):
    clipped = views.histogram_view(state, "relu_1")
    clipped = replace(clipped, threshold=clipped.max / 2)
    said = {text.get_text() for text in plots.histogram_figure(clipped).axes[0].get_legend().get_texts()}
    assert said == {"clipped", "within range", "threshold"}
    curves = plots.curves_figure(views.curves_view(state, "relu_1"))
    first, second = ({text.get_text() for text in axes.get_legend().get_texts()} for axes in curves.axes)
    assert first == {"in all", "by rounding", "by clipping", "now"}
    assert second == {"kl", "kl_nvidia", "now"}
    assert any(text.endswith("(decides)") for text in texts(curves))


# Machado, Oliveira and Fernandes (2009), severity 1.0, for linear RGB
BLIND = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    "none": np.eye(3),
}


@pytest.mark.parametrize("sight", BLIND)
def test_colours_are_told_apart_with_any_sight(sight: str):
    def seen(color: str) -> np.ndarray:
        """CIELAB of a colour as that person sees it."""
        srgb = np.array(to_rgb(color))
        linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
        linear = np.clip(np.array(BLIND[sight]) @ linear, 0, 1)
        xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
        f = np.cbrt(xyz / np.array([0.9505, 1.0, 1.089]))
        return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])

    for one, other in ((ACCENT, POOR), (ACCENT, BAD), (ACCENT, GOOD), (TEXT, ACCENT), (GOOD, BAD)):
        assert np.linalg.norm(seen(one) - seen(other)) > 15  # 2.3 is just to be seen


def test_odd_tensors_are_drawn(state: views.State):
    view = views.histogram_view(state, "relu_1")
    for changes in (
        {"counts": (), "count": 0},
        {"min": 0.0, "max": 0.0, "counts": (9,), "start": 0.0, "width": 1e-40, "threshold": 0.0},
        {"min": -2.0, "max": -2.0, "counts": (1,), "start": -2.0, "threshold": 2.0},
        {"threshold": float("inf"), "high": float("inf"), "low": float("-inf"), "scale": float("inf")},
    ):
        odd = replace(view, **changes)
        plots.png(plots.histogram_figure(odd))
        plots.png(plots.histogram_figure(odd, log=False))
        plots.png(plots.channels_figure(odd))
    channels = views.histogram_view(state, "dense_1", "weight").by_channel
    many = {name: value * 250 for name, value in vars(channels).items() if isinstance(value, tuple)}
    weight = replace(views.histogram_view(state, "dense_1", "weight"), by_channel=replace(channels, **many))
    assert len(plots.png(plots.channels_figure(weight))) < 60_000
