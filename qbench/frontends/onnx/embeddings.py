"""Embeddings of words, places and segments, summed and normalized, as onnxruntime has them in one node."""

from typing import Any

import numpy as np

from qbench.frontends.onnx.builder import Builder, Value
from qbench.frontends.onnx.norm import layer_norm
from qbench.frontends.onnx.qoperator import real_operand
from qbench.frontends.onnx.source import SourceNode
from qbench.frontends.onnx.table import converter

_OWN = "com.microsoft"


@converter(
    "EmbedLayerNormalization",
    "ids segments? words positions segment_words? gamma beta mask? position_ids?",
    "epsilon mask_index_type",
    domain=_OWN,
)
def embed_layer_norm(
    builder: Builder,
    node: SourceNode,
    ids: Value,
    segments: Value | None,
    words: Value,
    positions: Value,
    segment_words: Value | None,
    gamma: Value,
    beta: Value,
    mask: Value | None,
    position_ids: Value | None,
) -> tuple[Value, ...]:
    """The sum of three embeddings, which is the third output, and its normalization; how many ids the mask keeps."""
    total = builder.emit("take", words, ids)
    if position_ids is None:
        position_ids = builder.emit("arange", stop=ids.shape[1])
    total = builder.emit("add", total, builder.emit("take", positions, position_ids))
    if segments is not None and segment_words is not None:
        total = builder.emit("add", total, builder.emit("take", segment_words, segments))
    y = layer_norm(builder, node, total, gamma, beta)
    if not any(node.outputs[1:2]):
        return y, y, total
    counted = builder.emit("multiply", ids, np.asarray(0, ids.dtype)) if mask is None else mask
    return y, builder.emit("sum", counted, axes=(1,), keepdims=False), total


_TABLES = ("words", "positions", "segment_words", "gamma", "beta")


@converter(
    "QEmbedLayerNormalization",
    "ids segments? words positions segment_words? gamma beta mask? "
    + " ".join(f"{name}_{what}{'?' * name.startswith('seg')}" for what in ("scale", "zero_point") for name in _TABLES),
    "epsilon mask_index_type",
    domain=_OWN,
)
def integer_embed_layer_norm(
    builder: Builder, node: SourceNode, ids: Value, segments: Value | None, *rest: Value | None
) -> tuple[Value, ...]:
    """The same with tables of integers, each with a scale and a zero point."""
    tables, mask, scales, zeros = rest[:5], rest[5], rest[6:11], rest[11:]
    stored = zip(tables, scales, zeros, strict=True)
    real: list[Any] = [x and real_operand(builder, node, x, scale, zero)[0] for x, scale, zero in stored]
    return embed_layer_norm(builder, node, ids, segments, *real, mask, None)[:2]
