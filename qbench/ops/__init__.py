"""The ops: importing this package fills `qbench.ir.op.OPS` with every declaration."""

from qbench.ops import activation, dense, elementwise, reshape, softmax, unary

__all__ = ["activation", "dense", "elementwise", "reshape", "softmax", "unary"]
