"""Convolutions and pools over volumes, by those over images.

A window that is one pixel wide along two axes goes along the depth of an image D x H*W. The others see a few planes of
the volume: beside each other as channels, they are an image whose convolution has the same products. Pools go along
the depth first, and then over each plane.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from qbench.errors import ModelError, shown
from qbench.frontends.onnx.builder import Builder, Unsupported, Value
from qbench.frontends.onnx.window import Window
from qbench.ir.graph import Attr
from qbench.ops.numeric.windows import Window as Extent


def conv3d(builder: Builder, x: Value, w: Value, bias: Value | None, where: Window, groups: int) -> Value:
    """A convolution over N,C,D,H,W and its bias: one along the depth, or one of N * D images.

    Raises
    ------
    Unsupported
        A size of the volume is open; the number of samples may be.
    """
    if (w.size(3), w.size(4)) == (1, 1) and not any(where.over_planes.padding):
        return _along_depth(builder, x, w, bias, where, groups)
    (stride, *_), (dilation, *_) = where.strides, where.dilation
    front, back = where.padding[0], where.padding[3]
    outputs, channels, taps, height, width = (w.size(axis) for axis in range(5))
    planes = Extent((taps, 1), (stride, 1), (front, 0, back, 0), (dilation, 1)).counts((x.size(2), 1))[0]
    starts = [tap * dilation - front for tap in range(taps)]
    images = _seen_together(builder, x, starts, planes, stride)
    kernel = _reshaped(builder, w, (outputs, channels * taps, height, width))
    y = builder.emit("nn.conv2d", images, kernel, groups=groups, **where.over_planes.attrs)
    if bias is not None:
        y = builder.emit("nn.bias_add", y, bias)
    return _volume(builder, y, planes)


def _along_depth(builder: Builder, x: Value, w: Value, bias: Value | None, where: Window, groups: int) -> Value:
    """A window of one pixel's width and height: the places that it comes to are the columns of one image."""
    over, along = where.over_planes, where.along_depth
    if max(over.strides) > 1:
        x = builder.emit(
            "strided_slice", x, begin=(0, 0), end=(x.size(3), x.size(4)), strides=over.strides, axes=(3, 4)
        )
    kernel = _reshaped(builder, w, (w.size(0), w.size(1), w.size(2), 1))
    y = builder.emit("nn.conv2d", _columns(builder, x), kernel, groups=groups, **along.attrs)
    if bias is not None:
        y = builder.emit("nn.bias_add", y, bias)
    return builder.emit("reshape", y, newshape=(-1, w.size(0), y.size(2), x.size(3), x.size(4)))


def _columns(builder: Builder, x: Value) -> Value:
    """A volume as an image whose columns are pixels and whose rows are planes."""
    return builder.emit("reshape", x, newshape=(-1, x.size(1), x.size(2), x.size(3) * x.size(4)))


