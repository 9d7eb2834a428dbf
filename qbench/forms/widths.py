"""TFLite has kernels for one width of data: where 8 and 16 bits meet, 8 are widened first, or 16 narrowed at last."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from qbench.forms.form import Form, Integers, Step
from qbench.forms.site import EIGHT_BITS, Site
from qbench.ir.op import OPS, QuantRule
from qbench.ir.qparams import QParams

_RULES = (QuantRule.MAC, QuantRule.ELEMENTWISE, QuantRule.AVERAGE)
_FINER = 128
"""So many times finer are 16 bits than 8: all that these can hold has integers there, whatever the zero point."""


def has_two_widths(site: Site) -> bool:
    """Whether integers of 8 and of 16 bits meet where TFLite has no kernel for both."""
    if site.semantics != "tflite" or site.arithmetic.from_file or OPS[site.node.op].rule not in _RULES:
        return False
    dtypes = {q.dtype for q in (*site.targets, *(site.operands[at].q for at in _data(site))) if q is not None}
    return "int16" in dtypes and not dtypes.isdisjoint(EIGHT_BITS)


def of_one_width(site: Site, form_of: Callable[[Site], Form]) -> Form:
    """The form with all data in 16 bits; the same real numbers go in, what comes out is rounded once more to 8.

    Parameters
    ----------
    site
        One of two widths.
    form_of
        What gives the form of a site of one.
    """
    attrs = {"rounding": site.arithmetic.after("qnn.requantize")}
    operands, given, made = [*site.operands], dict[object, Step | Integers](), dict[Step, Step]()
    for at in _data(site):
        operand = operands[at]
        if operand.q is None or operand.q.dtype not in EIGHT_BITS:
            continue
        q, array = _widened(operand.q), None
        if operand.array is None:
            given[at] = Step("operand", "qnn.requantize", (at,), q, attrs)
        else:
            array = ((operand.array.astype(np.int32) - operand.q.zero_points[0]) * _FINER).astype(np.int16)
            given[at] = Integers(array, q, at)
        operands[at] = replace(operand, type=operand.type.with_dtype(q.dtype), q=q, array=array)
    targets = tuple(_widened(q) if q.dtype in EIGHT_BITS else q for q in site.targets)
    form = form_of(replace(site, operands=tuple(operands), targets=targets))
    steps = [step for step in given.values() if isinstance(step, Step)]
    for step in form.steps:
        given[step] = made[step] = replace(step, inputs=tuple(given.get(read, read) for read in step.inputs))
    steps += made.values()
    results = [made[step] for step in form.results]
    for at, q in enumerate(site.targets):
        if q.dtype in EIGHT_BITS:
            results[at] = Step("narrowed", "qnn.requantize", (results[at],), q, attrs)
            steps.append(results[at])
    return Form(tuple(steps), tuple(results))


def _data(site: Site) -> list[int]:
    """The places of the operands that must have as many bits as the result: of products, weights need not."""
    weights = OPS[site.node.op].rule is QuantRule.MAC
    return [
        at
        for at, operand in enumerate(site.operands)
        if operand.q is not None and operand.q.axis is None and not (weights and operand.array is not None)
    ]


def _widened(q: QParams) -> QParams:
    return replace(q, dtype="int16", scale=q.scales[0] / _FINER, zero_point=0)
