"""Functions of one element: a table over all integers; bounds by themselves; softmax and its logarithm."""

import dataclasses

from qbench.forms.form import Form, Integers, clipped, narrowed, said, straight
from qbench.forms.site import EIGHT_BITS, NoForm, Site
from qbench.ir.dtypes import DType
from qbench.ir.graph import Attr
from qbench.ir.op import Array
from qbench.ir.qparams import QParams
from qbench.ops.qnn.softmax import AlongAxis, QnnSoftmax
from qbench.quant.arithmetic import quantize
from qbench.quant.choose import from_range

TABLES = ("int8", "uint8", "int16", "uint16")
"""Types over all of whose integers a table can be made."""


def table(site: Site) -> Form:
    """One table, or for the slopes of nn.prelu one per channel."""
    q = site.per_tensor(0)
    if len(site.operands) > 1 and site.operands[1].q is not None:
        return _integer_slopes(site)
    if (
        len(site.operands) > 1
        and site.semantics == "tflite"
        and all(one.dtype in EIGHT_BITS for one in (q, *site.targets))
    ):
        return _rounded_slopes(site)
    if q.dtype not in TABLES:
        raise NoForm(f"unsupported: a table over {q.dtype}")
    attrs: dict[str, Attr] = {"function": site.node.op, **site.arithmetic.spoken}
    if len(site.operands) > 1:
        attrs |= _slopes(site)
    elif site.node.attrs:
        attrs["parameters"] = tuple((key, value) for key, value in site.node.attrs.items())
    return straight(site, "qnn.unary", (0,), said("qnn.unary", attrs))


def _slopes(site: Site) -> dict[str, Attr]:
    slopes = tuple(float(slope) for slope in _slopes_of(site).reshape(-1))
    return {"slopes": slopes, "axis": _axis_of(site) if len(slopes) > 1 else None}


def _slopes_of(site: Site) -> Array:
    array = site.operands[1].array
    if array is None:
        raise NoForm("unsupported: its slopes are no constant")
    return array


def _axis_of(site: Site) -> int:
    axis: int = getattr(site.op, "axis", 1)
    return axis % site.operands[0].type.rank


def _integer_slopes(site: Site) -> Form:
    """Only TFLite's kernel multiplies with slopes that are integers: they broadcast."""
    if not site.arithmetic.from_file or site.integers(0).dtype not in EIGHT_BITS:
        raise NoForm("unsupported: slopes that are integers, but of 8 bits in a TFLite file")
    return straight(site, "qnn.prelu", (0, 1), site.arithmetic.spoken)


def _rounded_slopes(site: Site) -> Form:
    """Slopes in 8 bits, in the shape that broadcasts: TFLite has no table for each channel."""
    array = _slopes_of(site)
    slopes = array.reshape(-1, *(1,) * (site.operands[0].type.rank - 1 - _axis_of(site)))
    q = from_range(float(slopes.min()), float(slopes.max()), "int8", symmetric=True)
    return straight(site, "qnn.prelu", (0, Integers(quantize(slopes, q), q, 1)), site.arithmetic.spoken)


def clamp(site: Site) -> Form:
    """relu and clip by themselves: one rounding and the bounds of the integers; in a runtime that has it, a table."""
    q = site.per_tensor(0)
    site.need_targets()
    if site.semantics in (None, "tvm"):
        return narrowed(dataclasses.replace(site, clamps=(site.node,)), 0, "qnn.requantize")
    if any(target != q for target in site.targets):
        return table(site)
    clip = clipped((site.node,), 0, q)
    return Form((clip,), (clip,) * len(site.targets))


def softmax(site: Site) -> Form:
    """onnxruntime and TFLite have a softmax of integers; otherwise it stays in real numbers."""
    if site.semantics == "tflite":
        return _at_fixed_scale(site, QnnSoftmax, (*EIGHT_BITS, "int16"))
    if site.semantics != "onnx":
        raise NoForm(site.op.float_reason)
    q = site.per_tensor(0)
    if q.dtype not in EIGHT_BITS or any(target.dtype != q.dtype for target in site.targets):
        raise NoForm("unsupported: softmax of other than 8-bit integers of one type")
    return straight(site, "qnn.softmax", (0,), {**_along(site), "semantics": "onnx"})


def only_tflites(site: Site, kind: type[AlongAxis]) -> Form:
    """What only TFLite has of integers."""
    if site.semantics != "tflite":
        raise NoForm(site.op.float_reason)
    return _at_fixed_scale(site, kind, EIGHT_BITS)


def _at_fixed_scale(site: Site, kind: type[AlongAxis], types: tuple[DType, ...]) -> Form:
    """A kernel of TFLite, which makes integers of one scale and zero point alone."""
    source, op = site.per_tensor(0), kind(semantics="tflite")
    if source.dtype not in types:
        raise NoForm(f"unsupported: {op.name} of {source.dtype} in tflite")
    for target in site.targets:
        q = op.made(source, target)
        if q != target:
            said = f"{q.dtype} of scale {q.scales[0]:g} and zero point {q.zero_points[0]}"
            raise NoForm(f"unsupported: {op.name} in tflite makes integers of {said}")
    return straight(site, op.name, (0,), {**_along(site), "semantics": "tflite"})


def _along(site: Site) -> dict[str, Attr]:
    """The axis; integers have no infinity, so all of them are safe."""
    return {key: value for key, value in site.node.attrs.items() if key == "axis"}


def reaches_one(q: QParams) -> bool:
    """Whether the largest integer stands for 1 at least; of others onnxruntime's integer softmax wraps around."""
    return q.scales[0] * (q.qmax - q.zero_points[0]) >= 1
