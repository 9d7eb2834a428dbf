"""Sums, differences, products and extremes of two tensors, and a bias that follows no sum of products."""

import dataclasses

from qbench.forms.form import Form, Step, narrowed, said, single, straight
from qbench.forms.moves import brought
from qbench.forms.products import biased, elementwise_product
from qbench.forms.site import NoForm, Site
from qbench.forms.sums import WIDENING, accumulator_dtype, bias_units, reach
from qbench.forms.tables import TABLES
from qbench.ir.graph import Attr

_NARROW = ("int4", "uint4", "int8", "uint8")


def arithmetic(site: Site) -> Form:
    """add, subtract and multiply: by a number a table, of two tensors integer arithmetic where there is some."""
    number = _with_number(site)
    if number is not None:
        return number
    if site.node.op == "multiply" and site.semantics is None:
        return elementwise_product(site)
    types = _types(site)
    if site.semantics == "onnx" and (site.node.op == "subtract" or types not in ({"int8"}, {"uint8"})):
        return binary(site)  # onnxruntime computes the others in float32
    if site.node.op == "multiply":
        return elementwise_product(site)
    site.need_ratios(*site.all_per_tensor())
    op = f"qnn.{site.node.op}"
    return straight(site, op, (0, 1), {"rounding": site.arithmetic.after(op), **site.arithmetic.spoken})


def _types(site: Site) -> set[str]:
    """The types of the operands and of the result."""
    if site.semantics == "onnx":
        if site.bias is not None:
            raise NoForm("unsupported: a bias on a product of two tensors, which onnxruntime computes in float32")
        site.all_per_tensor()
    types = {site.integers(0).dtype, site.integers(1).dtype, *(q.dtype for q in site.targets)}
    if not types <= {*TABLES, *_NARROW}:
        raise NoForm(f"unsupported: no integer form of this op on {', '.join(sorted(types - {*TABLES}))}")
    return types


def binary(site: Site) -> Form:
    """A function of two elements of 8 bits that has no integer arithmetic: a table over all pairs."""
    number = _with_number(site)
    if number is not None:
        return number
    for q in site.all_per_tensor():
        if q.dtype not in _NARROW:
            raise NoForm(f"unsupported: no integer form of this op on {q.dtype}")
    attrs: dict[str, Attr] = {"function": site.node.op, **site.arithmetic.spoken}
    return straight(site, "qnn.binary", (0, 1), attrs)


def comparison(site: Site) -> Form:
    """equal, less...: only TFLite compares integers."""
    if site.semantics != "tflite" or any(q.dtype not in _NARROW for q in site.all_per_tensor()):
        raise NoForm(site.op.float_reason)
    return single(site, "qnn.compare", (0, 1), None, {"function": site.node.op, **site.arithmetic.spoken})


def _with_number(site: Site) -> Form | None:
    """A table, where one operand is a real number that is the same for all elements; None where none is."""
    numbers = [operand.array if operand.q is None else None for operand in site.operands]
    index = next((i for i, array in enumerate(numbers) if array is not None and array.size == 1), None)
    number = None if index is None else numbers[index]
    if index is None or number is None or site.operands[1 - index].q is None:
        return None
    q = site.per_tensor(1 - index)
    if site.operands[1 - index].type.rank != site.rank or q.dtype not in TABLES:
        return None
    attrs: dict[str, Attr] = {"function": site.node.op, **site.arithmetic.spoken, "constant": float(number.item())}
    return straight(site, "qnn.unary", (1 - index,), said("qnn.unary", {**attrs, "constant_first": index == 0}))


def extremum(site: Site) -> Form:
    """maximum and minimum: of integers at the scale of the result, for rounding keeps the order."""
    site.need_targets()
    steps: list[Step] = []
    for q in site.targets:
        parts = [brought(site, index, q, steps) for index in range(2)]
        steps.append(Step("made", site.node.op, tuple(parts), q, {}))
    return Form(tuple(steps), tuple(step for step in steps if step.what == "made"))


def lone_bias(site: Site) -> Form:
    """A bias that follows no sum of products: added in finer units than those of the input."""
    if site.semantics in ("onnx", "tflite"):
        raise NoForm(f"unsupported: a bias on its own has no integer form in {site.semantics}")
    source = site.per_tensor(0)
    if site.bias is None:
        raise NoForm("unsupported: its bias is no constant")
    sums = bias_units(source)
    added = site.bias.in_units_of(sums)
    sums = dataclasses.replace(sums, dtype=accumulator_dtype(reach(source) * WIDENING, added))
    wide = Step("wide", "qnn.requantize", (0,), sums, {"rounding": site.arithmetic.after("qnn.requantize")})
    total = biased(site, wide, added, sums)
    return narrowed(site, total, "qnn.requantize", before=(wide, total))
