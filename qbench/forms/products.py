"""Sums of products, and products of two tensors: an accumulator, the bias, and one rounding."""

import dataclasses

import numpy as np
from numpy.typing import NDArray

from qbench.forms.form import Form, Integers, Step, narrowed, said
from qbench.forms.site import NoForm, Site
from qbench.forms.sums import accumulator_dtype, largest_sum, product_qparams, sums_axis
from qbench.ir.dtypes import numpy_dtype
from qbench.ir.graph import Attr
from qbench.ir.qparams import QParams

_INT32 = 2**31 - 1


def products(site: Site) -> Form:
    """Convolutions, dense layers and matrix products; without a target the sums themselves."""
    weight, rank = site.integers(1), site.operands[1].type.rank
    if weight.axis is not None and weight.axis != site.op.channel_axis_of("weight", rank):
        raise NoForm(f"unsupported: its weights have scales along axis {weight.axis}")
    return _accumulated(site, 0, 1)


def elementwise_product(site: Site) -> Form:
    """Of two tensors; the constant one, which may have a scale per channel, stands right."""
    left, right = (1, 0) if site.operands[0].array is not None else (0, 1)
    if site.semantics == "tflite" and site.bias is not None:
        raise NoForm("unsupported: a bias on a product of two tensors, which TFLite adds in float32")
    if site.semantics == "tflite":
        site.per_tensor(right)
    site.need_targets()
    return _accumulated(site, left, right, zero_point_first=site.semantics == "onnx")


def _accumulated(site: Site, left: int, right: int, **attrs_after: Attr) -> Form:
    data, weight = site.per_tensor(left), site.integers(right)
    op, out = f"qnn.{site.node.op.removeprefix('nn.')}", site.targets[0] if site.targets else None
    types = site.operands[left].type, site.operands[right].type
    axis = sums_axis(site.op, weight, site.rank, types[1].rank)
    sums = product_qparams(site.semantics, op, data, weight, axis, out)
    added = None if site.bias is None else site.bias.in_units_of(sums)
    bound = largest_sum(site.op, data, weight, types, site.operands[right].array)
    if site.semantics == "tflite" and out is not None and added is not None and data.dtype != "int16":
        added = _within_32_bits(added, bound, sums, out)
    dtype = accumulator_dtype(bound, added)
    if site.semantics == "tflite" and data.dtype == "int16" and site.node.op != "multiply":
        dtype = "int64"  # whatever fits, since it decides how TFLite rounds
    sums = dataclasses.replace(sums, dtype=dtype)
    site.need_ratios(sums)
    attrs = {**site.node.attrs, **said(op, {"accumulator": dtype})}
    steps = [Step("accumulator", op, (left, right), sums, attrs)]
    if added is not None:
        steps.append(biased(site, steps[0], added, sums))
    if not site.targets:
        return Form(tuple(steps), (steps[-1],))
    return narrowed(site, steps[-1], op, before=steps, **attrs_after)


def biased(site: Site, source: Step, added: NDArray[np.int64], sums: QParams) -> Step:
    """Sums and a bias in their units."""
    assert site.bias is not None
    q = dataclasses.replace(sums, axis=None if sums.axis is None else 0)
    constant = Integers(added.astype(numpy_dtype(sums.dtype)), q)
    return Step("biased", "nn.bias_add", (source, constant), sums, dict(site.bias.attrs))


def _within_32_bits(
    added: NDArray[np.int64], products: NDArray[np.int64], sums: QParams, out: QParams
) -> NDArray[np.int64]:
    """A bias near the end of 32 bits, as dead channels have: brought nearer where the output is at its end anyhow."""
    room = _INT32 - products
    saturated = np.asarray(sums.scales) / out.scales[0] * (room - products) > 2 * (out.qmax - out.qmin)
    outside = np.abs(added) > room
    return added if np.any(outside & ~saturated) or np.any(room < 0) else np.clip(added, -room, room)
