"""The ops: importing this package fills `qbench.ir.op.OPS` with every declaration."""

from qbench.ops import activation, conv, dense, elementwise, image, norm, pool, reduce, reshape, select, softmax, unary

__all__ = [
    "activation",
    "conv",
    "dense",
    "elementwise",
    "image",
    "norm",
    "pool",
    "reduce",
    "reshape",
    "select",
    "softmax",
    "unary",
]
