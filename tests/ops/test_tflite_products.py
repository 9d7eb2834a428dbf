"""TFLite's sums of products against LiteRT's reference kernels: multipliers above one and 64-bit sums too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from qbench.forms.sums import product_qparams
from qbench.ir.dtypes import DType
from qbench.ir.qparams import QParams
from qbench.quant.semantics import rounding_of
from tests.ops.one_op import SEED, few, nchw, nhwc, ours, qparams, reference, requantized, some
from tests.tflite_files import Tensor, litert, model, operator

KINDS: list[tuple[DType, bool]] = [("uint8", False), ("int8", False), ("int8", True), ("int16", False), ("int16", True)]
SMALL = st.integers(1, 3)
Integers = np.ndarray[Any, Any]


class Layer:
    """Random data, weights, bias and scales of one layer."""

    def __init__(self, draw: Any, dtype: DType, per_axis: bool, outputs: int, axis: int, op: str) -> None:
        self.rng = np.random.default_rng(draw(SEED))
        self.dtype, self.op, wide = dtype, op, dtype == "int16"
        self.q = draw(qparams(dtype, st.floats(2.0**-16, 2.0**-10, width=32) if wide else None))
        self.out = draw(qparams(dtype, st.floats(2.0**-12, 2.0**-8, width=32) if wide else None))
        self.weights_dtype: DType = "uint8" if dtype == "uint8" else "int8"
        scales = tuple(
            float(np.float32(v)) for v in 10 ** self.rng.uniform(-3, draw(st.sampled_from([-1, 1])), outputs)
        )
        zeros = (0,) * outputs
        zero = int(self.rng.integers(0, 256)) if dtype == "uint8" else 0
        per_tensor = QParams(scales[0], zero, self.weights_dtype)
        self.weight_q = QParams(scales, zeros, self.weights_dtype, axis) if per_axis else per_tensor
        self.bias_dtype: DType = "int64" if wide else "int32"
        self.bias = self.rng.integers(-3000, 3000, outputs).astype(self.bias_dtype)
        found = product_qparams("tflite", op, self.q, self.weight_q, 1 if per_axis else None, self.out).scales
        self.scale: Any = found if per_axis else found[0]
        self.bias_q = (
            QParams(tuple(found), zeros, self.bias_dtype, 0) if per_axis else QParams(found[0], 0, self.bias_dtype)
        )
        assume(max(found) / self.out.scales[0] < (2**6 if wide else 2**10))

    def weights(self, shape: tuple[int, ...]) -> Integers:
        return some(int(self.rng.integers(2**32)), self.weights_dtype, shape, None if self.dtype == "uint8" else -127)

    def data(self, shape: tuple[int, ...]) -> Integers:
        return some(int(self.rng.integers(2**32)), self.dtype, shape)

    def along(self, axis: int) -> QParams:
        """qparams of the weights in our layout."""
        q = self.weight_q
        return q if q.axis is None else QParams(q.scale, q.zero_point, q.dtype, axis)

    def finished(self, sums: Integers, axis: int) -> Integers:
        shape = [-1 if i == axis % sums.ndim else 1 for i in range(sums.ndim)]
        total = (sums.astype(np.int64) + self.bias.reshape(shape)).astype(self.bias_dtype)
        return requantized(total, self.scale, self.out, rounding_of("tflite", self.op), axis)


@pytest.mark.parametrize(("dtype", "per_axis"), KINDS)
@pytest.mark.parametrize("depthwise", [False, True])
@few
@given(data=st.data(), size=st.tuples(st.integers(3, 8), st.integers(3, 8)), kernel=st.tuples(SMALL, SMALL), s=SMALL)
def test_convolution(
    dtype: DType, per_axis: bool, depthwise: bool, data: st.DataObject, size: tuple[int, int], kernel: tuple[int, int],
    s: int,
) -> None:  # fmt: skip
    channels, same = data.draw(st.integers(1, 4)), data.draw(st.booleans())
    outputs = 2 * channels if depthwise else data.draw(st.integers(1, 5))
    layer = Layer(data.draw, dtype, per_axis, outputs, 3 if depthwise else 0, "qnn.conv2d")
    w = layer.weights((1, *kernel, outputs) if depthwise else (outputs, *kernel, channels))
    out = [-(-n // s) if same else (n - k) // s + 1 for n, k in zip(size, kernel, strict=True)]
    (h, width) = (max((o - 1) * s + k - n, 0) if same else 0 for o, k, n in zip(out, kernel, size, strict=True))
    x = layer.data((2, *size, channels))
    options = {"padding": "SAME" if same else "VALID", "stride_h": s, "stride_w": s}
    options |= {"depth_multiplier": 2} if depthwise else {}
    wanted = reference(
        "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D", [(x, layer.q)], layer.out,
        [(w, layer.weight_q), (layer.bias, layer.bias_q)], shape=(2, *out, outputs), **options,
    )  # fmt: skip
    sums = ours(
        "qnn.conv2d", [nchw(x), w.transpose((3, 0, 1, 2) if depthwise else (0, 3, 1, 2))], [layer.q, layer.along(0)],
        None, strides=(s, s), padding=(h // 2, width // 2, h - h // 2, width - width // 2),
        groups=channels if depthwise else 1, accumulator=layer.bias_dtype,
    )  # fmt: skip
    np.testing.assert_array_equal(nhwc(layer.finished(sums, 1)), wanted, strict=True)


@pytest.mark.parametrize(("dtype", "per_axis"), KINDS)
@few
@given(data=st.data(), size=st.tuples(st.integers(1, 5), st.integers(1, 5)), kernel=st.tuples(SMALL, SMALL), s=SMALL)
def test_transposed_convolution(
    dtype: DType, per_axis: bool, data: st.DataObject, size: tuple[int, int], kernel: tuple[int, int], s: int
) -> None:
    channels, outputs, same = data.draw(SMALL), data.draw(SMALL), data.draw(st.booleans())
    layer = Layer(data.draw, dtype, per_axis, outputs, 0, "qnn.conv2d_transpose")
    w, x = layer.weights((outputs, *kernel, channels)), layer.data((2, *size, channels))
    whole = [(n - 1) * s + k for n, k in zip(size, kernel, strict=True)]
    out = [n * s for n in size] if same else whole
    (h, width) = (max(full - o, 0) for full, o in zip(whole, out, strict=True))
    more = (out[0] - whole[0] + h, out[1] - whole[1] + width)
    shape = np.array([2, *out, outputs], np.int32)
    tensors = [
        Tensor("shape", (4,), "int32", shape), _file("w", w, layer.weight_q), _file("x", x, layer.q, False),
        _file("b", layer.bias, layer.bias_q), Tensor("y", shape, dtype, None, layer.out.scale, layer.out.zero_point),
    ]  # fmt: skip
    op = operator(
        "TRANSPOSE_CONV", ["shape", "w", "x", "b"], padding="SAME" if same else "VALID", stride_h=s, stride_w=s
    )
    sums = ours(
        "qnn.conv2d_transpose", [nchw(x), w.transpose(3, 0, 1, 2)], [layer.q, layer.along(1)], None, strides=(s, s),
        padding=(h // 2, width // 2, h - h // 2, width - width // 2), output_padding=more,
        accumulator=layer.bias_dtype,
    )  # fmt: skip
    wanted = litert(model(tensors, [op]), {"x": x})["y"]
    np.testing.assert_array_equal(nhwc(layer.finished(sums, 1)), wanted, strict=True)


def _file(name: str, array: Integers, q: QParams, constant: bool = True) -> Tensor:
    many = q.axis is not None
    return Tensor(
        name, array.shape, array.dtype.name, array if constant else None,
        list(q.scales) if many else q.scales[0], list(q.zero_points) if many else q.zero_points[0], q.axis or 0,
    )  # fmt: skip


@pytest.mark.parametrize(("dtype", "per_axis"), KINDS)
@few
@given(data=st.data())
def test_fully_connected_is_rounded_in_float64(dtype: DType, per_axis: bool, data: st.DataObject) -> None:
    layer = Layer(data.draw, dtype, per_axis, 6, 0, "qnn.dense")
    w, x = layer.weights((6, 9)), layer.data((30, 9))
    constants = [(w, layer.weight_q), (layer.bias, layer.bias_q)]
    wanted = reference("FULLY_CONNECTED", [(x, layer.q)], layer.out, constants, shape=(30, 6))
    sums = ours("qnn.dense", [x, w], [layer.q, layer.along(0)], None, accumulator=layer.bias_dtype)
    np.testing.assert_array_equal(layer.finished(sums, -1), wanted, strict=True)


def test_fully_connected_rounds_ties_away_from_zero() -> None:
    x, q = np.arange(-100, 100, dtype=np.int8).reshape(-1, 1), QParams(1.0, 0, "int8")
    one, half = np.ones((1, 1), np.int8), QParams(0.5, 0, "int8")
    wanted = reference("FULLY_CONNECTED", [(x, q)], q, [(one, half)], shape=(200, 1))
    sums = ours("qnn.dense", [x, one], [q, half], None)
    np.testing.assert_array_equal(requantized(sums, 0.5, q, "fp64_away"), wanted, strict=True)
    assert wanted[99:104, 0].tolist() == [-1, 0, 1, 1, 2]


@pytest.mark.parametrize(("left", "right"), [("int8", "int8"), ("int16", "int16"), ("int16", "int8")])
@few
@given(seed=SEED, data=st.data())
def test_batch_matmul(left: DType, right: DType, seed: int, data: st.DataObject) -> None:
    wide = left == "int16"
    scale = st.floats(2.0**-16, 2.0**-10, width=32) if wide else None
    lhs, out = data.draw(qparams(left, scale)), data.draw(qparams(left, scale))
    rhs = data.draw(qparams("int16" if wide else right, scale))
    rhs = QParams(rhs.scale, rhs.zero_point, right)
    x, y = some(seed, left, (2, 5, 7)), some(seed + 1, right, (2, 7, 4))
    wanted = reference("BATCH_MATMUL", [(x, lhs), (y, rhs)], out, shape=(2, 5, 4))
    real = product_qparams("tflite", "qnn.batch_matmul", lhs, rhs, None, out).scales[0]
    assume(real / out.scales[0] < (2**6 if wide else 2**10))
    sums = ours("qnn.batch_matmul", [x, y], [lhs, rhs], None, accumulator="int64" if wide else "int32")
    np.testing.assert_array_equal(requantized(sums, real, out, "tflite_double"), wanted, strict=True)
