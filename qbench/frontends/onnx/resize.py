"""Resize, and its predecessor Upsample."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from qbench.errors import ModelError, shown
from qbench.frontends.onnx.builder import Builder, Unsupported, Value
from qbench.frontends.onnx.quantized import dequantized, quantized
from qbench.frontends.onnx.source import SourceNode
from qbench.frontends.onnx.table import converter
from qbench.frontends.onnx.window import flat_again, flattened
from qbench.ir.graph import Attr
from qbench.ir.qparams import QParams
from qbench.ir.sizes import size_of
from qbench.ir.types import Dim, dim_product

_DENOMINATOR = 1000
"""Of the ratios that factors are written for, at most."""
_METHODS = {"nearest": "nearest", "linear": "linear", "bilinear": "linear", "cubic": "cubic"}
_STAYING = ("floor", "round_prefer_floor")
"""How positions half a pixel further are rounded to where they were."""
_ATTRS = (
    "mode coordinate_transformation_mode nearest_mode cubic_coeff_a exclude_outside extrapolation_value antialias axes "
    "keep_aspect_ratio_policy"
)


@converter("Upsample", "X scales?", "mode scales")
def upsample(builder: Builder, node: SourceNode, x: Value, scales: Value | None) -> Value:
    """Factors are an attribute in opset 7, an input from 9 on."""
    factors = node.reals("scales") if scales is None else _reals(scales)
    return _resize(builder, node, x, _from_scales(x, factors or ()), factors)


@converter("Resize", "X roi? scales? sizes?", _ATTRS)
def resize(
    builder: Builder, node: SourceNode, x: Value, roi: Value | None, scales: Value | None, sizes: Value | None
) -> Value:
    """In opset 10 the second input is scales; from 11 on either scales or sizes are given."""
    if node.text("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise Unsupported("keep_aspect_ratio_policy other than stretch")
    scales = roi if node.opset == 10 else scales
    axes = tuple(map(x.axis, node.integers("axes") or range(x.rank)))
    if sizes is not None and sizes.shape != (0,):
        wanted = list(x.shape)
        for axis, size in zip(axes, sizes.dims(), strict=True):
            wanted[axis] = size
        return _resize(builder, node, x, tuple(wanted), None)
    if scales is None:
        raise ModelError(f"node {node} has neither scales nor sizes")
    factors = [1.0] * x.rank
    for axis, factor in zip(axes, _reals(scales), strict=True):
        factors[axis] = factor
    return _resize(builder, node, x, _from_scales(x, tuple(factors)), tuple(factors))


def _reals(value: Value) -> tuple[float, ...]:
    if value.constant is None:
        raise Unsupported("the scales are computed from sizes known only at run time: fix them with shapes=")
    return tuple(float(number) for number in value.constant.ravel())


def _from_scales(x: Value, factors: tuple[float, ...]) -> tuple[Dim, ...]:
    if len(factors) != x.rank:
        raise ModelError(f"{len(factors)} scales for {x.rank} dimensions")
    return tuple(_scaled(size, factor) for size, factor in zip(x.shape, factors, strict=True))


def _scaled(size: Dim, factor: float) -> Dim:
    """The product in float32, as onnxruntime has it; of an open size by the ratio that a factor was written for."""
    if isinstance(size, int):
        return math.floor(np.float32(size) * np.float32(factor))
    ratio = Fraction(factor).limit_denominator(_DENOMINATOR)
    return (size_of(size) * (ratio if np.float32(ratio) == factor else Fraction(factor))).floor().dim


def _resize(
    builder: Builder, node: SourceNode, x: Value, sizes: tuple[Dim, ...], factors: tuple[float, ...] | None
) -> Value:
    changed = {axis for axis in range(x.rank) if sizes[axis] != x.shape[axis]}
    if not changed and (factors is None or set(factors) == {1.0}):
        return x
    if x.rank == 4 and max(changed, default=3) < 3 and min(changed, default=0) > 0:  # N,H,W,C
        swapped = builder.emit("transpose", x, axes=(0, 3, 1, 2))
        order = (0, 3, 1, 2)
        moved = None if factors is None else tuple(factors[axis] for axis in order)
        y = _resize(builder, node, swapped, tuple(sizes[axis] for axis in order), moved)
        return builder.emit("transpose", y, axes=(0, 2, 3, 1))
    if x.rank not in (3, 4, 5) or changed & {0, 1}:
        raise Unsupported("only what follows the first two of three, four or five dimensions can be resized")
    if x.rank == 5:
        return _resize_volume(builder, node, x, sizes, factors)
    scales = None if factors is None else (1.0, *factors[2:])[-2:]
    image = _resize_image(builder, node, flattened(builder, x), (1, *sizes[2:])[-2:], scales)
    return flat_again(builder, image, x.rank - 2)


def _resize_volume(
    builder: Builder, node: SourceNode, x: Value, sizes: tuple[Dim, ...], factors: tuple[float, ...] | None
) -> Value:
    """N,C,D,H,W along the depth, as images of D x H*W, and then over each plane; an axis of scale 1 stays as it is."""
    mode = _mode(node)
    smooths = "antialias" in mode and not _grows(x.shape[2:], sizes[2:], factors and factors[2:])
    if mode["method"] == "cubic" or smooths:
        raise Unsupported("cubic or antialiased resizing of volumes; export it with mode nearest or linear")
    if mode["coordinate_transformation_mode"] == "tf_half_pixel_for_nn" and mode.get("nearest_mode") not in _STAYING:
        raise Unsupported("coordinate_transformation_mode tf_half_pixel_for_nn of volumes")
    q = None if mode["method"] == "nearest" or x.dtype.startswith("float") else _meaning(builder, x)
    y = x if q is None else dequantized(builder, node, x, q)  # rounded once, not after each step
    samples, channels, depth, height, width = x.shape
    scales = factors or (1.0,) * 5
    resized = [made != size or scale != 1 for size, made, scale in zip(x.shape, sizes, scales, strict=True)]
    if resized[2]:
        pixels = dim_product((height, width))
        y = builder.emit("reshape", y, newshape=(samples, channels, depth, pixels))
        y = _resize_image(builder, node, y, (sizes[2], pixels), factors and (scales[2], 1.0))
    if resized[3] or resized[4]:
        y = builder.emit("reshape", y, newshape=(samples, dim_product((channels, sizes[2])), height, width))
        y = _resize_image(builder, node, y, sizes[3:], factors and scales[3:])
    y = builder.emit("reshape", y, newshape=sizes)
    return y if q is None else quantized(builder, node, y, q)


def _resize_image(
    builder: Builder, node: SourceNode, image: Value, size: tuple[Dim, ...], scales: tuple[float, ...] | None
) -> Value:
    height, width = size
    if scales is not None and all(
        size_of(size) * Fraction(scale) == size_of(made)
        for size, scale, made in zip(image.shape[2:], scales, (height, width), strict=True)
    ):
        scales = None
    attrs: dict[str, Attr] = {"size": (height, width), "scales": scales, **_mode(node)}
    if _grows(image.shape[2:], (height, width), scales):  # nothing to smooth: two neighbours, which have integer forms
        attrs.pop("antialias", None)
        if attrs["method"] == "linear":
            attrs.pop("exclude_outside", None)
    if attrs["method"] == "nearest" or image.dtype.startswith("float"):
        return builder.emit("image.resize2d", image, **attrs)
    q = _meaning(builder, image)  # as in files of onnxruntime's operators
    if (
        attrs["method"] == "linear"
        and "antialias" not in attrs
        and all(isinstance(size, int) for size in image.shape[2:])
    ):
        known = {key: value for key, value in attrs.items() if key != "method"}
        builder.qparams.setdefault(image.name, q)
        return builder.emit_quantized("qnn.resize_linear", image, q, toward_zero=True, **known)
    return quantized(builder, node, builder.emit("image.resize2d", dequantized(builder, node, image, q), **attrs), q)


def _meaning(builder: Builder, x: Value) -> QParams:
    q = builder.meaning(x)
    if q is None:
        raise Unsupported(f"{shown(x.name)} holds {x.dtype}, and nothing says which real numbers these mean")
    return q


def _grows(sizes: tuple[Dim, ...], made: tuple[Dim, ...], scales: Sequence[float] | None) -> bool:
    """Whether an image becomes no smaller along any axis, as far as sizes are known."""
    larger = all(isinstance(a, int) and isinstance(b, int) and a <= b for a, b in zip(sizes, made, strict=True))
    return larger and min(scales or (1.0,)) >= 1


def _mode(node: SourceNode) -> dict[str, Attr]:
    method = _METHODS.get(node.text("mode", "nearest"))
    if method is None:
        raise Unsupported(f"mode {node.text('mode', '')}")
    if node.op == "Upsample" or node.opset == 10:
        return {"method": method, "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    coordinates = node.text("coordinate_transformation_mode", "half_pixel")
    if coordinates == "tf_crop_and_resize":
        raise Unsupported("coordinate_transformation_mode tf_crop_and_resize")
    attrs: dict[str, Attr] = {"method": method, "coordinate_transformation_mode": coordinates}
    if node.flag("antialias") and method != "nearest":
        attrs["antialias"] = True
    if node.flag("exclude_outside") and (
        method == "cubic" or "antialias" in attrs
    ):  # one of two is as good as the edge
        attrs["exclude_outside"] = True
    if method == "nearest":
        attrs["nearest_mode"] = node.text("nearest_mode", "round_prefer_floor")
    if method == "cubic":
        attrs["cubic_coeff_a"] = node.real("cubic_coeff_a", -0.75)
    return attrs


@converter("GridSample", "X grid", "align_corners mode padding_mode")
def grid_sample(builder: Builder, node: SourceNode, x: Value, grid: Value) -> Value:
    """Opset 16 calls linear what it is called in images."""
    mode = node.text("mode", "linear")
    if _METHODS.get(mode) not in ("linear", "nearest") or x.rank != 4:
        raise Unsupported(f"mode={mode} of {x.rank} dimensions; export it with mode linear or nearest on images")
    attrs = {"padding": node.text("padding_mode", "zeros"), "align_corners": node.flag("align_corners")}
    return builder.emit("image.grid_sample", x, grid, method=_METHODS[mode], **attrs)
