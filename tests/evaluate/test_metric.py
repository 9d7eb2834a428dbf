"""A metric answers with one finite number, or says what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from qbench.data.dataset import Dataset
from qbench.errors import DataError
from qbench.evaluate.metric import resolve_metric
from qbench.evaluate.probe import Probe
from tests.networks import mlp, samples

OUTPUTS = {"y": np.eye(4, dtype=np.float32)}


def top1(outputs: dict[str, np.ndarray], y: Any) -> float:
    return float(np.mean(outputs["y"].argmax(axis=1) == y))


def test_a_function_by_its_name_and_by_itself():
    truths = np.array([0, 1, 2, 0])
    for given in (top1, f"{__name__}:top1") if _importable() else (top1,):
        assert resolve_metric(given, truths)(OUTPUTS) == 0.75
    assert resolve_metric("numpy:size").name == "numpy:size"


def _importable() -> bool:
    try:
        __import__(__name__)
    except ImportError:
        return False
    return True


@pytest.mark.parametrize("truths", [np.array([0, 1, 2, 0]), [0, 1, 2, 0]])
def test_parts_of_the_samples(truths: Any):
    metric = resolve_metric(top1, truths)
    assert (metric(OUTPUTS, [0, 2]), metric(OUTPUTS, [1, 3])) == (1.0, 0.5)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("top1", "a metric is a callable or 'module:function', not 'top1'"),
        (3, "a metric is a callable or 'module:function', not '3'"),
        ("nowhere_at_all:f", "the metric's module 'nowhere_at_all' cannot be imported"),
        ("numpy:no_such_function", "module 'numpy' has no function 'no_such_function'"),
        ("numpy:pi", "module 'numpy' has no function 'pi'"),
    ],
)
def test_no_metric(given: str, complaint: str):
    with pytest.raises(DataError, match=complaint):
        resolve_metric(given)


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        (lambda outputs, y: outputs["z"], r"raised KeyError: 'z'; it was given 'y' float32 \(4, 4\)"),
        (lambda outputs, y: float("nan"), "gave nan; it must be finite"),
        (lambda outputs, y: None, "gave 'None'; it must give one number"),
        (lambda outputs, y: np.zeros(2), "it must give one number"),
        (lambda outputs, y: True, "gave 'True'; it must give one number"),
    ],
)
def test_an_answer_that_is_none(function: Callable[..., Any], complaint: str):
    with pytest.raises(DataError, match=complaint):
        resolve_metric(function)(OUTPUTS)


@pytest.mark.parametrize("truths", [np.arange(4), [np.arange(4)] * 4])
@pytest.mark.parametrize("rows", [None, range(4)])
def test_what_it_is_given_stays_as_it_is(truths: Any, rows: range | None):
    def outputs(outputs: dict[str, np.ndarray], y: Any) -> float:
        outputs["y"] -= 1
        return 1.0

    def labels(outputs: dict[str, np.ndarray], y: Any) -> float:
        y[0] += 1 if isinstance(y, np.ndarray) else 0
        y[-1][...] = 0
        return 1.0

    for function in (outputs, labels):
        with pytest.raises(DataError, match=r"raised ValueError: .*read-only \(others read .*: copy what it changes\)"):
            resolve_metric(function, truths)(OUTPUTS, rows)
    np.testing.assert_array_equal(truths[-1], 3 if isinstance(truths, np.ndarray) else np.arange(4))
    np.testing.assert_array_equal(OUTPUTS["y"], np.eye(4))


def test_nothing_can_be_chosen_by_a_constant():
    other = {"y": OUTPUTS["y"] + np.float32(0.01)}
    with pytest.raises(DataError, match="is constant: it gave 3 for the float model"):
        resolve_metric(lambda outputs, y: 3).check(OUTPUTS, other)
    resolve_metric(top1, [0, 1, 2, 3]).check(OUTPUTS, other)  # right for both, wrong for nonsense
    resolve_metric(lambda outputs, y: float(outputs["y"].sum())).check(OUTPUTS, other)


def test_a_probe_gives_truths_of_the_same_kind():
    truths = np.arange(20)[:, None] * np.ones(3)
    data = Dataset(mlp(), samples(20), truths=truths)
    probe = Probe(mlp(), data, 4)
    assert isinstance(probe.data.truths, np.ndarray)
    assert np.array_equal(probe.data.truths, truths[probe.indices])
    data.truths = [*truths]
    assert isinstance(Probe(mlp(), data, 4).data.truths, list)
