"""Ops of onnxruntime's own that its optimizer, and tools that build on it, write in place of several standard ones."""

import numpy as np

from qbench.errors import ModelError
from qbench.frontends.onnx.activation import swish
from qbench.frontends.onnx.builder import Builder, Unsupported, Value
from qbench.frontends.onnx.conv import CONV_ATTRS, conv
from qbench.frontends.onnx.linear import gemm, matmul
from qbench.frontends.onnx.norm import layer_norm, rms_norm
from qbench.frontends.onnx.same import same
from qbench.frontends.onnx.source import SourceNode
from qbench.frontends.onnx.stored import Stored
from qbench.frontends.onnx.table import converter
from qbench.ir.bits import unpacked
from qbench.ir.dtypes import numpy_dtype
from qbench.ir.qparams import QParams

_OWN = "com.microsoft"

converter("Gelu", "X", "approximate", domain=_OWN)(same("nn.gelu", "approximate"))


@converter("FastGelu", "X bias?", domain=_OWN)
def fast_gelu(builder: Builder, node: SourceNode, x: Value, bias: Value | None) -> Value:
    """By the tanh formula, after a bias."""
    x = x if bias is None else builder.emit("add", x, bias)
    return builder.emit("nn.gelu", x, approximate="tanh")


@converter("BiasGelu", "A B", domain=_OWN)
def bias_gelu(builder: Builder, node: SourceNode, x: Value, bias: Value) -> Value:
    """After a bias."""
    return builder.emit("nn.gelu", builder.emit("add", x, bias))


@converter("QuickGelu", "X", "alpha", domain=_OWN)
def quick_gelu(builder: Builder, node: SourceNode, x: Value) -> Value:
    """A swish of another slope."""
    return swish(builder, node, x, 1.702)


@converter("SkipLayerNormalization", "input skip gamma beta? bias?", "epsilon", domain=_OWN)
def skip_layer_norm(
    builder: Builder, node: SourceNode, x: Value, skip: Value, gamma: Value, beta: Value | None, bias: Value | None
) -> tuple[Value, ...]:
    """A residual sum, which is the fourth output, and its normalization."""
    total = _residual(builder, node, x, skip, bias)
    return layer_norm(builder, node, total, gamma, beta), total, total, total


@converter("SkipSimplifiedLayerNormalization", "input skip gamma bias?", "epsilon", domain=_OWN)
def skip_rms_norm(
    builder: Builder, node: SourceNode, x: Value, skip: Value, gamma: Value, bias: Value | None
) -> tuple[Value, ...]:
    """The same without a mean."""
    total = _residual(builder, node, x, skip, bias)
    return rms_norm(builder, node, total, gamma), total, total, total


def _residual(builder: Builder, node: SourceNode, x: Value, skip: Value, bias: Value | None) -> Value:
    if any(node.outputs[1:3]):
        raise Unsupported("mean and deviation as outputs")
    total = builder.emit("add", x, skip)
    return total if bias is None else builder.emit("add", total, bias)


@converter("FusedMatMul", "A B", "alpha transA transB transBatchA transBatchB", domain=_OWN)
def fused_matmul(builder: Builder, node: SourceNode, lhs: Value, rhs: Value) -> Value:
    """Transposed first where asked, and times alpha; a transposed batch is what stands first but one."""
    lhs, rhs = (
        builder.emit("transpose", value, axes=(*range(1, value.rank - 1), 0, value.rank - 1)) if moved else value
        for value, moved in ((lhs, node.flag("transBatchA")), (rhs, node.flag("transBatchB")))
    )
    flips = {"transpose_lhs": node.flag("transA"), "transpose_rhs": node.flag("transB")}
    y = builder.emit("nn.batch_matmul", lhs, rhs, **flips) if any(flips.values()) else matmul(builder, node, lhs, rhs)
    alpha = node.real("alpha", 1.0)
    return y if alpha == 1 else builder.emit("multiply", y, np.asarray(alpha, y.dtype))


