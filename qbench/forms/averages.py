"""Average pools and means: the exact sum of integers, divided in the one rounding, or a runtime's own kernel."""

from qbench.forms.form import Form, Step, narrowed, said, straight
from qbench.forms.site import EIGHT_BITS, NoForm, Site
from qbench.forms.sums import accumulator_dtype, averaged_axes, denominator, reach
from qbench.ir.graph import Attr
from qbench.ir.qparams import QParams
from qbench.ir.types import Dim
from qbench.ops.float.pool import AvgPool2d
from qbench.quant.rounding import POWER_OF_TWO


def average(site: Site) -> Form:
    """By the runtime: onnxruntime sums the real numbers of a window, TFLite has kernels, all others sum integers."""
    op, shape = site.op, site.operands[0].type.shape
    source = site.per_tensor(0)
    site.need_targets()
    axes = averaged_axes(op, len(shape))
    count = denominator(op, shape)
    if count is None or (site.semantics == "tflite" and not all(isinstance(shape[axis], int) for axis in axes)):
        raise NoForm(f"unsupported: an average over sizes known only at run time, of shape {shape}")
    pool = op if isinstance(op, AvgPool2d) else None
    if site.semantics == "tflite" and not (pool is not None and pool.counts_padding):
        return _tflite(site, pool, source, axes)
    if site.semantics == "onnx" and pool is not None and pool.pool_size == shape[2:] and not any(pool.padding):
        pool = None  # onnxruntime takes it for a global pool too
    narrow = all(q.dtype in EIGHT_BITS for q in (source, *site.targets))
    if site.semantics == "onnx" and pool is not None and narrow:
        return straight(site, "qnn.avg_pool2d", (0,), {**site.node.attrs, "semantics": "onnx"})
    return _sums(site, pool, source, axes, count)


def total(site: Site) -> Form:
    """Only TFLite sums integers, and only of its files: LiteRT takes the bytes of signed ones for unsigned ones.

    Of 16 bits its kernels do not agree with each other but at one scale.
    """
    if not site.arithmetic.from_file:
        raise NoForm(site.op.float_reason)
    source = site.per_tensor(0)
    site.need_targets()
    types = {source.dtype, *(q.dtype for q in site.targets)}
    if types not in ({"int8"}, {"uint8"}) and (source.dtype != "int16" or {*site.targets} != {source}):
        raise NoForm(f"unsupported: a sum of {source.dtype} at another scale")
    return straight(site, "qnn.reduce_sum", (0,), {**site.node.attrs, **site.arithmetic.spoken})


def _sums(site: Site, pool: AvgPool2d | None, source: QParams, axes: tuple[int, ...], count: Dim) -> Form:
    """A sum, whose scale holds the division unless the requantize after it divides.

    Under power-of-two rounding a shift cannot divide by 49; such an average is rounded in fixed point. One over sizes
    that are open is divided in float32, when the network is given its data.
    """
    known = count if isinstance(count, int) else None
    dtype = "int64" if known is None else accumulator_dtype(reach(source) * known, None)
    op, attrs = ("qnn.sum", _reduced(site, axes)) if pool is None else ("qnn.sum_pool2d", {**site.node.attrs})
    attrs |= said(op, {"accumulator": dtype, **({} if pool is None else {"denominator": count})})
    divided = site.semantics == "onnx" or known is None
    sums = QParams(source.scales[0] / (1 if divided or known is None else known), 0, dtype)
    site.need_ratios(sums)
    rounding = site.arithmetic.after("qnn.sum")
    if known is None:
        rounding = "fp32_rne"
    elif rounding in POWER_OF_TWO and known & (known - 1):
        rounding = "tflite_single"
    step = Step("accumulator", op, (0,), sums, attrs)
    divisor = {"divisor": count} if divided else {}
    return narrowed(site, step, "qnn.sum", before=(step,), **{**divisor, "rounding": rounding})


def _reduced(site: Site, axes: tuple[int, ...]) -> dict[str, Attr]:
    return {"axes": axes, **said("qnn.sum", {"keepdims": getattr(site.op, "keepdims", True)})}


def _tflite(site: Site, pool: AvgPool2d | None, source: QParams, axes: tuple[int, ...]) -> Form:
    """TFLite's own kernels. Its average pool keeps the scale of its input, so that another one is a step more."""
    if pool is None:
        return straight(site, "qnn.mean", (0,), {**_reduced(site, axes), "semantics": "tflite"}, what="averaged")
    attrs = {**said("qnn.avg_pool2d", site.node.attrs), "semantics": "tflite"}
    if all(target == source for target in site.targets):
        return straight(site, "qnn.avg_pool2d", (0,), attrs, what="averaged")
    step = Step("averaged", "qnn.avg_pool2d", (0,), source, attrs)
    return narrowed(site, step, "qnn.requantize", before=(step,))
