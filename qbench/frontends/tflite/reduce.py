"""Reductions along axes."""

from qbench.formats.tflite import REDUCTIONS
from qbench.frontends.tflite.builder import Builder, Unsupported, Value
from qbench.frontends.tflite.kinds import is_plain_integer, is_quantized, same_integers
from qbench.frontends.tflite.quantized import quantized
from qbench.frontends.tflite.source import SourceOperator
from qbench.frontends.tflite.table import converter
from qbench.ir.graph import Attr

_OPS = {code: name for name, code in REDUCTIONS.items()} | {"REDUCE_ALL": "min", "REDUCE_ANY": "max"}


@converter(" ".join(_OPS), "x axes", "ReducerOptions keep_dims")
def reduction(builder: Builder, op: SourceOperator, x: Value, axes: Value) -> Value:
    """Many elements to one; what is left of an image without keep_dims is in the file's order."""
    name, keep = _OPS[op.op], op.flag("keep_dims")
    wanted = {range(x.rank)[axis] for axis in axes.integers()}
    data = builder.natural(x)
    left = [data.axis(axis) for axis in range(x.rank) if axis not in wanted]
    if not keep and left != sorted(left):
        data = builder.filed(x)
    attrs: dict[str, Attr] = {"axes": tuple(sorted(data.axis(axis) for axis in wanted)), "keepdims": keep}
    nchw = data.nchw and keep
    if x.dtype == "bool":
        numbers = builder.emit(name, builder.emit("cast", data, dtype="int32"), nchw=nchw, attrs=attrs)
        return builder.emit("cast", numbers, dtype="bool")
    plain = is_plain_integer(x) and builder.q is None and name != "mean"
    if plain or not is_quantized(builder, x):
        return builder.emit(name, data, nchw=nchw, attrs=attrs)
    if name in ("mean", "sum"):
        return quantized(builder, name, (data,), attrs, nchw=nchw)
    if name not in ("max", "min"):
        raise Unsupported(f"a quantized {name}")
    same_integers(builder, x)
    return builder.emit(name, data, q=builder.q, nchw=nchw, attrs=attrs)
