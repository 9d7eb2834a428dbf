"""Quantized operators: the integer form of a float op, in TFLite's arithmetic, emitted into the graph."""

import logging
from collections.abc import Mapping, Sequence

from qbench.errors import ModelError, shown
from qbench.forms import Arithmetic, Bias, Form, Integers, NoForm, Operand, Site, Step, form_of
from qbench.frontends.tflite.builder import Builder, Unsupported, Value, type_of
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Attr, Node
from qbench.ir.op import bind
from qbench.ir.types import TensorType

_LOG = logging.getLogger(__name__)


def quantized(
    builder: Builder,
    op: str,
    operands: Sequence[Value],
    attrs: Mapping[str, Attr] | None = None,
    *,
    nchw: bool | None = None,
    bias: Value | None = None,
    axis: int | None = None,
    own: Mapping[str, Attr] | None = None,
    result: TensorType | None = None,
) -> Value:
    """What quantized operands and a quantized result make of a float op.

    Parameters
    ----------
    op, attrs
        The float op.
    operands
        Integers, in the layout of the graph.
    nchw
        The layout of the result, if not that of the operands.
    bias, axis
        Integers in units of the sums, and the axis of the result that they run along.
    own
        Attributes of TFLite's operator that the float op has not.
    result
        The type of the result where the float op does not take such operands: slopes that broadcast.

    Raises
    ------
    Unsupported
        The op has no such form, or TFLite's sums would wrap around.
    """
    node = Node("", op, tuple(value.name for value in operands), (builder.result.name,), FrozenMap(attrs or {}))
    types = tuple(type_of(value) for value in operands)
    added = None if bias is None else Bias(None, bias.constant, attrs=(("axis", axis),))
    given = tuple(Operand(v.name, t, v.q, v.constant) for v, t in zip(operands, types, strict=True))
    reals = tuple(kind.with_dtype("float32") for kind in types)
    if result is None:
        result = bind(node, {} if builder.q is None else {node.output: builder.q}).infer_all(reals)[0]
    if bias is not None and axis is not None and bias.shape != (result.shape[axis],):
        size, channels = bias.shape[0], result.shape[axis]
        raise ModelError(f"bias {shown(bias.name)} has {size} elements, but there are {channels} channels")
    targets, arithmetic = () if builder.q is None else (builder.q,), Arithmetic(builder.semantics, from_file=True)
    try:
        form = form_of(Site(node, given, result.rank, targets, arithmetic, added))
    except NoForm as why:
        raise Unsupported(str(why)) from None
    layout = any(operand.nchw for operand in operands) if nchw is None else nchw
    return _emitted(builder, form, operands, layout, bias, own or {})


def _emitted(
    builder: Builder, form: Form, operands: Sequence[Value], nchw: bool, bias: Value | None, own: Mapping[str, Attr]
) -> Value:
    made: dict[Step, Value] = {}

    def value(given: int | Step | Integers) -> Value:
        if isinstance(given, Step):
            return made[given]
        if isinstance(given, int):
            return operands[given]
        assert bias is not None
        dtype = given.array.dtype.name
        return Value(bias.name, tuple(given.array.shape), dtype, given.array, given.q)

    for step in form.steps:
        if step.q is not None and step.q.dtype == "int64" and operands[0].dtype != "int16":
            _LOG.warning("sums with %s may leave 32 bits, where LiteRT wraps around", shown(operands[1].name))
        label = "" if step.what in ("made", "averaged") else step.what
        inputs = [value(given) for given in step.inputs]
        attrs = {**step.attrs, **own}
        made[step] = builder.emit(step.op, *inputs, q=step.q, label=label, nchw=nchw, attrs=attrs)
    return made[form.results[0]]
