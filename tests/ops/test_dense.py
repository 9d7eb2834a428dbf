"""Matrix products, biases, softmax and normalizations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbench.errors import GraphError
from tests.ops.oracle import draw, infer, one, onnx_run

SIZE = st.integers(1, 6)
SHAPES = st.lists(st.integers(0, 4), min_size=0, max_size=3).map(tuple)


@given(SHAPES, SIZE, SIZE)
@settings(max_examples=50, deadline=None)
def test_dense(batch: tuple, inner: int, units: int) -> None:
    data, weight = draw((*batch, inner)), draw((units, inner), 1)
    np.testing.assert_allclose(one("nn.dense", data, weight), data @ weight.T, atol=1e-5)
    assert infer("nn.dense", ("N", *batch, inner), (units, inner))[0].shape == ("N", *batch, units)


@given(
    st.sampled_from([((), ()), ((2,), (2,)), ((3, 1), (1, 2)), ((2,), ())]), st.booleans(), st.booleans(), SIZE, SIZE
)
@settings(max_examples=50, deadline=None)
def test_batch_matmul(batches: tuple, left: bool, right: bool, rows: int, columns: int) -> None:
    lhs, rhs = draw((*batches[0], rows, 3)), draw((*batches[1], 3, columns), 1)
    expected = onnx_run("MatMul", lhs, rhs)
    lhs, rhs = (np.swapaxes(lhs, -1, -2) if left else lhs), (np.swapaxes(rhs, -1, -2) if right else rhs)
    result = one("nn.batch_matmul", lhs, rhs, transpose_lhs=left, transpose_rhs=right)
    np.testing.assert_allclose(result, expected, atol=1e-5)


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1])
def test_bias_add(axis: int) -> None:
    data = draw((2, 3, 4, 5))
    bias = draw((data.shape[axis],), 1)
    expected = np.moveaxis(np.moveaxis(data, axis, -1) + bias, -1, axis)
    np.testing.assert_array_equal(one("nn.bias_add", data, bias, axis=axis), expected)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("op, onnx", [("nn.softmax", "Softmax"), ("nn.log_softmax", "LogSoftmax")])
def test_softmax(op: str, onnx: str, axis: int) -> None:
    data = draw((2, 3, 4)) * 50
    np.testing.assert_allclose(one(op, data, axis=axis), onnx_run(onnx, data, axis=axis), rtol=1e-5, atol=1e-5)


def test_softmax_of_huge_values() -> None:
    result = one("nn.softmax", np.array([[1e38, 0, -1e38]], np.float32))
    np.testing.assert_array_equal(result, [[1, 0, 0]])


def test_batch_norm() -> None:
    data, (gamma, beta, mean, variance) = draw((2, 3, 4, 5)), (draw((3,), i) for i in range(1, 5))
    operands = (data, gamma, beta, mean, variance**2)
    expected = onnx_run("BatchNormalization", *operands, epsilon=1e-3)
    np.testing.assert_allclose(one("nn.batch_norm", *operands, epsilon=1e-3), expected, rtol=1e-4, atol=1e-5)


def test_instance_norm() -> None:
    operands = (draw((2, 3, 4, 5)), draw((3,)), draw((3,), 1))
    expected = onnx_run("InstanceNormalization", *operands, epsilon=1e-3)
    np.testing.assert_allclose(one("nn.instance_norm", *operands, epsilon=1e-3), expected, atol=1e-5)


@pytest.mark.parametrize("axis", [1, 2, -1])
def test_layer_norm(axis: int) -> None:
    data = draw((2, 3, 4))
    operands = (data, draw(data.shape[axis:]), draw(data.shape[axis:], 1))
    expected = onnx_run("LayerNormalization", *operands, axis=axis, epsilon=1e-3)
    np.testing.assert_allclose(one("nn.layer_norm", *operands, axis=axis, epsilon=1e-3), expected, atol=1e-5)


@pytest.mark.parametrize("size", [1, 3, 5])
def test_lrn(size: int) -> None:
    data, attrs = draw((2, 7, 3, 4)), {"size": size, "alpha": 0.3, "beta": 0.6, "bias": 2.0}
    np.testing.assert_allclose(one("nn.lrn", data, **attrs), onnx_run("LRN", data, **attrs), atol=1e-5)


LSTM = [(3, 2, 4), (1, 12, 4), (1, 12, 3), (1, 24), (1, 2, 3), (1, 2, 3)]
BAD = [
    ("nn.dense", [(2, 3), (4, 5)], {}, "the last size of data is 3, but must be 5"),
    ("nn.dense", [(2, 3), (4, 3, 1)], {}, "weight must have 2 dimensions, not 3"),
    ("nn.bias_add", [(2, 3), (4,)], {}, "the length of bias is 4, but must be 3"),
    ("nn.bias_add", [(2, 3), (4,)], {"axis": 2}, "axis 2 is outside a tensor of 2 dimensions"),
    ("nn.bias_add", [("N", 3), ("N",)], {"axis": 1}, "the length of bias is N, but must be 3"),
    ("nn.batch_matmul", [(2, 3), (4, 3)], {}, "the inner size of rhs is 4, but must be 3"),
    ("nn.batch_matmul", [(3,), (3, 4)], {}, "need two dimensions"),
    ("nn.batch_norm", [(2, 3), (3,), (3,), (2,), (3,)], {}, "the length of mean is 2, but must be 3"),
    ("nn.softmax", [(2, 3)], {"axis": 2}, "axis 2 is outside"),
    ("nn.layer_norm", [(2, 3, 4), (4,), (3,)], {}, r"the shape of beta is \(3,\), but must be \(4,\)"),
    ("nn.lstm", [*LSTM, (1, 12)], {}, r"the shape of peepholes is \(1, 12\), but must be \(1, 9\)"),
    ("nn.lstm", [*LSTM, (1, 9), (1, 9)], {}, "one tensor of peepholes, not 2"),
    ("nn.lrn", [(2, 3, 4)], {"size": 0}, "size=0"),
]


@pytest.mark.parametrize("op, shapes, attrs, message", BAD)
def test_errors(op: str, shapes: list, attrs: dict, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        infer(op, *shapes, **attrs)


def test_mixed_dtypes_are_an_error() -> None:
    from qbench.ir.types import TensorType
    from tests.ops.oracle import bound

    with pytest.raises(GraphError, match="operands of one dtype, not float32, float16; insert a cast"):
        bound("nn.dense", 2).infer_all((TensorType((2, 3), "float32"), TensorType((4, 3), "float16")))
