"""Each quantized op, alone in a file, through the importer: LiteRT's reference kernels, to the last bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qbench as qb
from qbench.errors import UnsupportedOpsError
from tests.frontends.tflite.checking import Array, check, save
from tests.tflite_files import Operator, Tensor, constant, model, operator

RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767)}
ZERO = {"int8": 3, "uint8": 131, "int16": 0}
IMAGE = (2, 9, 8, 3)
WINDOW = {"padding": "SAME", "stride_w": 1, "stride_h": 2}
PER_AXIS = [0.011, 0.02, 0.03, 0.007]
DTYPES = ("int8", "uint8", "int16")


def codes(dtype: str, *shape: int, seed: int = 0) -> Array:
    low, high = RANGES[dtype]
    return np.random.default_rng(seed).integers(low, high + 1, shape).astype(dtype)


def tensor(name: str, dtype: str, *shape: int, scale: float = 0.05, zero: int | None = None) -> Tensor:
    return Tensor(name, shape, dtype, scale=scale, zero_point=ZERO[dtype] if zero is None else zero)


def compare(folder: Path, tensors: list[Tensor], op: Operator) -> None:
    """The interpreter's integers are LiteRT's, and so are a program's."""
    made = set(op.outputs)
    inputs = [t for t in tensors if t.data is None and t.name not in made]
    feeds = {t.name: codes(str(t.dtype), *t.shape, seed=7 + i) for i, t in enumerate(inputs)}
    path = save(model(tensors, [op], list(feeds), [str(name) for name in op.outputs]), folder)
    graph = check(path, feeds)
    want = qb.interpret(graph, feeds)
    got = qb.plan(graph).run(feeds)
    for name, array in (want if isinstance(want, dict) else {graph.outputs[0]: want}).items():
        assert np.array_equal(got[name], array), name


def weights(dtype: str, *shape: int, scale: Any, axis: int = 0) -> list[Tensor]:
    """Filters and a bias for the outputs along `axis`."""
    rng = np.random.default_rng(3)
    kind, zero = ("uint8", 120) if dtype == "uint8" else ("int8", 0)
    array = rng.integers(*((0, 256) if kind == "uint8" else (-127, 128)), shape).astype(kind)
    bias = rng.integers(-2000, 2000, shape[axis]).astype(np.int64 if dtype == "int16" else np.int32)
    scales = np.float32(0.05) * np.asarray(scale, np.float32)
    return [constant("w", array, scale=scale, zero_point=zero, axis=axis), constant("b", bias, scale=scales.tolist())]


PRODUCTS = [(dtype, scale) for dtype in DTYPES for scale in (0.02, PER_AXIS) if (dtype, scale) != ("uint8", PER_AXIS)]


@pytest.mark.parametrize(("dtype", "scale"), PRODUCTS)
@pytest.mark.parametrize("activation", ["NONE", "RELU6"])
def test_products(tmp_path: Path, dtype: str, scale: Any, activation: str) -> None:
    out = tensor("y", dtype, 1, scale=0.11)
    act = {"fused_activation_function": activation}
    compare(
        tmp_path,
        [tensor("x", dtype, *IMAGE), *weights(dtype, 4, 3, 3, 3, scale=scale), out],
        operator("CONV_2D", ["x", "w", "b"], **WINDOW, **act),
    )
    compare(
        tmp_path,
        [tensor("x", dtype, 2, 9, 8, 4), *weights(dtype, 1, 3, 3, 4, scale=scale, axis=3), out],
        operator("DEPTHWISE_CONV_2D", ["x", "w", "b"], depth_multiplier=1, **WINDOW, **act),
    )
    compare(
        tmp_path,
        [tensor("x", dtype, 40, 33), *weights(dtype, 4, 33, scale=scale), tensor("y", dtype, 1, scale=0.31)],
        operator("FULLY_CONNECTED", ["x", "w", "b"], **act),
    )