@converter("FusedConv", "X W B? Z?", f"{CONV_ATTRS} activation activation_params", domain=_OWN)
def fused_conv(
    builder: Builder, node: SourceNode, x: Value, w: Value, bias: Value | None, added: Value | None
) -> Value:
    """A convolution, perhaps a sum, and an activation."""
    y = conv(builder, node, x, w, bias)
    y = y if added is None else builder.emit("add", y, added)
    return _activated(builder, node, y)


@converter("FusedGemm", "A B C?", "alpha beta transA transB activation activation_alpha activation_beta", domain=_OWN)
def fused_gemm(builder: Builder, node: SourceNode, a: Value, b: Value, c: Value | None) -> Value:
    """A Gemm and an activation."""
    return _activated(builder, node, gemm(builder, node, a, b, c))


def _activated(builder: Builder, node: SourceNode, y: Value) -> Value:
    kind, given = node.text("activation", ""), node.reals("activation_params") or ()
    first = given[0] if given else node.real("activation_alpha", 0.01)
    second = given[1] if len(given) > 1 else node.real("activation_beta", 0.5)
    forms: dict[str, tuple[str, dict[str, float]]] = {
        "Relu": ("nn.relu", {}),
        "Tanh": ("tanh", {}),
        "Sigmoid": ("sigmoid", {}),
        "LeakyRelu": ("nn.leaky_relu", {"alpha": first}),
        "Clip": ("clip", {"a_min": first, "a_max": second}),
        "HardSigmoid": ("nn.hard_sigmoid", {"alpha": first, "beta": second}),
    }
    if kind not in forms:
        raise Unsupported(f"the fused activation {kind}")
    op, attrs = forms[kind]
    return builder.emit(op, y, **attrs)


@converter(
    "MatMulNBits",
    "A B scales zero_points? g_idx? bias?",
    "K N accuracy_level bits block_size weight_prepacked",
    domain=_OWN,
)
def matmul_nbits(
    builder: Builder,
    node: SourceNode,
    x: Value,
    packed: Value,
    scales: Value,
    zero_points: Value | None,
    groups: Value | None,
    bias: Value | None,
) -> Value:
    """A dense layer whose weight is packed in blocks of few bits along its inputs."""
    if groups is not None:
        raise Unsupported("blocks in another order (g_idx)")
    units, depth, bits = node.integer("N", 0), node.integer("K", 0), node.integer("bits", 4)
    block = node.integer("block_size", 32)
    if packed.constant is None or scales.constant is None or (zero_points and zero_points.constant is None):
        raise Unsupported("a weight that is computed at run time")
    if bits not in (2, 4, 8) or block < 1:
        raise ModelError(f"node {node}: bits={bits}, block_size={block}")
    blocks = -(-depth // block)
    whole = unpacked(packed.constant, bits).astype(np.float32).reshape(units, -1)[:, :depth]
    scale = scales.constant.astype(np.float32).reshape(units, blocks)
    zero: np.ndarray[tuple[int, ...], np.dtype[np.float32]] = np.full((units, blocks), 2 ** (bits - 1), np.float32)
    if zero_points is not None and zero_points.constant is not None:
        given = zero_points.constant
        numbers = given if given.dtype != np.uint8 else unpacked(given.reshape(units, -1), bits)[:, :blocks]
        zero = numbers.astype(np.float32).reshape(units, blocks)
    if bits in (4, 8) and depth % block == 0 and (zero == np.rint(zero)).all() and scales.dtype == x.dtype == "float32":
        q = QParams(
            tuple(scale.ravel().tolist()),
            tuple(zero.astype(np.int64).ravel().tolist()),
            "uint4" if bits == 4 else "uint8",
            0,
            block,
        )
        stored = Stored(packed.name, whole.astype(numpy_dtype(q.dtype)), q, node.name)
        weight = Value.dequantized(builder.fresh(f"{packed.name}.dequantized"), stored)
    else:
        zero, scale = (np.repeat(each, block, 1)[:, :depth] for each in (zero, scale))
        weight = builder.known(packed, ((whole - zero) * scale).astype(x.dtype))
    y = builder.emit("nn.dense", x, weight)
    return y if bias is None else builder.emit("nn.bias_add", y, bias, axis=y.rank - 1)
