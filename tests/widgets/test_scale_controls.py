from __future__ import annotations

import pytest

from qbench.errors import SessionError
from qbench.session.session import Session
from qbench.widgets import Histogram, ScaleControls
from tests.networks import mlp, samples

PATIENCE = 60


@pytest.fixture
def session() -> Session:
    return Session(mlp(), samples(20), samples(30, seed=5))


def test_slider_and_fields_override_and_follow_each_other(session: Session):
    controls = ScaleControls(session, "dense_1")
    first = controls.threshold.value
    assert controls.undo.disabled
    controls.threshold.value = 0.5
    assert controls.wait(PATIENCE)
    assert session.config.tensors["relu_1"].threshold == 0.5
    assert controls.slider.value == pytest.approx(0.5)
    assert controls.scale.value == pytest.approx(0.5 / 255)
    assert "before" in controls.status.value
    controls.scale.value = 0.01
    assert controls.wait(PATIENCE)
    assert session.config.tensors["relu_1"].scale == 0.01
    assert controls.threshold.value == pytest.approx(2.55)
    controls.undo.click()
    controls.undo.click()
    assert controls.wait(PATIENCE)
    assert controls.threshold.value == first
    assert not session.config.tensors
    controls.redo.click()
    assert controls.wait(PATIENCE)
    assert controls.threshold.value == 0.5
    assert len(session.history.edits) == 3


def test_another_layer_is_chosen(session: Session):
    controls = ScaleControls(session)
    assert set(controls.layer.options) == {"relu_0", "relu_1", "bias_2"}
    controls.layer.value = "relu_0"
    assert repr(controls) == "ScaleControls(relu_0)"
    threshold = session.encodings["relu_0"].threshold
    assert controls.threshold.value == threshold
    controls.slider.value = threshold / 2
    assert session.config.tensors["relu_0"].threshold == pytest.approx(threshold / 2, rel=0.02)
    assert controls.wait(PATIENCE)


def test_edits_from_elsewhere_are_shown(session: Session):
    controls, histogram = ScaleControls(session, "relu_1"), Histogram(session, "relu_1")
    controls.threshold.value = 0.25
    assert histogram.wait(PATIENCE)
    assert histogram.tensor["histogram"]["threshold"] == 0.25
    session.override("relu_1", threshold=0.75)
    assert controls.wait(PATIENCE)
    assert controls.threshold.value == 0.75


def test_what_goes_wrong_is_shown(session: Session):
    controls = ScaleControls(session, "relu_1")
    controls.threshold.value = -1
    assert controls.wait(PATIENCE)
    assert "-1" in controls.status.value
    assert controls.threshold.value > 0
    controls.undo.click()
    assert "nothing to undo" in controls.status.value
    controls.layer.value = "bias_2"
    session.override("dense_2", keep_float=True)
    assert controls.wait(PATIENCE)
    assert "not quantized" in controls.status.value


def test_a_layer_in_float_has_no_controls(session: Session):
    with pytest.raises(SessionError, match="'y' is not quantized"):
        ScaleControls(session, "y")
    assert repr(ScaleControls(session, "relu_1")) == "ScaleControls(relu_1)"
