"""Attention as one node, with positions and masks: ONNX's own (opset 23 and later) and onnxruntime's, taken apart."""

from dataclasses import replace

import numpy as np

from qbench.errors import ModelError
from qbench.frontends.onnx.builder import Builder, Unsupported, Value
from qbench.frontends.onnx.dynamic import matmul_integer_to_float
from qbench.frontends.onnx.linear import matmul
from qbench.frontends.onnx.masks import Places, as_long_as, both, filler, some
from qbench.frontends.onnx.source import SourceNode
from qbench.frontends.onnx.table import converter
from qbench.ir.sizes import size_of
from qbench.ir.types import Dim

_OWN = "com.microsoft"


@converter(
    "Attention",
    "input weights bias? mask? past? added?",
    "num_heads unidirectional scale mask_filter_value qkv_hidden_sizes",
    domain=_OWN,
)
def packed_attention(
    builder: Builder,
    node: SourceNode,
    x: Value,
    weights: Value,
    bias: Value | None,
    mask: Value | None,
    past: Value | None,
    added: Value | None,
) -> tuple[Value, ...]:
    """Queries, keys and values are one product; the past is keys and values in one tensor."""
    product = matmul(builder, node, x, weights)
    if bias is not None:
        product = builder.emit("nn.bias_add", product, bias, axis=2)
    return _packed(builder, node, product, mask, past, added)


@converter(
    "QAttention",
    "input weights bias scale weight_scale mask? zero_point? weight_zero_point? past?",
    "num_heads unidirectional scale mask_filter_value do_rotary past_present_share_buffer",
    domain=_OWN,
)
def integer_attention(
    builder: Builder, node: SourceNode, x: Value, weights: Value, bias: Value, scale: Value, weight_scale: Value,
    mask: Value | None, zero_point: Value | None, weight_zero_point: Value | None, past: Value | None,
) -> tuple[Value, ...]:  # fmt: skip
    """The same with a product of integers."""
    if node.flag("do_rotary"):
        raise Unsupported("a rotation inside")
    given = (x, weights, scale, weight_scale, zero_point, weight_zero_point, bias)
    return _packed(builder, node, matmul_integer_to_float(builder, node, *given), mask, past, None)


