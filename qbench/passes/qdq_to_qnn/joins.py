"""Ops that join tensors: concatenate and where bring them to the qparams of the result."""

from __future__ import annotations

from qbench.ir.graph import Node
from qbench.passes.qdq_to_qnn.work import Work

__all__ = ["choose", "join"]


def join(work: Work, head: Node) -> None:
    """concatenate."""
    sources = [work.per_tensor(value) for value in head.inputs]
    _joined(work, head, [integers for integers, _ in sources], ())


def choose(work: Work, head: Node) -> None:
    """where: the condition stays what it is."""
    sources = [work.per_tensor(value) for value in head.inputs[1:]]
    _joined(work, head, [integers for integers, _ in sources], head.inputs[:1])


def _joined(work: Work, head: Node, sources: list[str], before: tuple[str, ...]) -> None:
    q = work.rw.qparams[sources[0]]
    targets = work.quantizes(head.output)
    if not targets and all(work.rw.qparams[source] == q for source in sources):
        work.begin(head)
        joined = work.emit(
            head.op, (*before, *sources), work.value(f"{head.output}.quantized"), q, attrs=head.attrs, name=head.name
        )
        work.emit("qnn.dequantize", (joined,), head.output, None)
        work.finish()
        return
    targets = work.need_quantizes(head.output)
    work.begin(head, *targets)
    for target in targets:
        q = work.rw.qparams[target.output]
        equal = all(work.rw.qparams[source] == q for source in sources)
        narrow = all(work.rw.qparams[source].dtype in ("int8", "uint8") for source in sources)
        if head.op == "concatenate" and not equal and narrow and work.semantics != "tvm":
            op, values = "qnn.concatenate", {**head.attrs, "semantics": work.semantics}
            work.emit(op, sources, target.output, q, attrs=values, name=head.name)
            continue
        parts = [work.requantized(source, target) for source in sources]
        work.emit(head.op, (*before, *parts), target.output, q, attrs=head.attrs, name=head.name)
    work.finish()
