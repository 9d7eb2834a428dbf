from __future__ import annotations

import pytest

from qbench.errors import SessionError
from qbench.session.session import Session
from qbench.widgets import ScaleControls
from tests.engine.networks import mlp, samples


@pytest.fixture
def session() -> Session:
    return Session(mlp(), samples(20), samples(30, seed=5))


def test_slider_and_fields_override_and_follow_each_other(session: Session):
    controls = ScaleControls(session, "dense_1")
    first = controls.threshold.value
    controls.threshold.value = 0.5
    assert session.config.tensors["relu_1"].threshold == 0.5
    assert controls.slider.value == pytest.approx(0.5)
    assert controls.scale.value == pytest.approx(0.5 / 255)
    assert "before" in controls.status.value
    controls.scale.value = 0.01
    assert session.config.tensors["relu_1"].scale == 0.01
    assert controls.threshold.value == pytest.approx(2.55)
    controls.undo.click()
    controls.undo.click()
    assert controls.threshold.value == first
    assert not session.config.tensors
    assert len(session.history.edits) == 3


def test_what_goes_wrong_is_shown(session: Session):
    controls = ScaleControls(session, "relu_1")
    controls.threshold.value = -1
    assert "-1" in controls.status.value
    assert controls.threshold.value > 0
    controls.undo.click()
    assert "nothing to undo" in controls.status.value


def test_a_layer_in_float_has_no_controls(session: Session):
    with pytest.raises(SessionError, match="'y' is not quantized"):
        ScaleControls(session, "y")
    assert repr(ScaleControls(session, "relu_1")) == "ScaleControls(relu_1)"
