"""The widgets of one tensor and of the graphs, without a browser."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from qbench.errors import SessionError
from qbench.session.session import Session
from qbench.widgets import DivergenceCurves, Histogram, IRDiff
from tests.networks import mlp, samples

PATIENCE = 60


@pytest.fixture
def session() -> Session:
    return Session(mlp(), samples(20), samples(30, seed=5))


def send(widget: Any, **message: Any) -> None:
    widget._receive(None, message, None)
    assert widget.wait(PATIENCE)


@pytest.mark.parametrize("kind", [Histogram, DivergenceCurves])
def test_a_threshold_is_set_and_taken_back(session: Session, kind: type):
    widget = kind(session, "relu_1")
    first = widget.tensor["histogram"]["threshold"]
    send(widget, do="override", layer="relu_1", part="activation", settings={"threshold": 0.25})
    assert widget.tensor["histogram"]["threshold"] == session.config.tensors["relu_1"].threshold == 0.25
    send(widget, do="undo")
    assert widget.tensor["histogram"]["threshold"] == first


def test_one_channel_of_a_weight_gets_another_threshold(session: Session):
    widget = Histogram(session, "dense_1.weight")
    assert (widget.tensor["layer"], widget.tensor["part"]) == ("dense_1", "weight")
    thresholds = list(widget.tensor["histogram"]["by_channel"]["thresholds"])
    thresholds[3] = 0.125
    send(widget, do="override", layer="dense_1", part="weight", settings={"threshold": thresholds})
    assert widget.status["error"] is None
    assert widget.tensor["histogram"]["by_channel"]["thresholds"] == thresholds
    assert session.encodings["dense_1.weight"].qparams.scales[3] == pytest.approx(0.125 / 127)


def test_layers_and_tensors_are_found_by_name_and_others_are_refused(session: Session):
    assert Histogram(session).tensor["layer"] in {node.name for node in session.prepared.nodes}
    assert DivergenceCurves(session, "relu_0").tensor["layer"] == "relu_0"
    widget = Histogram(session, "relu_0")
    send(widget, do="select", layer="dense_1", part="weight")
    assert widget.tensor["histogram"]["tensor"] == "dense_1.weight"
    with pytest.raises(SessionError, match="'relu_1'"):
        Histogram(session, "relu1")
    with pytest.raises(TypeError):
        Histogram(session, layerr="relu_1")


def test_steps_are_compared_and_a_layer_is_selected(session: Session):
    widget = IRDiff(session, 0, 1)
    assert (widget.graph["before"], widget.graph["after"]) == (0, 1)
    send(widget, do="compare", before=1, after=2)
    assert (widget.graph["before"], widget.graph["after"]) == (1, 2)
    send(widget, do="compare", before=-1, after=2)
    assert "no step -1" in widget.status["error"]["text"]
    assert (widget.graph["before"], widget.graph["after"]) == (1, 2)
    send(widget, do="select", layer="relu_1")
    assert widget.layer == "relu_1"
    with pytest.raises(SessionError, match="no step 99"):
        IRDiff(session, 0, 99)


@pytest.mark.parametrize("layer", ["relu_1", "dense_1.weight", "y"])
def test_every_widget_has_a_picture_without_a_kernel(session: Session, layer: str):
    for widget in (Histogram(session, layer), DivergenceCurves(session, layer), IRDiff(session)):
        data, _ = widget._repr_mimebundle_()
        assert {"image/png", "text/plain", "application/vnd.jupyter.widget-view+json"} <= set(data)
        assert "0x" not in data["text/plain"]


def test_constant_single_and_zero_values_are_drawn():
    flat = Session(mlp(), np.zeros((1, 12), np.float32))
    flat.run()
    for layer in (node.name for node in flat.prepared.nodes):
        for widget in (Histogram(flat, layer), DivergenceCurves(flat, layer)):
            json.dumps(widget.tensor, allow_nan=False)
            assert "image/png" in widget._repr_mimebundle_()[0]
