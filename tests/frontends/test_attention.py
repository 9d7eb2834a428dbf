"""Attention as one node gives onnxruntime's outputs: masks, pasts, heads, positions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from qbench.frontends import load
from qbench.runtime.interpreter import run
from tests.frontends.models import check, model, node, random, save

B, S, P, H, N = 2, 5, 3, 16, 4
PAST = random(2, B, N, P, H // N, seed=9)
KEEPS = np.array([[1, 1, 1, 1, 0], [1, 1, 1, 0, 0]], np.int32)
FACTORS = np.outer(np.arange(S + P, dtype=np.float32), [1.0, 0.3]).astype(np.float32)


def own(tmp_path: Path, op: str, feeds: dict[str, np.ndarray | None], outputs: int, domain: str, **attrs: Any) -> None:
    """Check one node; inputs whose batch is known to be open, others as they are. None stands for an absent one."""
    given = {name: array for name, array in feeds.items() if array is not None}
    names = [name if name in given else "" for name in feeds]
    made = [f"y{i}" for i in range(outputs)]
    fed = {name: array for name, array in given.items() if name[0] != "w"}
    kinds = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in fed.items()}
    shapes = {
        name: ["N" if size == B and not i and name != "past" else size for i, size in enumerate(array.shape)]
        for name, array in fed.items()
    }
    constants = {name: array for name, array in given.items() if name[0] == "w"}
    opset = 17 if domain else 23
    proto = model([node(op, names, made, domain=domain, **attrs)], shapes, made, constants, opset=opset, dtypes=kinds)
    if op.endswith("EmbedLayerNormalization"):
        proto.graph.output[1].type.tensor_type.elem_type = 6
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    check(save(proto, tmp_path), fed)


MASKS = {
    "nothing": None,
    "lengths": np.array([4, 3], np.int32),
    "keys": KEEPS,
    "queries and keys": np.tril(np.ones((B, S, S), np.int32)),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("causal", [0, 1])
def test_packed(tmp_path: Path, mask: str, causal: int) -> None:
    feeds = {"x": random(B, S, H), "w": random(H, 3 * H, seed=1) / 4, "wb": random(3 * H, seed=2), "mask": MASKS[mask]}
    own(tmp_path, "Attention", feeds, 1, "com.microsoft", num_heads=N, unidirectional=causal)


@pytest.mark.parametrize("causal", [0, 1])
def test_packed_with_a_past(tmp_path: Path, causal: int) -> None:
    feeds = {"x": random(B, S, H), "w": random(H, 3 * H, seed=1) / 4, "wb": random(3 * H, seed=2)}
    more = {"mask": None, "past": PAST}
    own(tmp_path, "Attention", feeds | more, 2, "com.microsoft", num_heads=N, scale=0.3, unidirectional=causal)


def test_packed_with_what_is_added(tmp_path: Path) -> None:
    feeds = {"x": random(B, S, H), "w": random(H, 3 * H, seed=1) / 4, "wb": random(3 * H, seed=2)}
    more = {"mask": None, "past": None, "added": random(1, N, S, S, seed=3)}
    own(tmp_path, "Attention", feeds | more, 1, "com.microsoft", num_heads=N)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("past", [False, True])
def test_three_tensors(tmp_path: Path, bias: bool, past: bool) -> None:
    q, k, v = (random(B, S, H, seed=i) for i in range(3))
    offset = random(3 * H, seed=5) if bias else None
    feeds: dict[str, np.ndarray | None] = {"q": q, "k": k, "v": v, "wb": offset, "mask": None if past else KEEPS}
    feeds |= {"added": None, "pk": PAST[0], "pv": PAST[1]} if past else {}
    own(tmp_path, "MultiHeadAttention", feeds, 3 if past else 1, "com.microsoft", num_heads=N)


@pytest.mark.parametrize("kind", ["float", "bool", "causal", "capped", "grouped", "heads apart", "past"])
def test_onnx(tmp_path: Path, kind: str) -> None:
    q, k, v = (random(B, S, H, seed=i) for i in range(3))
    attrs: dict[str, Any] = {"q_num_heads": N, "kv_num_heads": N}
    mask, past = None, (None, None)
    if kind == "float":
        mask = random(S, S, seed=4)
    elif kind == "bool":
        mask = np.tril(np.ones((S, S), bool))
    elif kind == "causal":
        attrs["is_causal"] = 1
    elif kind == "capped":
        attrs |= {"softcap": 2.0, "scale": 0.7}
    elif kind == "grouped":
        k, v = k[..., : H // 2].copy(), v[..., : H // 2].copy()
        attrs["kv_num_heads"] = N // 2
    elif kind == "heads apart":
        q, k, v = (random(B, N, S, H // N, seed=i) for i in range(3))
        attrs = {}
    else:
        past = PAST[0], PAST[1]
    feeds = {"q": q, "k": k, "v": v, "mask": mask, "pk": past[0], "pv": past[1]}
    own(tmp_path, "Attention", feeds, 3 if kind == "past" else 1, "", **attrs)


LATER = {
    "a row that sees nothing": {"mask": np.tril(np.ones((S, S), bool), -1)},
    "two masks that leave nothing": {"mask": np.triu(np.ones((S, S), bool), 1), "is_causal": 1},
    "a mask of the first keys": {"mask": np.ones((S, S - 2), bool), "lengths": np.array([3, 2])},
    "lengths": {"mask": random(S, S, seed=4), "lengths": np.array([4, 2])},
    "causal up to lengths": {"lengths": np.array([4, 3]), "is_causal": 1},
    "windows": {"left_window_size": 1, "right_window_size": 2},
    "a causal window over a past": {"past": True, "left_window_size": 2, "is_causal": 1},
    "capped before it is masked": {"mask": random(S, S, seed=4), "softcap": 0.5},
}


@pytest.mark.parametrize("kind", LATER)
def test_onnx_later(tmp_path: Path, kind: str) -> None:
    """What opsets 24 and 25 have said since, and onnxruntime not yet; the reference is ONNX's own."""
    given = dict(LATER[kind])
    past = given.pop("past", None)
    feeds = {
        "q": random(B, S, H),
        "k": random(B, S, H, seed=1),
        "v": random(B, S, H, seed=2),
        "mask": given.pop("mask", None),
    }
    feeds |= {"pk": PAST[0], "pv": PAST[1]} if past else {"pk": None, "pv": None}
    feeds["lengths"] = given.pop("lengths", None)
    fed = {name: array for name, array in feeds.items() if array is not None}
    kinds = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in fed.items()}
    outputs = ["y", "keys", "values"] if past else ["y"]
    one = node(
        "Attention", [name if name in fed else "" for name in feeds], outputs, q_num_heads=N, kv_num_heads=N, **given
    )
    proto = model([one], {name: array.shape for name, array in fed.items()}, outputs, opset=25, dtypes=kinds)
    want = ReferenceEvaluator(proto).run(None, fed)
    for name, expected in zip(outputs, want, strict=True):
        got = run(load(save(proto, tmp_path)), fed)[name]
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("whose", ["onnx", "first", "each"])
def test_rotary(tmp_path: Path, interleaved: int, whose: str) -> None:
    tables = {"wcos": np.cos(FACTORS), "wsin": np.sin(FACTORS)}
    positions = np.array([2]) if whose == "first" else np.array([[0, 1, 2, 3, 4], [2, 3, 4, 5, 6]])
    x = random(B, N, S, H // N)
    attrs = {"interleaved": interleaved}
    if whose == "onnx":
        own(tmp_path, "RotaryEmbedding", {"x": x, **tables, "positions": positions}, 1, "", **attrs)
    else:
        own(tmp_path, "RotaryEmbedding", {"x": x, "positions": positions, **tables}, 1, "com.microsoft", **attrs)


def test_part_of_each_head_is_turned(tmp_path: Path) -> None:
    tables = {"wcos": np.cos(FACTORS[:, :1]), "wsin": np.sin(FACTORS[:, :1])}
    feeds = {"x": random(B, S, H), **tables, "positions": np.array([[0, 1, 2, 3, 4]] * B)}
    own(tmp_path, "RotaryEmbedding", feeds, 1, "", num_heads=N, rotary_embedding_dim=2)


@pytest.mark.parametrize("masked", [False, True])
def test_embeddings(tmp_path: Path, masked: bool) -> None:
    ids = np.array([[1, 5, 2, 0, 3], [4, 4, 1, 2, 0]], np.int32)
    tables = {"wide": random(6, H), "wpos": random(9, H, seed=1), "wseg": random(2, H, seed=2)}
    norm = {"wgamma": random(H, seed=3), "wbeta": random(H, seed=4)}
    feeds = {"ids": ids, "segments": ids % 2, **tables, **norm, "mask": KEEPS if masked else None}
    own(tmp_path, "EmbedLayerNormalization", feeds, 2, "com.microsoft", epsilon=1e-6)


@pytest.mark.parametrize("segmented", [False, True])
def test_embeddings_of_integers(tmp_path: Path, segmented: bool) -> None:
    ids = np.array([[1, 5, 2, 0, 3], [4, 4, 1, 2, 0]], np.int32)
    rng = np.random.default_rng(0)
    shapes = {"wide": (6, H), "wpos": (9, H), "wseg": (2, H), "wgamma": (H,), "wbeta": (H,)}
    tables = {name: rng.integers(0, 256, shape, np.uint8) for name, shape in shapes.items()}
    scales = {f"{name}_scale": np.array(0.01 + 0.002 * i, np.float32) for i, name in enumerate(tables)}
    zeros = {f"{name}_zero": np.array(120 + i, np.uint8) for i, name in enumerate(tables)}
    feeds: dict[str, np.ndarray | None] = {"ids": ids, "segments": ids % 2, **tables, "mask": KEEPS, **scales, **zeros}
    if not segmented:
        feeds |= dict.fromkeys(name for name in feeds if name.startswith(("wseg", "segments")))
    own(tmp_path, "QEmbedLayerNormalization", feeds, 2, "com.microsoft", epsilon=1e-6)


@pytest.mark.parametrize("activation", ["Relu", "Sigmoid", "LeakyRelu", "Clip", "HardSigmoid"])
def test_fused_activations(tmp_path: Path, activation: str) -> None:
    given = {"LeakyRelu": [0.2], "Clip": [-0.3, 0.4], "HardSigmoid": [0.3, 0.4]}.get(activation)
    attrs = {} if given is None else {"activation_params": given}
    feeds = {"x": random(B, 3, 6, 6), "w": random(4, 3, 3, 3, seed=1), "wb": random(4, seed=2)}
    own(tmp_path, "FusedConv", feeds, 1, "com.microsoft", activation=activation, pads=[1, 1, 1, 1], **attrs)


def test_a_batch_that_is_transposed(tmp_path: Path) -> None:
    feeds = {"x": random(3, 5, 4, 6), "w": random(5, 4, 6, 7, seed=1)}
    own(tmp_path, "FusedMatMul", feeds, 1, "com.microsoft", transBatchA=1)


@pytest.mark.parametrize("kind", ["plain", "packed", "turned", "turned in pairs", "past", "capped", "window"])
def test_fewer_heads_of_keys(tmp_path: Path, kind: str) -> None:
    """As decoders that onnxruntime's generator runs: the rotation is inside, lengths come as an input."""
    few, size = 2, 16
    before, length = (P, 1) if kind == "past" else (0, S)
    q, k, v = (random(B, length, heads * size, seed=i) for i, heads in enumerate((N, few, few)))
    past = [random(B, few, before, size, seed=i) if before else None for i in (3, 4)]
    angles = np.outer(np.arange(S + P, dtype=np.float32), [2.0**-i for i in range(8)]).astype(np.float32)
    feeds: dict[str, np.ndarray | None] = {"q": q, "k": k, "v": v}
    if kind == "packed":
        feeds = {"q": np.concatenate([q, k, v], 2), "k": None, "v": None}
    feeds |= dict(zip(("past key", "past value"), past, strict=True))
    feeds |= {"lengths": np.full(B, before + length - 1, np.int32), "total": np.array(before + length, np.int32)}
    turned = kind in ("turned", "turned in pairs", "past")
    if turned:
        feeds |= {"wcos": np.cos(angles), "wsin": np.sin(angles)}
    attrs = {"do_rotary": int(turned), "rotary_interleaved": int(kind == "turned in pairs")}
    attrs |= {"softcap": 2.0} if kind == "capped" else {"local_window_size": 2} if kind == "window" else {}
    own(tmp_path, "GroupQueryAttention", feeds, 3, "com.microsoft", num_heads=N, kv_num_heads=few, **attrs)


@pytest.mark.usefixtures("exact_onnxruntime")
@pytest.mark.parametrize("signed", [False, True])
def test_packed_integers(tmp_path: Path, signed: bool) -> None:
    """As onnxruntime's dynamic quantization writes it."""
    rng = np.random.default_rng(0)
    feeds: dict[str, np.ndarray | None] = {
        "x": rng.integers(0, 256, (B, S, H), np.uint8),
        "w": rng.integers(-127, 128, (H, 3 * H), np.int8) if signed else rng.integers(0, 256, (H, 3 * H), np.uint8),
        "wb": random(3 * H, seed=2),
        "wscale": np.array(0.02, np.float32),
        "wscales": np.array(0.01, np.float32),
        "mask": KEEPS.sum(1, dtype=np.int32),
        "wzero": np.array(120, np.uint8),
        "wzeros": np.array(0, np.int8) if signed else np.array(128, np.uint8),
    }
    own(tmp_path, "QAttention", feeds, 1, "com.microsoft", num_heads=N)
