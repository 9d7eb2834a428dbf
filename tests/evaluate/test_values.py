from __future__ import annotations

import numpy as np
import pytest

from qbench.errors import SessionError
from qbench.evaluate.layers import value_of
from qbench.ir.build import build
from qbench.ir.types import TensorType
from qbench.quant.arithmetic import dequantize, quantize
from qbench.quant.config import QuantConfig
from qbench.runtime import interpreter
from qbench.session.session import Session
from tests.networks import node, residual

X = np.random.default_rng(2).normal(size=(20, 3, 6, 7)).astype(np.float32)
SEEN = [i * 20 // 8 for i in range(8)]  # of the probe's samples, which are all there are


@pytest.fixture(scope="module")
def session() -> Session:
    config = QuantConfig().override_layer("conv_2", keep_float=True)
    return Session(residual(), X, config=config)


@pytest.mark.parametrize("layer", ["conv_1", "add_1", "conv_2", "y"])
def test_both_models_values_are_those_of_the_interpreter(session: Session, layer: str):
    found, quantized = session.values(layer), session.quantized()
    exact = interpreter.run(quantized.prepared, {"x": X[SEEN]}, [found.tensor])[found.tensor]
    value = value_of(quantized.graph, found.tensor)
    other = interpreter.run(quantized.graph, {"x": X[SEEN]}, [value])[value]
    assert (found.layer, found.part, found.qparams is None) == (layer, "activation", layer in ("conv_2", "y"))
    np.testing.assert_allclose(found.exact, exact, rtol=1e-4, atol=1e-5)
    expected = other if found.qparams is None else dequantize(other, found.qparams)
    np.testing.assert_allclose(found.quantized, expected, rtol=1e-4, atol=1e-5)


def test_a_weight_before_and_after_rounding(session: Session):
    found, quantized = session.values("conv_1", "weight"), session.quantized()
    weight, q = quantized.prepared.constants["conv_1.weight"].array, quantized.encodings["conv_1.weight"].qparams
    assert np.array_equal(found.exact, weight)
    assert np.array_equal(found.quantized, dequantize(quantize(weight, q), q))
    assert (found.axis, found.qparams) == (0, q)


def test_channels_lie_where_the_op_says_and_where_a_transpose_moves_them(session: Session):
    assert [session.values(layer).axis for layer in ("conv_0", "relu_1", "y")] == [1, 1, 1]
    kind = TensorType(("N", 3, 6, 7), "float32")
    nodes = [node("nn.relu", ["x"], "a"), node("transpose", ["a"], "b", axes=(0, 2, 3, 1)), node("abs", ["b"], "c")]
    moved = Session(build("moved", {"x": kind}, ["c"], nodes, {}), X)
    assert [moved.values(layer).axis for layer in ("a", "b", "c")] == [1, 3, 3]


def test_what_has_no_values(session: Session):
    with pytest.raises(SessionError, match="no layer is called 'conv_11'; did you mean 'conv_1'"):
        session.values("conv_11")
    with pytest.raises(SessionError, match="has no quantized weight"):
        session.values("add_1", "weight")