def conv3d_transpose(
    builder: Builder, x: Value, w: Value, bias: Value | None, where: Window, extra: tuple[int, ...], groups: int
) -> Value:
    """A transposed convolution over N,C,D,H,W and its bias.

    Every so many planes of the result, a stride apart, see planes of the volume by the same taps: beside each other as
    channels these are images again. Planes that see the same ones are made together, as more channels.

    Raises
    ------
    Unsupported
        A size of the volume is open, or the weight is not constant.
    """
    if not w.fixed or (bias is not None and not bias.fixed):
        raise Unsupported("weight and bias of a transposed convolution over volumes must be constant")
    stride, along = where.strides[0], where.along_depth
    depth = (x.size(2) - 1) * stride + (w.size(2) - 1) * along.dilation[0] + 1 + extra[0]
    depth -= along.padding[0] + along.padding[2]
    places = -(-depth // stride)
    attrs: dict[str, Attr] = {**where.over_planes.attrs, "output_padding": extra[1:], "groups": groups}
    found = _phases(w.size(2), along)
    made = [_made_together(builder, x, w, bias, places, *phases, **attrs) for phases in found]
    rows, columns = made[0].size(2), made[0].size(3)
    parts = [
        builder.emit("reshape", y, newshape=(-1, places, y.size(1) // len(phases), len(phases), rows * columns))
        for y, (_, phases) in zip(made, found, strict=True)
    ]
    together = builder.emit("concatenate", *parts, axis=3) if len(parts) > 1 else parts[0]
    y = builder.emit("transpose", together, axes=(0, 2, 1, 3, 4))
    y = builder.emit("reshape", y, newshape=(-1, y.size(1), places * stride, rows, columns))
    if places * stride == depth:
        return y
    return builder.emit("strided_slice", y, begin=(0,), end=(depth,), strides=(1,), axes=(2,))


def _made_together(
    builder: Builder, x: Value, w: Value, bias: Value | None, places: int, starts: list[int], phases: list[list[int]],
    **attrs: Attr,
) -> Value:  # fmt: skip
    """Images, one for each place along the depth, whose channels are those of a few planes of the result."""
    images = _seen_together(builder, x, starts, places)
    y = builder.emit("nn.conv2d_transpose", images, _of_phases(builder, w, phases), **attrs)
    if bias is None:
        return y
    return builder.emit("nn.bias_add", y, builder.moved(bias, partial(np.repeat, repeats=len(phases))))


def _phases(taps: int, along: Window) -> list[tuple[list[int], list[list[int]]]]:
    """Of the results within a stride: the planes seen, and by which taps; neighbours that see the same are one.

    Where nothing is seen, plane 0 is, by a tap behind the last.
    """
    stride, dilation, front = along.strides[0], along.dilation[0], along.padding[0]
    found: list[tuple[list[int], list[list[int]]]] = []
    for phase in range(stride):
        places = ((phase + front - tap * dilation, tap) for tap in range(taps))
        seen = sorted((place // stride, tap) for place, tap in places if place % stride == 0) or [(0, taps)]
        starts, by = [start for start, _ in seen], [tap for _, tap in seen]
        if found and found[-1][0] == starts:
            found[-1][1].append(by)
        else:
            found.append((starts, [by]))
    return found


def _of_phases(builder: Builder, w: Value, phases: list[list[int]]) -> Value:
    """The weight by the taps of each phase: planes that are seen are more inputs, phases are more outputs."""
    taps = np.asarray(phases).T
    if taps.max() == w.size(2):
        if w.constant is None:
            raise Unsupported("integers as the weight of a transposed convolution of a stride beyond its kernel")
        w = builder.known(w, np.pad(w.constant, ((0, 0), (0, 0), (0, 1), (0, 0), (0, 0))))
    shape = w.size(0) * taps.shape[0], w.size(1) * taps.shape[1], w.size(3), w.size(4)
    return builder.moved(w, lambda array: array[:, :, taps].transpose(0, 2, 1, 3, 4, 5).reshape(shape))


def _reshaped(builder: Builder, w: Value, shape: tuple[int, ...]) -> Value:
    if w.fixed:
        return builder.moved(w, lambda array: array.reshape(shape))
    return builder.emit("reshape", w, newshape=shape)


def _seen_together(builder: Builder, x: Value, starts: Sequence[int], planes: int, stride: int = 1) -> Value:
    """Images, one for each of so many places along the depth: the channels are those of the planes that are seen there.

    Parameters
    ----------
    x
        The volumes.
    starts
        The planes seen at the first place, which may lie beyond the volume, where all is zero.
    planes
        Number of places.
    stride
        Planes from a place to the next.
    """
    channels, depth, rows, columns = (x.size(axis) for axis in range(1, 5))
    if planes < 1:
        raise ModelError(
            f"node {builder.now()}: no window fits into the {depth} planes of {shown(x.name)} and its pads"
        )
    reach = (planes - 1) * stride + 1
    front, back = max(-min(starts), 0), max(max(starts) + reach - depth, 0)
    flat = _columns(builder, x)
    if front or back:
        flat = builder.emit("nn.pad", flat, pad_width=((0, 0), (0, 0), (front, back), (0, 0)))
    parts: list[Value] = []
    for begin in (start + front for start in starts):
        part = flat
        if (begin, planes) != (0, flat.size(2)):
            bounds: dict[str, Attr] = {"begin": (begin,), "end": (begin + reach,), "strides": (stride,)}
            part = builder.emit("strided_slice", flat, axes=(2,), **bounds)
        parts.append(builder.emit("reshape", part, newshape=(-1, channels, 1, planes * rows * columns)))
    together = builder.emit("concatenate", *parts, axis=2) if len(parts) > 1 else parts[0]
    together = builder.emit("reshape", together, newshape=(-1, channels * len(parts), planes, rows * columns))
    by_plane = builder.emit("transpose", together, axes=(0, 2, 1, 3))
    return builder.emit("reshape", by_plane, newshape=(-1, channels * len(parts), rows, columns))


def _volume(builder: Builder, images: Value, planes: int) -> Value:
    """Images of the planes of volumes, as volumes."""
    channels, rows, columns = (images.size(axis) for axis in (1, 2, 3))
    y = builder.emit("reshape", images, newshape=(-1, planes, channels, rows * columns))
    y = builder.emit("transpose", y, axes=(0, 2, 1, 3))
    return builder.emit("reshape", y, newshape=(-1, channels, planes, rows, columns))


def pool3d(builder: Builder, x: Value, op: str, kernel: tuple[int, ...], where: Window, **attrs: Attr) -> Value:
    """A pool over N,C,D,H,W: one along the depth, then one over each plane. Sizes must be known, as for `conv3d`."""
    channels, rows, columns = x.size(1), x.size(3), x.size(4)
    y = builder.emit(op, _columns(builder, x), pool_size=(kernel[0], 1), **where.along_depth.attrs, **attrs)
    planes = y.size(2)
    y = builder.emit("reshape", y, newshape=(-1, channels * planes, rows, columns))
    y = builder.emit(op, y, pool_size=kernel[1:], **where.over_planes.attrs, **attrs)
    return builder.emit("reshape", y, newshape=(-1, channels, planes, y.size(2), y.size(3)))
