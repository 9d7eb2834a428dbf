"""Small networks of several operators: what the tests of bad files damage."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.tflite_files import Operator, Tensor, constant, operator

Parts = tuple[list[Tensor], list[Operator]]
WINDOW = {"padding": "SAME", "stride_w": 1, "stride_h": 1}


def _codes(*shape: int, low: int = -127, high: int = 128, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(low, high, shape)


def quantized() -> Parts:
    """Convolution, addition, pool, reshape, fully connected, softmax: int8, weights per axis."""
    scales = [0.01, 0.02, 0.03]
    tensors = [
        Tensor("x", (1, 4, 4, 2), "int8", scale=0.05, zero_point=3, signature=(-1, 4, 4, 2)),
        constant("w", _codes(3, 3, 3, 2).astype(np.int8), scale=scales),
        constant("b", _codes(3).astype(np.int32), scale=[0.05 * scale for scale in scales]),
        Tensor("c", (1, 4, 4, 3), "int8", scale=0.07, zero_point=-4),
        Tensor("a", (1, 4, 4, 3), "int8", scale=0.11, zero_point=1),
        Tensor("p", (1, 2, 2, 3), "int8", scale=0.11, zero_point=1),
        constant("shape", np.array([-1, 12], np.int32)),
        Tensor("flat", (1, 12), "int8", scale=0.11, zero_point=1),
        constant("v", _codes(5, 12).astype(np.int8), scale=0.02),
        constant("u", _codes(5).astype(np.int32), scale=0.0022),
        Tensor("logits", (1, 5), "int8", scale=0.2, zero_point=7),
        Tensor("y", (1, 5), "int8", scale=1 / 256, zero_point=-128),
    ]
    operators = [
        operator("CONV_2D", ["x", "w", "b"], ["c"], fused_activation_function="RELU6", **WINDOW),
        operator("ADD", ["c", "c"], ["a"]),
        operator(
            "AVERAGE_POOL_2D", ["a"], ["p"], filter_width=2, filter_height=2, stride_w=2, stride_h=2, padding="VALID"
        ),
        operator("RESHAPE", ["p", "shape"], ["flat"]),
        operator("FULLY_CONNECTED", ["flat", "v", "u"], ["logits"]),
        operator("SOFTMAX", ["logits"], ["y"], beta=1.0),
    ]
    return tensors, operators


def real() -> Parts:
    """Floats through what moves elements: pad, depthwise, resize, concatenation, slices, transpose, mean."""
    tensors = [
        Tensor("x", (1, 4, 4, 2)),
        constant("pads", np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32)),
        Tensor("padded", (1, 6, 6, 2)),
        constant("w", np.ones((1, 3, 3, 4), np.float32)),
        constant("b", np.ones(4, np.float32)),
        Tensor("d", (1, 4, 4, 4)),
        constant("size", np.array([8, 8], np.int32)),
        Tensor("big", (1, 8, 8, 4)),
        Tensor("joined", (1, 8, 8, 8)),
        constant("begin", np.array([0, 1, 0, 0], np.int32)),
        constant("end", np.array([1, 7, 8, 8], np.int32)),
        constant("strides", np.array([1, 2, 1, 1], np.int32)),
        Tensor("cut", (1, 3, 8, 8)),
        constant("perm", np.array([0, 2, 1, 3], np.int32)),
        Tensor("turned", (1, 8, 3, 8)),
        constant("axes", np.array([1, 2], np.int32)),
        Tensor("mean", (1, 8)),
        Tensor("s", (2,), "int32"),
        Tensor("y", (1, 8)),
    ]
    operators = [
        operator("PAD", ["x", "pads"], ["padded"]),
        operator(
            "DEPTHWISE_CONV_2D",
            ["padded", "w", "b"],
            ["d"],
            padding="VALID",
            stride_w=1,
            stride_h=1,
            depth_multiplier=2,
        ),
        operator("RESIZE_BILINEAR", ["d", "size"], ["big"], half_pixel_centers=True),
        operator("CONCATENATION", ["big", "big"], ["joined"], axis=3),
        operator("STRIDED_SLICE", ["joined", "begin", "end", "strides"], ["cut"]),
        operator("TRANSPOSE", ["cut", "perm"], ["turned"]),
        operator("MEAN", ["turned", "axes"], ["mean"]),
        operator("SHAPE", ["mean"], ["s"], out_type="int32"),
        operator("RESHAPE", ["mean", "s"], ["y"]),
    ]
    return tensors, operators
