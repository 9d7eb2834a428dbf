"""Softmax that was written as several ops: its NaN, where all of a row is masked, are replaced by zero."""

from qbench.ir.graph import Node
from qbench.ir.op import is_op
from qbench.ops.float.logic import IsNan
from qbench.ops.float.softmax import Softmax
from qbench.ops.qnn.border import Dequantize
from qbench.passes.canonicalize.rule import fuse, scalar, values
from qbench.passes.rewrite import Rewriter


def guarded_softmax_to_safe(rw: Rewriter, node: Node) -> bool:
    """where(is_nan(s), 0, s) of a softmax s is a safe one: so PyTorch exports attention with a mask."""
    condition, number, data = node.inputs
    guard, softmax = rw.producer(condition), rw.producer(data)
    if guard is None or softmax is None or not is_op(guard, IsNan) or not is_op(softmax, Softmax):
        return False
    if guard.inputs != (data,) or scalar(rw, number) != 0 or rw.types[data] != rw.types[node.output]:
        return False
    if not {data, condition}.isdisjoint(rw.outputs) or rw.sole_consumer(condition) != node:
        return False
    if {reader.name for reader in rw.consumers(data)} != {guard.name, node.name}:
        return False
    return fuse(
        rw, (softmax, guard, node), Softmax.name, softmax.inputs, axis=values(rw, softmax, "axis")[0], safe=True
    )


def guarded_integers_to_themselves(rw: Rewriter, node: Node) -> bool:
    """where(is_nan(d), n, d) of what was dequantized is d, never NaN: so that guard looks in quantized files."""
    condition, _, data = node.inputs
    guard, dequantize = rw.producer(condition), rw.producer(data)
    if guard is None or dequantize is None or not is_op(guard, IsNan) or not is_op(dequantize, Dequantize):
        return False
    return guard.inputs == (data,) and rw.types[data] == rw.types[node.output] and rw.bypass(node, data)
