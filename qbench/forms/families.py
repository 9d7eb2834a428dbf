"""Which form a node has: by its op's quantization rule, or by its name where other ops of the rule have another."""

from collections.abc import Callable
from functools import partial

from qbench.forms.averages import average, total
from qbench.forms.form import Form
from qbench.forms.moves import argument, choose, join, move, requantized
from qbench.forms.normalizations import normalization
from qbench.forms.pairs import arithmetic, binary, comparison, extremum, lone_bias
from qbench.forms.products import products
from qbench.forms.site import NoForm, Site
from qbench.forms.tables import clamp, only_tflites, softmax, table
from qbench.forms.widths import has_two_widths, of_one_width
from qbench.ir.op import OPS, Epilogue, QuantRule
from qbench.ops.float.logic import COMPARISONS
from qbench.ops.qnn.softmax import QnnL2Normalize, QnnLogSoftmax

Family = Callable[[Site], Form]

_BY_RULE: dict[QuantRule, Family] = {
    QuantRule.MAC: products,
    QuantRule.BIAS: lone_bias,
    QuantRule.CLAMP: clamp,
    QuantRule.TABLE: table,
    QuantRule.ELEMENTWISE: arithmetic,
    QuantRule.AVERAGE: average,
    QuantRule.SAME: move,
    QuantRule.CONCAT: join,
}
_BY_NAME: dict[str, Family] = {
    "nn.softmax": softmax,
    "nn.log_softmax": partial(only_tflites, kind=QnnLogSoftmax),
    "nn.l2_normalize": partial(only_tflites, kind=QnnL2Normalize),
    **dict.fromkeys(("nn.layer_norm", "nn.rms_norm"), normalization),
    "where": choose,
    "take": move,
    "sum": total,
    "qnn.quantize": requantized,
    **dict.fromkeys(("maximum", "minimum"), extremum),
    **dict.fromkeys(("divide", "power", "squared_difference"), binary),
    **dict.fromkeys(("argmax", "argmin"), argument),
    **dict.fromkeys(COMPARISONS, comparison),
}
"""Ops that calibration leaves in float, while files may have quantizers around them."""


def absorbs_bias(op: str) -> bool:
    """Whether a bias behind an op is added to its sums before they are rounded."""
    return Epilogue.BIAS in OPS[op].absorbs


def absorbs_clamps(op: str) -> bool:
    """Whether relu and clip behind an op are bounds of its integers."""
    return Epilogue.CLAMP in OPS[op].absorbs or _BY_NAME.get(op) is binary


def form_of(site: Site) -> Form:
    """The qnn ops that stand for a node and what is fused behind it.

    Raises
    ------
    NoForm
        It has no integer form there; the reason.
    """
    op = OPS[site.node.op]
    family = _BY_NAME.get(site.node.op) or _BY_RULE.get(op.rule)
    if family is None:
        raise NoForm(op.float_reason)
    return of_one_width(site, family) if has_two_widths(site) else family(site)
