"""What a quantized op means in real numbers: the float op and attributes that stand for it in a float twin."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Attr, Graph, Node
from qbench.ir.op import OPS, QuantRule, bind, is_op
from qbench.ir.qparams import QParams
from qbench.ops.float.activation import LeakyRelu, PRelu, Relu
from qbench.ops.float.select import Pad
from qbench.ops.qnn.base import QnnOp
from qbench.ops.qnn.binary import QnnPrelu
from qbench.ops.qnn.requantize import QnnRequantize
from qbench.ops.qnn.window import QnnSum, QnnUnary

LARGEST = float(np.finfo(np.float32).max)
IDENTITY = ("clip", FrozenMap[str, Attr]({"a_min": -LARGEST, "a_max": LARGEST}))
"""The float op that passes its input on: bounds at the ends of float32."""

_ARITHMETIC = (
    "accumulator",
    "rounding",
    "semantics",
    "function",
    "denominator",
    "divisor",
    "zero_point_first",
    "ties",
    "ties_to_even",
    "toward_zero",
)
"""Attributes that say how integers are computed: real numbers need none of them."""
_SNAPPED = (0.0, 6.0, 1.0, -1.0)
"""Bounds that activations usually have."""


@dataclass(frozen=True)
class Form:
    """A float op, its attributes, and constants that it reads behind the quantized op's own inputs, or before them."""

    op: str
    attrs: FrozenMap[str, Attr]
    extra: tuple[NDArray[np.float32], ...] = ()
    extra_first: bool = False


def is_wide(graph: Graph, value: str) -> bool:
    """Whether a value is a quantized accumulator or bias."""
    return value in graph.qparams and graph.qparams[value].dtype in ("int32", "int64")


def is_narrow(graph: Graph, value: str) -> bool:
    """Whether a value is a tensor of integers with a scale of its own."""
    return value in graph.qparams and not is_wide(graph, value)


def float_form(graph: Graph, node: Node) -> Form | None:
    """The float op of a node that computes on integers; None where real numbers have no such op."""
    op = bind(node, graph.qparams)
    if isinstance(op, QnnUnary):
        return _function(op)
    if isinstance(op, QnnPrelu):
        return _slopes(graph, node)
    if isinstance(op, QnnRequantize):
        return Form(*IDENTITY)
    if isinstance(op, QnnSum) and not _divides(graph, node):
        return _form(node, "sum")
    if isinstance(op, QnnOp):
        return None if op.float_form is None else _form(node, op.float_form)
    if op.rule == QuantRule.INTERNAL:
        return None
    return clamp(graph.qparams[node.output], node) if node.op == "clip" else Form(node.op, _real_fill(graph, node))


def clamp(q: QParams, node: Node) -> Form:
    """A clip between integers as one between real numbers; a relu where it is one."""
    op = bind(node)
    low, high = (int(getattr(op, key)) for key in ("a_min", "a_max"))
    return _clamp(q, max(low, q.qmin), min(high, q.qmax))


def implied_clamp(q: QParams) -> Form | None:
    """The relu that a range from 0 upwards stands for: what is negative saturates there, whatever made it."""
    return _clamp(q, q.qmin, q.qmax) if q.axis is None and q.zero_points[0] == q.qmin else None


def _clamp(q: QParams, low: int, high: int) -> Form:
    scale, zero_point = q.scales[0], q.zero_points[0]

    def real(bound: int, end: int, beyond: float) -> float:
        for usual in _SNAPPED:
            if round(usual / scale) + zero_point == bound and (bound != end or usual in (0.0, 6.0)):
                return usual
        return beyond if bound == end else scale * (bound - zero_point)

    bounds = real(low, q.qmin, -LARGEST), real(high, q.qmax, LARGEST)
    if bounds == (0.0, LARGEST):
        return Form(Relu.name, FrozenMap())
    return Form("clip", FrozenMap({"a_min": bounds[0], "a_max": bounds[1]}))


def _form(node: Node, op: str) -> Form | None:
    """The op with those attributes that it has; None where another one says something."""
    attrs: Mapping[str, Attr] = node.attrs
    known = OPS[op].attributes()
    told = {key: value for key, value in attrs.items() if key in known}
    if op == "image.resize2d":
        told["method"] = "linear"
    defaults = {key: field.default for key, field in OPS[node.op].attributes().items()}
    lost = [key for key, value in attrs.items() if key not in known and value != defaults[key]]
    return None if set(lost) - set(_ARITHMETIC) else Form(op, FrozenMap(told))


def _function(op: QnnUnary) -> Form | None:
    if op.slopes and op.axis is None:
        return Form(LeakyRelu.name, FrozenMap({"alpha": op.slopes[0]}))
    if op.slopes:
        return Form(PRelu.name, FrozenMap({"axis": op.axis}), (np.asarray(op.slopes, np.float32),))
    if op.function not in OPS:
        return None
    numbers = () if op.constant is None else (np.asarray(op.constant, np.float32),)
    return Form(op.function, FrozenMap(dict(op.parameters)), numbers, op.constant_first)


def _slopes(graph: Graph, node: Node) -> Form | None:
    data, slopes = (graph.types[value].shape for value in node.inputs)
    along = [at - len(slopes) + len(data) for at, size in enumerate(slopes) if size != 1]
    return Form(PRelu.name, FrozenMap({"axis": along[0]})) if len(along) == 1 else None


def _divides(graph: Graph, node: Node) -> bool:
    """Whether a sum is divided by the number of its elements, in its scale or by what narrows it."""
    by_reader = any(getattr(bind(reader), "divisor", 1) != 1 for reader in graph.consumers[node.output])
    return by_reader or graph.qparams[node.output].scales[0] != graph.qparams[node.inputs[0]].scales[0]


def _real_fill(graph: Graph, node: Node) -> FrozenMap[str, Attr]:
    q = graph.qparams.get(node.outputs[0])
    if not is_op(node, Pad) or q is None:
        return node.attrs
    fill = float(getattr(bind(node), "pad_value", 0.0))
    return FrozenMap({**node.attrs, "pad_value": q.scales[0] * (fill - q.zero_points[0])})