def _packed(
    builder: Builder, node: SourceNode, product: Value, mask: Value | None, past: Value | None, added: Value | None
) -> tuple[Value, ...]:
    total = product.size(2)
    sizes = node.integers("qkv_hidden_sizes") or (total // 3,) * 3
    cuts = (sizes[0], sizes[0] + sizes[1])
    q, k, v = (_heads(builder, node, part) for part in builder.emit_many("split", (product,), 3, cuts=cuts, axis=2))
    if past is not None:
        keys, values = (builder.emit("take", past, np.asarray(i), axis=0) for i in range(2))
        k, v = (builder.emit("concatenate", a, b, axis=2) for a, b in ((keys, k), (values, v)))
    seen = Places(q, k, 0 if past is None else past.shape[3]).causal(builder, node)
    y = _joined(builder, _attended(builder, node, q, k, v, (filler(builder, node, mask, k), added), seen))
    if len(node.outputs) < 2 or not node.outputs[1]:
        return (y,)
    pair = [builder.emit("expand_dims", value, axes=(0,)) for value in (k, v)]
    return y, builder.emit("concatenate", *pair, axis=0)


@converter(
    "MultiHeadAttention",
    "query key? value? bias? mask? added? past_key? past_value?",
    "num_heads unidirectional scale mask_filter_value",
    domain=_OWN,
)
def multi_head_attention(
    builder: Builder,
    node: SourceNode,
    q: Value,
    k: Value | None,
    v: Value | None,
    bias: Value | None,
    mask: Value | None,
    added: Value | None,
    past_key: Value | None,
    past_value: Value | None,
) -> tuple[Value, ...]:
    """Of three tensors; keys and values may have their heads apart already."""
    if k is None or v is None or q.rank != 3:
        raise Unsupported("queries, keys and values packed in one tensor; export them as three")
    parts: list[Value] = [q, k, v]
    if bias is not None:
        cuts = (q.size(2), 2 * q.size(2))
        offsets = builder.emit_many("split", (bias,), 3, cuts=cuts, axis=0)
        if bias.constant is not None:
            offsets = tuple(builder.known(bias, part) for part in np.split(bias.constant, cuts))
        parts = [
            builder.emit("add", part, offset) if part.rank == 3 else part
            for part, offset in zip(parts, offsets, strict=True)
        ]
    q, k, v, places = _with_past(builder, node, parts, (past_key, past_value))
    masks = filler(builder, node, mask, k), added
    return _joined(builder, _attended(builder, node, q, k, v, masks, places.causal(builder, node))), k, v


@converter(
    "GroupQueryAttention",
    "query key? value? past_key? past_value? lengths total cos? sin? positions? added?",
    "num_heads kv_num_heads scale softcap do_rotary rotary_interleaved local_window_size smooth_softmax qk_output",
    domain=_OWN,
)
def group_query_attention(
    builder: Builder, node: SourceNode, q: Value, k: Value | None, v: Value | None, past_key: Value | None,
    past_value: Value | None, lengths: Value, total: Value, cos: Value | None, sin: Value | None,
    positions: Value | None, added: Value | None,
) -> tuple[Value, ...]:  # fmt: skip
    """Queries of more heads than keys and values, turned by their positions; `lengths` says which keys are the last."""
    if node.flag("smooth_softmax"):
        raise Unsupported("a smooth softmax")
    heads, few = node.integer("num_heads", 0), node.integer("kv_num_heads", 0)
    if heads < 1 or few < 1:
        raise ModelError(f"node {node} has {heads} heads of queries and {few} of keys")
    if k is None or v is None:
        each = q.size(2) // (heads + 2 * few)
        q, k, v = builder.emit_many("split", (q,), 3, cuts=(each * heads, each * (heads + few)), axis=2)
    parts = [_heads(builder, node, part, n) for part, n in ((q, "num_heads"), (k, "kv_num_heads"), (v, "kv_num_heads"))]
    before: Dim = 0 if past_key is None else past_key.shape[2]
    if node.flag("do_rotary") and cos is not None and sin is not None:
        if positions is None:
            end = (size_of(before) + size_of(q.shape[1])).dim
            positions = builder.emit("expand_dims", builder.emit("arange", start=before, stop=end), axes=(0,))
        turned, in_pairs = 2 * cos.size(1), node.flag("rotary_interleaved")
        cos, sin = (builder.emit("take", table, positions) for table in (cos, sin))
        parts[:2] = [_turned(builder, part, cos, sin, turned, in_pairs) for part in parts[:2]]
    keys, values = (
        new if old is None else builder.emit("concatenate", old, new, axis=2)
        for old, new in zip((past_key, past_value), parts[1:], strict=True)
    )
    at = builder.emit("arange", stop=keys.shape[2], dtype=lengths.dtype)
    there = builder.emit("less_equal", at, builder.emit("reshape", lengths, newshape=(lengths.shape[0], 1, 1, 1)))
    left = max(node.integer("local_window_size", -1), 0) - 1  # counts the query's own key
    seen = both(builder, there, Places(parts[0], keys, before).seen(builder, left, right=0))
    y = _attended(builder, node, parts[0], keys, values, (added,), seen)
    return _joined(builder, y), keys, values


@converter(
    "Attention",
    "Q K V mask? past_key? past_value? lengths?",
    "is_causal kv_num_heads q_num_heads qk_matmul_output_mode scale softcap softmax_precision left_window_size "
    "right_window_size",
)
def attention(
    builder: Builder, node: SourceNode, q: Value, k: Value, v: Value, mask: Value | None, past_key: Value | None,
    past_value: Value | None, lengths: Value | None,
) -> tuple[Value, ...]:  # fmt: skip
    """A mask of truth values says what is seen, any other is added; a query that sees nothing makes zeros."""
    wide = q.rank == 3
    q, k, v, places = _with_past(builder, node, [q, k, v], (past_key, past_value))
    left, right = (node.integer(f"{side}_window_size", -1) for side in ("left", "right"))
    places = replace(places, lengths=lengths)
    seen = places.seen(builder, left, 0 if node.flag("is_causal") else right)
    mask = mask and as_long_as(builder, mask, k.shape[2])
    if mask is not None and mask.dtype == "bool":
        mask, seen = None, both(builder, mask, seen)
        blind = seen
    else:
        blind = seen if lengths is not None or left >= 0 else None
    sees = blind and some(builder, blind, (blind.rank - 1,))
    if seen is not None and sees is not None:  # what sees nothing sees all first: no NaN to calibrate on
        seen = builder.emit("logical_or", seen, builder.emit("logical_not", sees))
    y = _attended(builder, node, q, k, v, (mask,), seen)
    y = y if sees is None else builder.emit("where", sees, y, np.asarray(0, y.dtype))
    return (_joined(builder, y) if wide else y), k, v


def _with_past(
    builder: Builder, node: SourceNode, parts: list[Value], past: tuple[Value | None, Value | None]
) -> tuple[Value, Value, Value, Places]:
    """Queries, and the keys and values up to now, their heads apart."""
    counts = ("q_num_heads", "kv_num_heads", "kv_num_heads") if "q_num_heads" in node.attrs else ("num_heads",) * 3
    q, k, v = (_heads(builder, node, part, count) for part, count in zip(parts, counts, strict=True))
    k, v = (
        new if old is None else builder.emit("concatenate", old, new, axis=2)
        for old, new in zip(past, (k, v), strict=True)
    )
    return q, k, v, Places(q, k, 0 if past[0] is None else past[0].shape[2])


def _heads(builder: Builder, node: SourceNode, x: Value, count: str = "num_heads") -> Value:
    """(batch, heads, length, size) of (batch, length, all)."""
    if x.rank == 4:
        return x
    heads = node.integer(count, 0)
    if heads < 1 or x.size(2) % heads:
        raise ModelError(f"node {node}: {x.size(2)} features do not split into {heads} heads")
    apart = builder.emit("reshape", x, newshape=(*x.shape[:2], heads, x.size(2) // heads))
    return builder.emit("transpose", apart, axes=(0, 2, 1, 3))


def _joined(builder: Builder, y: Value) -> Value:
    """(batch, length, all) of (batch, heads, length, size)."""
    y = builder.emit("transpose", y, axes=(0, 2, 1, 3))
    return builder.emit("reshape", y, newshape=(*y.shape[:2], y.size(2) * y.size(3)))


def _attended(
    builder: Builder,
    node: SourceNode,
    q: Value,
    k: Value,
    v: Value,
    added: tuple[Value | None, ...],
    seen: Value | None,
) -> Value:
    """The attention itself: (batch, heads, queries, size)."""
    if any(node.outputs[3:]):
        raise Unsupported("the scores as an output")
    groups = q.size(1) // k.size(1)
    if groups > 1:
        k, v = (_repeated(builder, value, groups) for value in (k, v))
    scale = node.real("scale", 0.0) or q.size(3) ** -0.5
    scores = builder.emit("nn.batch_matmul", q, k, transpose_rhs=True)
    scores = builder.emit("multiply", scores, np.asarray(scale, q.dtype))
    cap = node.real("softcap", 0.0)
    if cap:
        bent = builder.emit("tanh", builder.emit("multiply", scores, np.asarray(1 / cap, q.dtype)))
        scores = builder.emit("multiply", bent, np.asarray(cap, q.dtype))
    for mask in added:
        scores = scores if mask is None else builder.emit("add", scores, mask)
    if seen is not None:
        scores = builder.emit("where", seen, scores, np.asarray(-np.inf, q.dtype))
    return builder.emit("nn.batch_matmul", builder.emit("nn.softmax", scores), v)


def _repeated(builder: Builder, x: Value, times: int) -> Value:
    """Each head that often, one after the other."""
    batch, heads, length, size = x.shape
    more = builder.emit("expand_dims", x, axes=(2,))
    more = builder.emit("broadcast_to", more, shape=(batch, heads, times, length, size))
    return builder.emit("reshape", more, newshape=(batch, x.size(1) * times, length, size))


@converter("RotaryEmbedding", "x positions cos sin", "interleaved num_heads rotary_embedding_dim scale", domain=_OWN)
def own_rotary(builder: Builder, node: SourceNode, x: Value, positions: Value, cos: Value, sin: Value) -> Value:
    """Positions are given for each id, or only that of the first."""
    if positions.rank == 1:
        counted = builder.emit("arange", stop=x.shape[-2], dtype=positions.dtype)
        positions = builder.emit("expand_dims", builder.emit("add", counted, positions), axes=(0,))
    return rotary(builder, node, x, cos, sin, positions)


@converter("RotaryEmbedding", "x cos sin positions?", "interleaved num_heads rotary_embedding_dim")
def rotary(builder: Builder, node: SourceNode, x: Value, cos: Value, sin: Value, positions: Value | None) -> Value:
    """Pairs of features turned by an angle for each position; a pair is two neighbours, or one of each half."""
    q = _heads(builder, node, x)
    if positions is not None:
        cos, sin = (builder.emit("take", table, positions) for table in (cos, sin))
    turned = node.integer("rotary_embedding_dim", 0) or q.size(3)
    y = _turned(builder, q, cos, sin, turned, node.flag("interleaved"))
    if x.rank == 4:
        return y
    return builder.emit("reshape", builder.emit("transpose", y, axes=(0, 2, 1, 3)), newshape=x.shape)


def _turned(builder: Builder, q: Value, cos: Value, sin: Value, turned: int, interleaved: bool) -> Value:
    """Heads (batch, heads, length, size) with the first `turned` features turned; angles are (batch, length, pairs)."""
    cos, sin = (builder.emit("expand_dims", table, axes=(1,)) for table in (cos, sin))
    rest: tuple[Value, ...] = ()
    if turned < q.size(3):
        q, *others = builder.emit_many("split", (q,), 2, cuts=(turned,), axis=3)
        rest = tuple(others)
    if interleaved:
        pairs = builder.emit("reshape", q, newshape=(*q.shape[:3], turned // 2, 2))
        a, b = (builder.emit("take", pairs, np.asarray(i), axis=4) for i in range(2))
    else:
        a, b = builder.emit_many("split", (q,), 2, cuts=(turned // 2,), axis=3)

    def product(value: Value, table: Value) -> Value:
        return builder.emit("multiply", value, table)

    real = builder.emit("subtract", product(a, cos), product(b, sin))
    imaginary = builder.emit("add", product(a, sin), product(b, cos))
    if interleaved:
        both = [builder.emit("expand_dims", value, axes=(4,)) for value in (real, imaginary)]
        y = builder.emit("reshape", builder.emit("concatenate", *both, axis=4), newshape=q.shape)
    else:
        y = builder.emit("concatenate", real, imaginary, axis=3)
    return builder.emit("concatenate", y, *rest, axis=3) if rest else y
