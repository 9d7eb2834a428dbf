"""Average pools and means."""

from __future__ import annotations

import math
from collections.abc import Mapping

from qbench.ir.graph import Attr, Node
from qbench.ir.qparams import QParams
from qbench.ops.float.pool import AvgPool2d
from qbench.ops.numeric.windows import pool_counts
from qbench.passes.accumulators import accumulator_dtype, reach
from qbench.passes.qdq_to_qnn.work import Float, Work

__all__ = ["average", "average_pool"]


def average(work: Work, head: Node) -> None:
    """A mean over axes: the exact sum of integers, divided by their number in the one rounding."""
    shape, op = work.rw.types[head.inputs[0]].shape, work.rw.op(head)
    axes = tuple(axis % len(shape) for axis in getattr(op, "axes", (2, 3)))
    sizes = [size for axis in axes if isinstance(size := shape[axis], int)]
    if len(sizes) < len(axes):
        raise Float(f"unsupported: a mean over sizes known only at run time, of shape {shape}")
    _mean(work, head, "qnn.sum", {"axes": axes, "keepdims": getattr(op, "keepdims", True)}, math.prod(sizes))


def average_pool(work: Work, head: Node) -> None:
    """The mean of each window; onnxruntime sums real numbers, the others integers."""
    shape, op = work.rw.types[head.inputs[0]].shape, work.rw.op(head)
    assert isinstance(op, AvgPool2d)
    if not (isinstance(shape[2], int) and isinstance(shape[3], int)):
        raise Float(f"unsupported: an average pool of sizes known only at run time, of shape {shape}")
    if op.pool_size == shape[2:] and not any(op.padding):  # onnxruntime takes it for a global pool too
        average(work, head)
        return
    data, q = work.per_tensor(head.inputs[0])
    clamps, targets = work.result(head)
    narrow = all(each.dtype in ("int8", "uint8") for each in (q, *(work.rw.qparams[t.output] for t in targets)))
    if work.semantics == "onnx" and work.fused and narrow:
        work.begin(head, *clamps, *targets)
        for target in targets:
            attrs = {**head.attrs, "semantics": "onnx"}
            work.emit_clamped("qnn.avg_pool2d", (data,), target, clamps, attrs=attrs, name=head.name)
        work.finish()
        return
    elements = pool_counts((shape[2], shape[3]), op.window, op.count_include_pad)
    count = math.lcm(*(int(number) for number in set(elements.ravel())))
    _mean(work, head, "qnn.sum_pool2d", {**head.attrs, "denominator": count}, count)


def _mean(work: Work, head: Node, op: str, attrs: Mapping[str, Attr], count: int) -> None:
    """The exact sum of integers by an op, and one rounding that divides it by a number."""
    data, q = work.per_tensor(head.inputs[0])
    clamps, targets = work.result(head)
    sums = QParams(q.scales[0], 0, accumulator_dtype(reach(q) * count, None))
    work.need_ratios(sums, targets)
    work.begin(head, *clamps, *targets)
    attrs, value = {**attrs, "accumulator": sums.dtype}, work.value(f"{targets[0].output}.accumulator")
    value = work.emit(op, (data,), value, sums, attrs=attrs, name=head.name, like=(head,))
    for target in targets:
        divided: dict[str, Attr] = {"rounding": work.rounding(op), "divisor": count}
        work.emit_clamped("qnn.requantize", (value,), target, clamps, attrs=divided)
    work.finish()
