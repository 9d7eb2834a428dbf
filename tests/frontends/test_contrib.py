"""Ops of onnxruntime's own, and weights of few bits in blocks, give onnxruntime's outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.frontends.models import check, model, node, random, save

X = random(2, 3, 8)
CASES: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
    "gelu": ("Gelu", [X], {}),
    "fast": ("FastGelu", [X, random(8)], {}),
    "fast without a bias": ("FastGelu", [X], {}),
    "bias": ("BiasGelu", [X, random(8)], {}),
    "quick": ("QuickGelu", [X], {"alpha": 1.5}),
    "skip": ("SkipLayerNormalization", [X, random(2, 3, 8, seed=1), random(8), random(8, seed=2)], {"epsilon": 1e-6}),
    "skip with a bias": (
        "SkipLayerNormalization",
        [X, random(2, 3, 8, seed=1), random(8), random(8, seed=2), random(8, seed=3)],
        {},
    ),
    "skip without a mean": ("SkipSimplifiedLayerNormalization", [X, random(2, 3, 8, seed=1), random(8)], {}),
    "without a mean": ("SimplifiedLayerNormalization", [X, random(8)], {"epsilon": 1e-6}),
    "fused": ("FusedMatMul", [X, random(2, 4, 8)], {"transB": 1, "alpha": 0.5}),
    "fused with a weight": ("FusedMatMul", [X, random(8, 4)], {"alpha": 2.0}),
}


@pytest.mark.parametrize("name", CASES)
def test_cases(tmp_path: Path, name: str) -> None:
    op, arrays, attrs = CASES[name]
    constants = {f"c{i}": array for i, array in enumerate(arrays) if i}
    domain = "" if op.startswith("Simplified") else "com.microsoft"
    fused = node(op, ["x", *constants], ["y"], domain=domain, **attrs)
    proto = model([fused], {"x": ["N", 3, 8]}, constants=constants)
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    check(save(proto, tmp_path), {"x": X})


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("zero_points", [False, True])
def test_matmul_nbits(tmp_path: Path, bits: int, zero_points: bool) -> None:
    units, depth, block = 5, 40, 16
    blocks, rng = 3, np.random.default_rng(0)
    constants = {
        "b": rng.integers(0, 256, (units, blocks, block * bits // 8), np.uint8),
        "s": rng.uniform(0.01, 0.1, units * blocks).astype(np.float32),
    }
    if zero_points:
        constants["z"] = rng.integers(0, 256, units * -(-blocks * bits // 8), np.uint8)
    attrs = {"K": depth, "N": units, "bits": bits, "block_size": block}
    layer = node("MatMulNBits", ["x", *constants], ["y"], domain="com.microsoft", **attrs)
    proto = model([layer], {"x": ["N", "T", depth]}, constants=constants)
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    graph = check(save(proto, tmp_path), {"x": random(2, 3, depth)})
    assert [n.op for n in graph.nodes] == ["nn.dense"]


@pytest.mark.parametrize("dtype", ["int4", "uint4", "int8"])
def test_weights_in_blocks(tmp_path: Path, dtype: str) -> None:
    rng, kind = np.random.default_rng(0), np.dtype(getattr(ml_dtypes, dtype, dtype))
    whole = rng.integers(0, 8, (64, 6)).astype(np.int8)
    number = {"int4": TensorProto.INT4, "uint4": TensorProto.UINT4, "int8": TensorProto.INT8}[dtype]
    scales = rng.uniform(0.01, 0.1, (4, 6)).astype(np.float32)
    zeros = rng.integers(0, 3, (4, 6)).astype(np.int8)
    nodes = [
        node("DequantizeLinear", ["w", "s", "z"], ["real"], axis=0, block_size=16),
        node("MatMul", ["x", "real"], ["y"]),
    ]
    proto = model(nodes, {"x": ["N", 64]}, constants={"s": scales}, opset=21)
    for name, array in {"w": whole, "z": zeros}.items():
        proto.graph.initializer.append(
            helper.make_tensor(name, number, array.shape, array.astype(kind).ravel().tolist())
        )
    check(save(proto, tmp_path), {"x": random(3, 64)})


def test_8_bit_weights_followed_by_cast_and_mul(tmp_path: Path) -> None:
    constants = {"w": np.random.default_rng(0).integers(-127, 128, (6, 4)).astype(np.int8), "s": random(4)}
    nodes = [node("Cast", ["w"], ["f"], to=1), node("Mul", ["f", "s"], ["real"]), node("MatMul", ["x", "real"], ["y"])]
    graph = check(save(model(nodes, {"x": ["N", 6]}, constants=constants), tmp_path), {"x": random(3, 6)})
    assert [n.op for n in graph.nodes] == ["nn.dense"]
