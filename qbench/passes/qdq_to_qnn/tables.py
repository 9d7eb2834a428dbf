"""Functions of one element: a table over all integers."""

from __future__ import annotations

from qbench.ir.graph import Attr, Node
from qbench.passes.qdq_to_qnn.work import TABLES, Float, Work

__all__ = ["clamp", "softmax", "table"]


def table(work: Work, head: Node) -> None:
    """One table, or for the slopes of nn.prelu one per channel."""
    data, q = work.per_tensor(head.inputs[0])
    targets = work.need_quantizes(head.output)
    if q.dtype not in TABLES:
        raise Float(f"unsupported: a table over {q.dtype}")
    attrs: dict[str, Attr] = {"function": head.op, "semantics": work.semantics}
    if len(head.inputs) > 1:
        attrs |= _slopes(work, head)
    elif head.attrs:
        attrs["parameters"] = tuple((key, value) for key, value in head.attrs.items())
    work.begin(head, *targets)
    for target in targets:
        work.emit("qnn.unary", (data,), target.output, work.rw.qparams[target.output], attrs=attrs, name=head.name)
    work.finish()


def _slopes(work: Work, head: Node) -> dict[str, Attr]:
    array = work.reals(head.inputs[1])
    if array is None:
        raise Float("unsupported: its slopes are no constant")
    slopes = tuple(float(slope) for slope in array.reshape(-1))
    axis: int = getattr(work.rw.op(head), "axis", 1) % work.rank(head.inputs[0])
    return {"slopes": slopes, "axis": axis if len(slopes) > 1 else None}


def clamp(work: Work, head: Node) -> None:
    """relu and clip by themselves: bounds of the integers where the qparams stay, else a table."""
    data, q = work.per_tensor(head.inputs[0])
    targets = work.need_quantizes(head.output)
    if any(work.rw.qparams[target.output] != q for target in targets):
        table(work, head)
        return
    low, high = work.bounds((head,), q)
    attrs: dict[str, Attr] = {"a_min": float(low), "a_max": float(high)}
    work.begin(head, *targets)
    for target in targets:
        work.emit("clip", (data,), target.output, q, attrs=attrs, name=head.name)
    work.finish()


def softmax(work: Work, head: Node) -> None:
    """onnxruntime has a softmax of 8-bit integers; otherwise it stays in real numbers."""
    if work.semantics != "onnx" or not work.fused:
        raise Float("default for this op: softmax stays in float")
    data, q = work.per_tensor(head.inputs[0])
    targets = work.need_quantizes(head.output)
    if q.dtype not in ("int8", "uint8") or any(work.rw.qparams[target.output].dtype != q.dtype for target in targets):
        raise Float("unsupported: softmax of other than 8-bit integers of one type")
    attrs: dict[str, Attr] = {**head.attrs, "semantics": "onnx"}
    work.begin(head, *targets)
    for target in targets:
        work.emit("qnn.softmax", (data,), target.output, work.rw.qparams[target.output], attrs=attrs, name=head.name)
    work.finish()
