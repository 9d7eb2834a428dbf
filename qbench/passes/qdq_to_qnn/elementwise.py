"""Sums, differences, products and extremes of two tensors."""

from __future__ import annotations

from collections.abc import Sequence

from qbench.ir.graph import Attr, Node
from qbench.ir.qparams import QParams
from qbench.passes.accumulators import accumulator_dtype, accumulator_qparams, reach
from qbench.passes.qdq_to_qnn.work import TABLES, Float, Work

__all__ = ["arithmetic", "binary", "extremum"]

_NARROW = ("int4", "uint4", "int8", "uint8")


def arithmetic(work: Work, head: Node) -> None:
    """add, subtract and multiply: by a number a table, of two tensors integer arithmetic where there is some."""
    if with_number(work, head):
        return
    (lhs, left), (rhs, right) = (work.per_tensor(value) for value in head.inputs)
    clamps, targets = work.result(head)
    types = {left.dtype, right.dtype, *(work.rw.qparams[target.output].dtype for target in targets)}
    if work.semantics == "onnx" and not (work.fused and head.op != "subtract" and types in ({"int8"}, {"uint8"})):
        binary(work, head)  # onnxruntime computes the others in float32
        return
    if not types <= {*TABLES}:
        raise Float(f"unsupported: no integer form of this op on {', '.join(sorted(types - {*TABLES}))}")
    if head.op == "multiply":
        _product(work, head, ((lhs, left), (rhs, right)), clamps, targets)
        return
    work.need_ratios(left, targets)
    work.need_ratios(right, targets)
    work.begin(head, *clamps, *targets)
    op = f"qnn.{head.op}"
    attrs: dict[str, Attr] = {"rounding": work.rounding(op), "semantics": work.semantics}
    for target in targets:
        work.emit_clamped(op, (lhs, rhs), target, clamps, attrs=attrs, name=head.name)
    work.finish()


def _product(
    work: Work, head: Node, sides: tuple[tuple[str, QParams], ...], clamps: Sequence[Node], targets: Sequence[Node]
) -> None:
    """A product into an accumulator, and one rounding."""
    (lhs, left), (rhs, right) = sides[::-1] if sides[0][0] in work.rw.constants else sides
    sums = accumulator_qparams(left, right, None, accumulator_dtype(reach(left) * reach(right), None))
    work.need_ratios(sums, targets)
    work.begin(head, *clamps, *targets)
    value = work.value(f"{targets[0].output}.accumulator")
    value = work.emit(
        "qnn.multiply", (lhs, rhs), value, sums, attrs={"accumulator": sums.dtype}, name=head.name, like=(head,)
    )
    attrs: dict[str, Attr] = {"rounding": work.rounding("qnn.multiply"), "zero_point_first": work.semantics == "onnx"}
    for target in targets:
        work.emit_clamped("qnn.requantize", (value,), target, clamps, attrs=attrs)
    work.finish()


def binary(work: Work, head: Node) -> None:
    """A function of two elements of 8 bits that has no integer arithmetic: a table over all pairs."""
    if with_number(work, head):
        return
    sources = [work.per_tensor(value) for value in head.inputs]
    clamps, targets = work.result(head)
    for _, q in sources:
        if q.dtype not in _NARROW:
            raise Float(f"unsupported: no integer form of this op on {q.dtype}")
    work.begin(head, *clamps, *targets)
    for target in targets:
        integers = tuple(value for value, _ in sources)
        work.emit_clamped("qnn.binary", integers, target, clamps, attrs={"function": head.op}, name=head.name)
    work.finish()


def with_number(work: Work, head: Node) -> bool:
    """A table, where one operand is a real number that is the same for all elements; False where none is."""
    numbers = [work.rw.array(value) for value in head.inputs]
    index = next((i for i, array in enumerate(numbers) if array is not None and array.size == 1), None)
    if index is None or work.integers(head.inputs[1 - index]) is None:
        return False
    number, (data, q) = numbers[index], work.per_tensor(head.inputs[1 - index])
    kind = work.rw.types
    if number is None or kind[head.output].shape != kind[head.inputs[1 - index]].shape or q.dtype not in TABLES:
        return False
    clamps, targets = work.result(head)
    work.begin(head, *clamps, *targets)
    attrs: dict[str, Attr] = {"function": head.op, "semantics": work.semantics}
    attrs |= {"constant": float(number.item()), "constant_first": index == 0}
    for target in targets:
        work.emit_clamped("qnn.unary", (data,), target, clamps, attrs=attrs, name=head.name)
    work.finish()
    return True


def extremum(work: Work, head: Node) -> None:
    """maximum and minimum: of integers at the scale of the result, for rounding keeps the order."""
    sources = [work.need_integers(value) for value in head.inputs]
    targets = work.need_quantizes(head.output)
    work.begin(head, *targets)
    for target in targets:
        parts = [work.requantized(source, target) for source in sources]
        work.emit(head.op, parts, target.output, work.rw.qparams[target.output], name=head.name)
    work.finish()
