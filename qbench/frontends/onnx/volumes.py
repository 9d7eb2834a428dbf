"""Convolutions and pools over volumes, by those over images.

The windows of one plane see a few planes of the volume: beside each other as channels, they are an image whose
convolution has the same products. Pools go along the depth first, and then over each plane.
"""

from qbench.frontends.onnx.builder import Builder, Value
from qbench.frontends.onnx.window import Window
from qbench.ir.graph import Attr
from qbench.ops.numeric.windows import Window as Extent


def conv3d(builder: Builder, x: Value, w: Value, bias: Value | None, where: Window, groups: int) -> Value:
    """A convolution over N,C,D,H,W and its bias, as one of N * D images.

    Raises
    ------
    Unsupported
        A size of the volume is open; the number of samples may be.
    """
    (stride, *strides), (dilation, *dilations) = where.strides, where.dilation
    front, top, left, back, bottom, right = where.padding
    outputs, _, taps, height, width = (w.size(axis) for axis in range(5))
    channels, depth, rows, columns = (x.size(axis) for axis in range(1, 5))
    planes = Extent((taps, 1), (stride, 1), (front, 0, back, 0), (dilation, 1)).counts((depth, 1))[0]
    flat = builder.emit("reshape", x, newshape=(-1, channels, depth, rows * columns))
    if front or back:
        flat = builder.emit("nn.pad", flat, pad_width=((0, 0), (0, 0), (front, back), (0, 0)))
    seen = [
        builder.emit(
            "strided_slice", flat, begin=(tap * dilation,), end=(tap * dilation + (planes - 1) * stride + 1,),
            strides=(stride,), axes=(2,),
        )
        for tap in range(taps)
    ]  # fmt: skip
    stacked = [builder.emit("reshape", part, newshape=(-1, channels, 1, planes * rows * columns)) for part in seen]
    together = builder.emit("concatenate", *stacked, axis=2) if taps > 1 else stacked[0]
    together = builder.emit("reshape", together, newshape=(-1, channels * taps, planes, rows * columns))
    by_plane = builder.emit("transpose", together, axes=(0, 2, 1, 3))
    images = builder.emit("reshape", by_plane, newshape=(-1, channels * taps, rows, columns))
    shape = outputs, w.size(1) * taps, height, width
    kernel = (
        builder.moved(w, lambda array: array.reshape(shape)) if w.fixed else builder.emit("reshape", w, newshape=shape)
    )
    attrs: dict[str, Attr] = {"strides": (*strides,), "dilation": (*dilations,), "padding": (top, left, bottom, right)}
    y = builder.emit("nn.conv2d", images, kernel, groups=groups, **attrs)
    if bias is not None:
        y = builder.emit("nn.bias_add", y, bias)
    rows, columns = y.size(2), y.size(3)
    y = builder.emit("reshape", y, newshape=(-1, planes, outputs, rows * columns))
    y = builder.emit("transpose", y, axes=(0, 2, 1, 3))
    return builder.emit("reshape", y, newshape=(-1, outputs, planes, rows, columns))


def pool3d(builder: Builder, x: Value, op: str, kernel: tuple[int, ...], where: Window, **attrs: Attr) -> Value:
    """A pool over N,C,D,H,W: one along the depth, then one over each plane. Sizes must be known, as for `conv3d`."""
    (stride, *strides), (dilation, *dilations) = where.strides, where.dilation
    front, top, left, back, bottom, right = where.padding
    channels, depth, rows, columns = (x.size(axis) for axis in range(1, 5))

    def pool(data: Value, size: tuple[int, ...], **window: Attr) -> Value:
        return builder.emit(op, data, pool_size=size, **window, **attrs)

    y = builder.emit("reshape", x, newshape=(-1, channels, depth, rows * columns))
    along, padding = {"strides": (stride, 1), "dilation": (dilation, 1)}, (front, 0, back, 0)
    y = pool(y, (kernel[0], 1), padding=padding, **along)
    planes = y.size(2)
    y = builder.emit("reshape", y, newshape=(-1, channels * planes, rows, columns))
    padding = top, left, bottom, right
    y = pool(y, kernel[1:], padding=padding, strides=(*strides,), dilation=(*dilations,))
    return builder.emit("reshape", y, newshape=(-1, channels, planes, y.size(2), y.size(3)))
