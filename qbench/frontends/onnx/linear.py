"""MatMul and Gemm."""

import numpy as np

from qbench.frontends.onnx.builder import Builder, Value
from qbench.frontends.onnx.source import SourceNode
from qbench.frontends.onnx.table import converter


@converter("MatMul", "A B")
def matmul(builder: Builder, node: SourceNode, lhs: Value, rhs: Value) -> Value:
    """A constant matrix on the right is a dense layer's weight, stored [units, in]."""
    if rhs.fixed and rhs.rank == 2 and lhs.rank >= 2:
        return builder.emit("nn.dense", lhs, builder.transposed(rhs))
    if lhs.rank == 1:
        lhs = builder.emit("expand_dims", lhs, axes=(0,))
        return builder.emit("squeeze", matmul(builder, node, lhs, rhs), axes=(max(rhs.rank - 2, 0),))
    if rhs.rank == 1:
        rhs = builder.emit("expand_dims", rhs, axes=(1,))
        return builder.emit("squeeze", builder.emit("nn.batch_matmul", lhs, rhs), axes=(lhs.rank - 1,))
    return builder.emit("nn.batch_matmul", lhs, rhs)


@converter("Gemm", "A B C?", "alpha beta transA transB")
def gemm(builder: Builder, node: SourceNode, a: Value, b: Value, c: Value | None) -> Value:
    """alpha * A @ B + beta * C."""
    alpha, beta = np.float32(node.real("alpha", 1.0)), np.float32(node.real("beta", 1.0))
    transposed = node.flag("transB")
    if node.flag("transA"):
        a = builder.emit("transpose", a, axes=(1, 0))
    if b.constant is not None:
        b, alpha = builder.known(b, b.constant if alpha == 1 else b.constant * alpha), 1
    if b.fixed:
        y = builder.emit("nn.dense", a, b if transposed else builder.transposed(b))
    else:
        y = builder.emit("nn.batch_matmul", a, b, transpose_rhs=transposed)
    if alpha != 1:
        y = builder.emit("multiply", y, np.asarray(alpha))
    if c is None or beta == 0:
        return y
    if c.constant is not None and beta != 1:
        c, beta = builder.known(c, c.constant * beta), 1
    if c.fixed and beta == 1 and c.shape in ((), (1,), (1, 1), y.shape[1:], (1, *y.shape[1:])):
        units = y.size(1)
        return builder.emit("nn.bias_add", y, builder.moved(c, lambda bias: np.broadcast_to(bias.ravel(), (units,))))
    if beta != 1:
        c = builder.emit("multiply", c, np.asarray(beta))
    return builder.emit("add", y, c)
