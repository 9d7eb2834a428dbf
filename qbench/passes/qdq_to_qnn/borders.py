"""dequantize followed by quantize: nothing, or one requantize."""

from __future__ import annotations

from qbench.ir.graph import Attr, Node
from qbench.passes.qdq_to_qnn.work import Float, Work

__all__ = ["cancel_or_requantize"]


def cancel_or_requantize(work: Work, head: Node) -> None:
    """A quantize that reads dequantized integers."""
    source = work.need_integers(head.inputs[0])
    q = work.rw.qparams[source]
    if q == work.rw.qparams[head.output] and work.rw.bypass(head, source):
        return
    if work.rw.qparams[head.output].axis is not None or (q.axis is not None and any(q.zero_points)):
        raise Float("unsupported: requantize to scales along an axis")
    work.need_ratios(q, (head,))
    work.begin(head)
    attrs: dict[str, Attr] = {"rounding": work.rounding("qnn.requantize"), "semantics": work.semantics}
    work.emit("qnn.requantize", (source,), head.output, work.rw.qparams[head.output], attrs=attrs, name=head.name)
    work.finish()
