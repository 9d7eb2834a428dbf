from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from qbench.ir.build import TAIL, rebuild
from qbench.ir.frozen import Constant
from qbench.quant.config import QuantConfig
from qbench.session.session import Session
from qbench.views import State, caveats
from qbench.widgets import ResultPanel
from tests.networks import mlp, samples


def said(calibration: np.ndarray, evaluation: np.ndarray) -> list[str]:
    return ResultPanel(Session(mlp(), calibration, evaluation)).result["caveats"]


def test_data_of_one_scale_and_enough_of_it_needs_no_words():
    assert said(samples(20), samples(20, seed=3)) == []


@pytest.mark.parametrize("factor", [255, 1 / 255])
def test_evaluation_data_of_another_scale_is_told_with_both_numbers(factor: float):
    calibration, evaluation = samples(20), samples(20, seed=3) * np.float32(factor)
    (text,) = said(calibration, evaluation)
    assert "'x'" in text and f"{np.abs(calibration).max():.4g}" in text and "same way" in text
    assert f"{np.abs(evaluation[:4]).max():.4g}" in text


def test_evaluation_data_beyond_the_ranges_is_told_once_with_what_to_do() -> None:
    session = Session(mlp(), samples(20) * np.float32(0.4), samples(20, seed=3))
    report = session.run(progress=False)
    (text,) = ResultPanel(session).result["caveats"]
    assert f"{report.unlike[0].clipped:.1%} of the values of 'x' are clipped" in text and "calibrate on data" in text


@pytest.mark.parametrize(("count", "words"), [(1, "Only 1 calibration sample:"), (4, "Only 4 calibration samples:")])
def test_few_calibration_samples_are_told(count: int, words: str):
    (text,) = said(samples(count), samples(20, seed=3))
    assert text.startswith(words)


def test_an_evaluation_that_stopped_says_so():
    session = Session(mlp(), samples(20))
    session.run(progress=False)
    state = State.of(session)
    stopped = replace(state, report=replace(state.report, stopped="NaN in 'relu_1'"))
    assert caveats(stopped) == ("The evaluation stopped: NaN in 'relu_1'",)


def test_a_graph_that_ends_before_the_file_does_says_where():
    graph = rebuild(mlp(), constants={**mlp().constants, TAIL: Constant(np.zeros(1, np.uint8))})
    session = Session(graph, samples(20))
    (text,) = ResultPanel(session).result["caveats"]
    assert text.startswith("The graph ends at 'y', and all numbers are about that") and "export_onnx" in text


@pytest.mark.parametrize(("axis", "count"), [("channel", 0), (12, 0), (7919, 1)])
def test_blocks_that_no_weight_can_have_are_told(axis: object, count: int):
    config = QuantConfig(mode="weight_only").with_value("weights.axis", axis)
    found = ResultPanel(Session(mlp(), samples(20), samples(20, seed=3), config=config)).result["caveats"]
    assert ["No weight has blocks of 7919, as weights.axis asks" in text for text in found] == [True] * count
