"""Ops that move, select or join elements do so with integers; only what they fill in must be quantized."""

import numpy as np
from numpy.typing import NDArray

from qbench.forms.form import Form, Step, What, said, single
from qbench.forms.site import EIGHT_BITS, NoForm, Site
from qbench.ir.graph import Attr
from qbench.ir.op import OPS, Op
from qbench.ir.qparams import QParams
from qbench.ops.float.image import Resize2d
from qbench.quant.arithmetic import dequantize, quantize


def move(site: Site) -> Form:
    """The op on integers: its results have the scale of its input, whatever they are quantized to."""
    q, node = site.per_tensor(0), site.node
    op, attrs = node.op, dict[str, Attr](node.attrs)
    if node.op == "image.resize2d" and attrs.get("method", "nearest") != "nearest":
        op, attrs = _interpolated(site, attrs)
    fills = attrs.get("mode", "constant") == "constant"
    if node.op == "nn.pad" and (fills or "pad_value" in attrs):
        real, attrs["pad_value"] = _real_fill(site.op), float(fill(site.op, q))
        if fills and not site.targets and dequantize(quantize(real, q), q) != real:
            raise NoForm(f"unsupported: no integer stands for the {real[0]:g} that it pads with")
    return single(site, op, range(len(site.operands)), q, attrs)


def _interpolated(site: Site, attrs: dict[str, Attr]) -> tuple[str, dict[str, Attr]]:
    op, resize = "qnn.resize_linear", site.op
    assert isinstance(resize, Resize2d)
    known = all(isinstance(size, int) for size in (*site.operands[0].type.shape[2:], *resize.size))
    refused = site.semantics == "onnx" or (site.semantics == "tflite" and not known)
    if not resize.bilinear or refused:
        whose = f" in {site.semantics}" if site.semantics else ""
        raise NoForm(f"unsupported: {attrs['method']} interpolation has no integer form{whose}")
    kept = {key: value for key, value in attrs.items() if key in OPS[op].attributes()}
    to_even = site.arithmetic.after(op) in ("fp32_rne", "pow2_half_even")
    whose = site.arithmetic.spoken if site.semantics == "tflite" else {"ties_to_even": to_even}
    return op, {**kept, **said(op, whose)}


def fill(op: Op, q: QParams) -> int:
    """The integer for what a pad fills in."""
    return int(quantize(_real_fill(op), q)[0])


def _real_fill(op: Op) -> NDArray[np.float32]:
    return np.asarray([getattr(op, "pad_value", 0.0)], np.float32)


def argument(site: Site) -> Form:
    """argmax and argmin: the order of integers is that of the real numbers."""
    site.per_tensor(0)
    return single(site, site.node.op, (0,), None, site.node.attrs)


def join(site: Site) -> Form:
    """concatenate: inputs brought to the qparams of the result."""
    return _joined(site, 0)


def choose(site: Site) -> Form:
    """where: the condition stays what it is."""
    return _joined(site, 1)


def _joined(site: Site, first: int) -> Form:
    sources, node = [site.per_tensor(index) for index in range(first, len(site.operands))], site.node
    everything = tuple(range(len(site.operands)))
    if not site.targets and all(q == sources[0] for q in sources):
        return single(site, node.op, everything, sources[0], node.attrs)
    site.need_targets()
    steps, results = list[Step](), list[Step]()
    at_any_scales = node.op == "concatenate" and _joins_at_any_scales(site, sources)
    for target in site.targets:
        if at_any_scales and any(q != target for q in sources):
            attrs = {**node.attrs, **site.arithmetic.spoken}
            steps.append(Step("made", "qnn.concatenate", everything, target, attrs))
        else:
            parts = [brought(site, index, target, steps) for index in everything[first:]]
            steps.append(Step("made", node.op, (*everything[:first], *parts), target, node.attrs))
        results.append(steps[-1])
    return Form(tuple(steps), tuple(results))


def _joins_at_any_scales(site: Site, sources: list[QParams]) -> bool:
    """Whether a runtime's own kernel brings what it joins to the scale of the result."""
    narrow = all(q.dtype in EIGHT_BITS for q in sources)
    return (site.semantics == "onnx" and narrow) or site.arithmetic.from_file


def brought(site: Site, index: int, q: QParams, steps: list[Step]) -> int | Step:
    """An operand at another scale; a requantize of it is added to the steps where it has not that scale already."""
    if site.integers(index) == q:
        return index
    steps.append(_rescaled(site, index, q, "operand"))
    return steps[-1]


def requantized(site: Site) -> Form:
    """Integers at another scale: a quantize of what was dequantized."""
    (target,), q = site.targets, site.integers(0)
    if target.axis is not None or (q.axis is not None and any(q.zero_points)):
        raise NoForm("unsupported: requantize to scales along an axis")
    step = _rescaled(site, 0, target, "made")
    return Form((step,), (step,))


def _rescaled(site: Site, index: int, q: QParams, what: What) -> Step:
    site.need_ratios(site.integers(index))
    whose = site.arithmetic.spoken if site.semantics == "onnx" else {}
    attrs: dict[str, Attr] = {"rounding": site.arithmetic.after("qnn.requantize"), **whose}
    return Step(what, "qnn.requantize", (index,), q, attrs)