@pytest.mark.parametrize(("dtype", "scale"), PRODUCTS)
def test_transpose_conv(tmp_path: Path, dtype: str, scale: Any) -> None:
    size = constant("s", np.array([2, 9, 8, 4], np.int32))
    parts = [size, tensor("x", dtype, 2, 5, 4, 3), *weights(dtype, 4, 3, 3, 3, scale=scale)]
    op = operator("TRANSPOSE_CONV", ["s", "w", "x", "b"], padding="SAME", stride_w=2, stride_h=2)
    compare(tmp_path, [*parts, tensor("y", dtype, 1, scale=0.31)], op)


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_batch_matmul(tmp_path: Path, dtype: str) -> None:
    parts = [tensor("x", dtype, 2, 5, 7), tensor("z", dtype, 2, 7, 4, scale=0.03), tensor("y", dtype, 1, scale=0.3)]
    compare(tmp_path, parts, operator("BATCH_MATMUL", ["x", "z"]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", ["ADD", "SUB", "MUL"])
@pytest.mark.parametrize("activation", ["NONE", "RELU6"])
def test_arithmetic(tmp_path: Path, dtype: str, op: str, activation: str) -> None:
    x, y = tensor("x", dtype, *IMAGE), tensor("y", dtype, 1, scale=0.041)
    zero = 0 if dtype == "int16" else 7
    other = tensor("z", dtype, *IMAGE, scale=0.033, zero=zero)
    row = constant("z", codes(dtype, 3), scale=0.033, zero_point=zero)
    for parts in ([x, other, y], [x, row, y]):
        compare(tmp_path, parts, operator(op, ["x", "z"], fused_activation_function=activation))


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_keeps_the_scale(tmp_path: Path, dtype: str) -> None:
    x, y, z = tensor("x", dtype, *IMAGE), tensor("y", dtype, 1), tensor("z", dtype, *IMAGE)
    pool = {"filter_width": 3, "filter_height": 3, **WINDOW}
    pads = constant("p", np.array([[0, 0], [1, 2], [1, 0], [0, 0]], np.int32))
    axes, size = constant("a", np.array([1, 2], np.int32)), constant("s", np.array([13, 11], np.int32))
    compare(tmp_path, [x, y], operator("MAX_POOL_2D", ["x"], **pool))
    compare(tmp_path, [x, y], operator("AVERAGE_POOL_2D", ["x"], fused_activation_function="RELU", **pool))
    compare(tmp_path, [x, z, y], operator("MAXIMUM", ["x", "z"]))
    compare(tmp_path, [x, z, y], operator("CONCATENATION", ["x", "z"], axis=3))
    compare(tmp_path, [x, pads, y], operator("PAD", ["x", "p"]))
    compare(tmp_path, [x, axes, y], operator("REDUCE_MAX", ["x", "a"], keep_dims=True))
    compare(tmp_path, [x, size, y], operator("RESIZE_BILINEAR", ["x", "s"], half_pixel_centers=True))
    compare(tmp_path, [x, size, y], operator("RESIZE_NEAREST_NEIGHBOR", ["x", "s"]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", ["MEAN", "SUM"])
@pytest.mark.parametrize("keep", [True, False])
def test_mean_and_sum(tmp_path: Path, dtype: str, op: str, keep: bool) -> None:
    if (op, dtype) == ("SUM", "int16"):
        pytest.skip("LiteRT's reference kernel adds the bytes of 16-bit integers")
    for axes in ([1, 2], [3], [1]):
        parts = [tensor("x", dtype, *IMAGE), constant("a", np.array(axes, np.int32)), tensor("y", dtype, 1, scale=0.07)]
        compare(tmp_path, parts, operator(op, ["x", "a"], keep_dims=keep))


def test_functions_of_which_only_8_bits_have_kernels(tmp_path: Path) -> None:
    x, y = tensor("x", "int8", *IMAGE), tensor("y", "int8", 1)
    other = tensor("z", "int8", *IMAGE, scale=0.033, zero=7)
    compare(tmp_path, [x, other, y], operator("SQUARED_DIFFERENCE", ["x", "z"]))
    compare(tmp_path, [x, y], operator("GELU", ["x"], approximate=True))
    compare(tmp_path, [tensor("x", "uint8", *IMAGE), tensor("y", "uint8", 1)], operator("GELU", ["x"]))
    positive = tensor("x", "int8", *IMAGE, zero=-128)
    compare(tmp_path, [positive, y], operator("RSQRT", ["x"]))
    compare(tmp_path, [positive, y], operator("SQRT", ["x"]))


FIXED = {  # scales and zero points that TFLite demands
    "LOGISTIC": {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0)},
    "TANH": {"int8": (1 / 128, 0), "uint8": (1 / 128, 128), "int16": (1 / 32768, 0)},
    "SOFTMAX": {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0)},
    "LOG_SOFTMAX": {"int8": (16 / 256, 127), "uint8": (16 / 256, 255)},
    "L2_NORMALIZATION": {"int8": (1 / 128, 0), "uint8": (1 / 128, 128)},
}


@pytest.mark.parametrize(("op", "dtype"), [(op, dtype) for op, dtypes in FIXED.items() for dtype in dtypes])
def test_functions_with_a_scale_of_their_own(tmp_path: Path, op: str, dtype: str) -> None:
    scale, zero = FIXED[op][dtype]
    x = tensor("x", dtype, 2, 3, 4, 30, scale=1 / 4096 if dtype == "int16" else 0.1)
    options = {"beta": 0.7} if op == "SOFTMAX" else {}
    compare(tmp_path, [x, tensor("y", dtype, 1, scale=scale, zero=zero)], operator(op, ["x"], **options))


@pytest.mark.parametrize(
    ("op", "dtype"),
    [(op, dtype) for op in ("RELU", "RELU6", "LEAKY_RELU") for dtype in DTYPES]
    + [(op, dtype) for op in ("HARD_SWISH", "RELU_N1_TO_1", "PRELU") for dtype in ("int8", "uint8")]
    + [("ABS", "int8"), ("EXP", "int8"), ("LOG", "int8")],
)
def test_functions_of_one_element(tmp_path: Path, op: str, dtype: str) -> None:
    parts = [tensor("x", dtype, *IMAGE), tensor("y", dtype, 1, scale=0.043)]
    names, options = ["x"], {"alpha": 0.1} if op == "LEAKY_RELU" else {}
    if op == "PRELU":
        names, zero = ["x", "a"], ZERO[dtype]
        parts.append(constant("a", codes(dtype, 1, 1, 3), scale=0.01, zero_point=zero))
    compare(tmp_path, parts, operator(op, names, **options))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("to", ["int8", "uint8"])
def test_requantize(tmp_path: Path, dtype: str, to: str) -> None:
    parts = [tensor("x", dtype, *IMAGE, scale=0.017), tensor("y", to, 1, scale=0.011)]
    compare(tmp_path, parts, operator("QUANTIZE", ["x"]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_quantize_and_dequantize(tmp_path: Path, dtype: str) -> None:
    real, q = Tensor("x", IMAGE), tensor("q", dtype, *IMAGE, scale=0.017)
    ops = [operator("QUANTIZE", ["x"], ["q"]), operator("DEQUANTIZE", ["q"])]
    x = np.random.default_rng(0).normal(size=IMAGE).astype(np.float32)
    check(save(model([real, q, Tensor("y", IMAGE)], ops), tmp_path), {"x": x})


@pytest.mark.parametrize("op", ["SQUARE", "FLOOR"])
def test_what_litert_does_not_compute_in_integers_is_refused(tmp_path: Path, op: str) -> None:
    parts = [tensor("x", "int8", *IMAGE), tensor("y", "int8", 1)]
    with pytest.raises(UnsupportedOpsError, match=rf"'y' \({op}\)"):
        qb.load(save(model(parts, [operator(op, ["x"])]), tmp_path))


def test_operators_by_their_newer_codes_alone(tmp_path: Path) -> None:
    """As tools write them that do not care for runtimes of before 2020."""
    x, y = tensor("x", "int8", *IMAGE), tensor("y", "int16", 1, scale=0.043, zero=0)
    file = model([x, y], [operator("QUANTIZE", ["x"])], older_codes=False)
    graph = check(save(file, tmp_path), {"x": codes("int8", *IMAGE)})
    assert [node.op for node in graph.nodes if node.op != "transpose"] == ["qnn.requantize"]
