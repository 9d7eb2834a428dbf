"""Resizing images."""

from qbench.errors import ModelError
from qbench.frontends.tflite.builder import Builder, Unsupported, Value
from qbench.frontends.tflite.kinds import is_quantized
from qbench.frontends.tflite.quantized import quantized
from qbench.frontends.tflite.source import SourceOperator
from qbench.frontends.tflite.table import converter
from qbench.ir.graph import Attr
from qbench.ops.numeric.windows import Pair

_MOST = 2**20
"""Each row and column takes an entry of a table."""


def _size(op: SourceOperator, size: Value) -> tuple[Pair, bool, bool]:
    height, width = size.integers()
    if max(height, width) > _MOST:
        raise ModelError(f"operator {op} makes an image of {height} x {width}, more than {_MOST} along an axis")
    corners, half = op.flag("align_corners"), op.flag("half_pixel_centers")
    if corners and half:
        raise Unsupported("align_corners together with half_pixel_centers")
    return (height, width), corners, half


@converter("RESIZE_BILINEAR", "image size", "ResizeBilinearOptions align_corners half_pixel_centers")
def resize_bilinear(builder: Builder, op: SourceOperator, x: Value, size: Value) -> Value:
    """Between the four nearest pixels."""
    to, corners, half = _size(op, size)
    mode = "align_corners" if corners else "half_pixel" if half else "asymmetric"
    data = builder.nchw(x)
    attrs: dict[str, Attr] = {"size": to, "method": "linear", "coordinate_transformation_mode": mode}
    if is_quantized(builder, x):
        return quantized(builder, "image.resize2d", (data,), attrs)
    return builder.emit("image.resize2d", data, attrs=attrs)


@converter("RESIZE_NEAREST_NEIGHBOR", "image size", "ResizeNearestNeighborOptions align_corners half_pixel_centers")
def resize_nearest_neighbor(builder: Builder, op: SourceOperator, x: Value, size: Value) -> Value:
    """The nearest pixel; integers stand as they are."""
    to, corners, half = _size(op, size)
    mode = "align_corners" if corners else "tf_half_pixel_for_nn" if half else "asymmetric"
    nearest = "round_prefer_ceil" if corners else "floor"
    return builder.emit(
        "image.resize2d",
        builder.nchw(x),
        q=builder.q,
        size=to,
        method="nearest",
        coordinate_transformation_mode=mode,
        nearest_mode=nearest,
    )
