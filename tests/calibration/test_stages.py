"""A model in stages is calibrated to the same bits as a whole one."""

from __future__ import annotations

import numpy as np
import pytest

from qbench.calibration import counter, stages
from qbench.calibration.collect import collect
from qbench.errors import Cancelled, DataError
from qbench.ir.build import build
from qbench.ir.frozen import Constant
from qbench.ir.types import TensorType
from qbench.passes.prepare import prepare
from qbench.quant.config import QuantConfig
from qbench.quantize.quantized import quantize_graph
from qbench.session import quantizer
from qbench.session.session import Session
from tests.networks import mlp, residual, samples
from tests.runtime.lowerings.layers import node


@pytest.fixture(params=["mlp", "residual"])
def case(request: pytest.FixtureRequest):
    if request.param == "mlp":
        return mlp(), samples(20)
    return residual(), np.random.default_rng(0).normal(size=(20, 3, 6, 7)).astype(np.float32)


def small(monkeypatch: pytest.MonkeyPatch, carried: int = 1 << 20) -> None:
    """Everything is large."""
    monkeypatch.setattr(stages, "_LARGE", 0)
    monkeypatch.setattr(stages, "_STAGE", 64)
    monkeypatch.setattr(counter, "_CARRIED", carried)
    monkeypatch.setattr(counter, "_latest", counter.Memo())


@pytest.mark.parametrize("carried", [1, 1 << 20])
def test_the_same_statistics(case, monkeypatch: pytest.MonkeyPatch, carried: int):
    graph, x = case
    whole = collect(graph, x)
    small(monkeypatch, carried)
    assert len(stages.stages_of(graph, [*whole])) > 2
    told = list[int]()
    assert collect(graph, x, progress=lambda done, total: told.append(done)) == whole
    assert told[-1] == 20


def test_errors_and_cancel_are_told(monkeypatch: pytest.MonkeyPatch):
    small(monkeypatch)
    x = samples(3)
    x[2] = np.nan
    with pytest.raises(DataError, match="sample 2"):
        collect(mlp(), x)

    class Set:
        def is_set(self) -> bool:
            return True

    with pytest.raises(Cancelled):
        collect(mlp(), samples(3), cancel=Set())


def test_small_models_are_planned_as_a_whole():
    assert stages.stages_of(mlp(), ["x"]) == []


def test_of_a_large_model_nothing_is_measured_that_plans_it_as_a_whole(monkeypatch: pytest.MonkeyPatch):
    small(monkeypatch)
    monkeypatch.setattr(quantizer, "measure_least_db", None)
    session = Session(mlp(), samples(20))
    assert session.quantized().config.activations.least_db == "measured"


def test_weights_that_several_nodes_share_count_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stages, "_LARGE", 5 * 5 * 4)
    weight, nodes = Constant(np.eye(5, dtype=np.float32)), [node("nn.dense", "x w", "c"), node("nn.dense", "c v", "y")]
    inputs = {"x": TensorType((2, 5), "float32")}
    shared, apart = (
        build("g", inputs, ["y"], nodes, {"w": weight, "v": other})
        for other in (Constant(weight.array), Constant(weight.array.copy()))
    )
    assert not stages.is_large(shared)
    assert stages.is_large(apart)
    done = quantize_graph(prepare(shared), collect(shared, np.ones((2, 5), np.float32)), QuantConfig())
    whole = [constant for constant in done.graph.constants.values() if constant.shape == (5, 5)]
    assert len(whole) == 2
    assert whole[0].array is whole[1].array
