"""Where LiteRT's other kernels differ from its reference kernels, op by op: ``python -m tests.litert_kernels``.

qbench computes what the reference kernels (``BUILTIN_REF``) do. The optimized ones (``BUILTIN`` without its default
delegate) and XNNPACK's (the delegate, which ``BUILTIN`` and every default interpreter use) round otherwise in places;
the table that this prints is kept in ``tests/litert_kernels.md``, with the reasons.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from qbench.ir.dtypes import DType
from qbench.ir.qparams import QParams
from tests.ops.one_op import reference, some
from tests.tflite_files import Resolver

__all__ = ["CASES", "OTHERS", "Row", "measure"]

OTHERS: tuple[Resolver, ...] = ("BUILTIN_WITHOUT_DEFAULT_DELEGATES", "BUILTIN")
Made = Callable[[Resolver], np.ndarray[Any, Any]]
Case = Callable[[np.random.Generator], Made]


class Row(NamedTuple):
    """One op: for each of `OTHERS`, the share of elements that differ, and the largest difference in steps."""

    name: str
    different: tuple[float, ...]
    largest: tuple[int, ...]


def _q(rng: np.random.Generator, dtype: DType, low: float = -2, high: float = 0) -> QParams:
    info = np.iinfo(dtype)
    zero = 0 if dtype == "int16" else int(rng.integers(info.min // 2, info.max // 2 + 1))
    return QParams(float(np.float32(10 ** rng.uniform(low, high))), zero, dtype)


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


def _unary(op: str, dtype: DType, out: QParams | None = None, **options: Any) -> Case:
    def case(rng: np.random.Generator) -> Made:
        q, x = _q(rng, dtype), some(_seed(rng), dtype, (1, 8, 8, 16))
        made = out or _q(rng, dtype, -1.5, 0)
        return lambda resolver: reference(op, [(x, q)], made, shape=x.shape, resolver=resolver, **options)

    return case


def _binary(op: str, dtype: DType) -> Case:
    def case(rng: np.random.Generator) -> Made:
        (lhs, rhs, out) = (_q(rng, dtype, -1.5, 0) for _ in range(3))
        x, y = (some(_seed(rng), dtype, (1, 8, 8, 16)) for _ in range(2))
        return lambda resolver: reference(op, [(x, lhs), (y, rhs)], out, shape=x.shape, resolver=resolver)

    return case


def _products(op: str, dtype: DType, per_axis: bool) -> Case:
    def case(rng: np.random.Generator) -> Made:
        depthwise, dense = op == "DEPTHWISE_CONV_2D", op == "FULLY_CONNECTED"
        q, outputs = _q(rng, dtype), 16 if depthwise else 24
        shape = (16, 64) if dense else (1, 9, 9, 16)
        weight = (outputs, 64) if dense else (1, 3, 3, 16) if depthwise else (outputs, 3, 3, 16)
        scales = tuple(float(np.float32(s)) for s in 10 ** rng.uniform(-3, -2, outputs))
        w_dtype: DType = "uint8" if dtype == "uint8" else "int8"
        zero = 120 if dtype == "uint8" else 0
        one = QParams(scales[0], zero, w_dtype)
        w_q = QParams(scales, (0,) * outputs, w_dtype, 3 if depthwise else 0) if per_axis else one
        w = some(_seed(rng), w_dtype, weight, -127 if w_dtype == "int8" else None)
        out = QParams(float(np.float32(q.scales[0] * scales[0] * 40 * rng.uniform(0.5, 2))) * 40, 0, dtype)
        bias, x = rng.integers(-2000, 2000, outputs).astype(np.int32), some(_seed(rng), dtype, shape)
        found = [q.scales[0] * scale for scale in w_q.scales]
        bias_q = QParams(tuple(found), (0,) * outputs, "int32", 0) if per_axis else QParams(found[0], 0, "int32")
        made = (16, outputs) if dense else (1, 9, 9, outputs)
        options: dict[str, Any] = {} if dense else {"padding": "SAME", "stride_h": 1, "stride_w": 1}
        options |= {"depth_multiplier": 1} if depthwise else {}
        constants = [(w, w_q), (bias, bias_q)]
        return lambda resolver: reference(op, [(x, q)], out, constants, shape=made, resolver=resolver, **options)

    return case


def _mean(dtype: DType) -> Case:
    def case(rng: np.random.Generator) -> Made:
        q, x = _q(rng, dtype), some(_seed(rng), dtype, (1, 7, 7, 64))
        out, axes = (
            QParams(q.scales[0] * rng.uniform(0.3, 1), 0 if dtype == "int16" else 3, dtype),
            np.array([1, 2], np.int32),
        )
        return lambda resolver: reference(
            "MEAN", [(x, q)], out, [axes], shape=(1, 1, 1, 64), resolver=resolver, keep_dims=True
        )

    return case


def _pool(dtype: DType) -> Case:
    def case(rng: np.random.Generator) -> Made:
        q, x = _q(rng, dtype), some(_seed(rng), dtype, (1, 9, 9, 16))
        window = {"filter_height": 3, "filter_width": 3, "stride_h": 1, "stride_w": 1, "padding": "SAME"}
        return lambda resolver: reference("AVERAGE_POOL_2D", [(x, q)], q, shape=x.shape, resolver=resolver, **window)

    return case


def _softmax(op: str, dtype: DType, out: QParams, **options: Any) -> Case:
    def case(rng: np.random.Generator) -> Made:
        q, x = _q(rng, dtype, -2, -0.5), some(_seed(rng), dtype, (64, 10))
        return lambda resolver: reference(op, [(x, q)], out, shape=x.shape, resolver=resolver, **options)

    return case


def _concatenate(rng: np.random.Generator) -> Made:
    qs, out = [_q(rng, "uint8") for _ in range(3)], _q(rng, "uint8")
    x = [some(_seed(rng), "uint8", (1, 8, 8, 16)) for _ in qs]
    inputs = list(zip(x, qs, strict=True))
    return lambda resolver: reference("CONCATENATION", inputs, out, shape=(1, 8, 8, 48), resolver=resolver, axis=3)


def _resize(dtype: DType) -> Case:
    def case(rng: np.random.Generator) -> Made:
        q, x = _q(rng, dtype), some(_seed(rng), dtype, (1, 8, 8, 16))
        size = np.array([13, 17], np.int32)
        return lambda resolver: reference(
            "RESIZE_BILINEAR", [(x, q)], q, [size], shape=(1, 13, 17, 16), resolver=resolver, half_pixel_centers=True
        )

    return case


def _matmul(rng: np.random.Generator) -> Made:
    (lhs, rhs) = (_q(rng, "int8") for _ in range(2))
    out = QParams(lhs.scales[0] * rhs.scales[0] * 300, 0, "int8")
    x, y = some(_seed(rng), "int8", (2, 20, 32)), some(_seed(rng), "int8", (2, 32, 24))
    return lambda resolver: reference("BATCH_MATMUL", [(x, lhs), (y, rhs)], out, shape=(2, 20, 24), resolver=resolver)


def _prelu(rng: np.random.Generator) -> Made:
    q, slope, out = (_q(rng, "int8", -1.5, 0) for _ in range(3))
    x, a = some(_seed(rng), "int8", (1, 8, 8, 16)), some(_seed(rng), "int8", (1, 1, 16))
    return lambda resolver: reference("PRELU", [(x, q)], out, [(a, slope)], shape=x.shape, resolver=resolver)


CASES: dict[str, Case] = {
    "CONV_2D int8, per axis": _products("CONV_2D", "int8", True),
    "CONV_2D uint8": _products("CONV_2D", "uint8", False),
    "DEPTHWISE_CONV_2D int8, per axis": _products("DEPTHWISE_CONV_2D", "int8", True),
    "DEPTHWISE_CONV_2D uint8": _products("DEPTHWISE_CONV_2D", "uint8", False),
    "FULLY_CONNECTED int8": _products("FULLY_CONNECTED", "int8", False),
    "FULLY_CONNECTED int8, per axis": _products("FULLY_CONNECTED", "int8", True),
    "FULLY_CONNECTED uint8": _products("FULLY_CONNECTED", "uint8", False),
    "BATCH_MATMUL int8": _matmul,
    **{f"{op} {dtype}": _binary(op, dtype) for op in ("ADD", "SUB", "MUL") for dtype in ("int8", "uint8", "int16")},
    **{f"AVERAGE_POOL_2D {dtype}": _pool(dtype) for dtype in ("int8", "uint8", "int16")},
    **{f"MEAN {dtype}": _mean(dtype) for dtype in ("int8", "uint8", "int16")},
    "SOFTMAX int8": _softmax("SOFTMAX", "int8", QParams(1 / 256, -128, "int8"), beta=1.0),
    "SOFTMAX uint8": _softmax("SOFTMAX", "uint8", QParams(1 / 256, 0, "uint8"), beta=1.0),
    "LOG_SOFTMAX int8": _softmax("LOG_SOFTMAX", "int8", QParams(1 / 16, 127, "int8")),
    "L2_NORMALIZATION int8": _softmax("L2_NORMALIZATION", "int8", QParams(1 / 128, 0, "int8")),
    "LOGISTIC int8": _unary("LOGISTIC", "int8", QParams(1 / 256, -128, "int8")),
    "LOGISTIC int16": _unary("LOGISTIC", "int16", QParams(2.0**-15, 0, "int16")),
    "TANH int8": _unary("TANH", "int8", QParams(1 / 128, 0, "int8")),
    "TANH int16": _unary("TANH", "int16", QParams(2.0**-15, 0, "int16")),
    "HARD_SWISH int8": _unary("HARD_SWISH", "int8"),
    "LEAKY_RELU int8": _unary("LEAKY_RELU", "int8", alpha=0.2),
    "PRELU int8": _prelu,
    "RELU int8": _unary("RELU", "int8"),
    "CONCATENATION uint8, other scales": _concatenate,
    "QUANTIZE int8 to int8": _unary("QUANTIZE", "int8"),
    "RESIZE_BILINEAR int8": _resize("int8"),
    "RESIZE_BILINEAR uint8": _resize("uint8"),
}


def measure(name: str, samples: int = 20, seed: int = 0) -> Row:
    """Run an op's samples under all kernels and count what differs from the reference."""
    warnings.filterwarnings("ignore", "Warning: Enabling `experimental_preserve_all_tensors`", UserWarning)
    rng, total = np.random.default_rng(seed), 0
    counts, largest = np.zeros(len(OTHERS), np.int64), np.zeros(len(OTHERS), np.int64)
    for _ in range(samples):
        made = CASES[name](rng)
        wanted = made("BUILTIN_REF").astype(np.int64)
        total += wanted.size
        for i, resolver in enumerate(OTHERS):
            away = np.abs(made(resolver).astype(np.int64) - wanted)
            counts[i] += int((away > 0).sum())
            largest[i] = max(largest[i], int(away.max()))
    return Row(name, tuple((counts / total).tolist()), tuple(largest.tolist()))


def main() -> None:
    """Print the table."""
    write = sys.stdout.write
    write("| op | optimized: differing | largest | XNNPACK: differing | largest |\n|---|---|---|---|---|\n")
    for name in CASES:
        row = measure(name)
        cells = [f"{share:.3%} | {steps}" for share, steps in zip(row.different, row.largest, strict=True)]
        write(f"| {name} | {' | '.join(cells)} |\n")


if __name__ == "__main__":
    main()
