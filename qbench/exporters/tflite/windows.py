"""Windows over images: the padding that TFLite has a word for, or an explicit one before; pools."""

from collections.abc import Sequence

import numpy as np

from qbench.exporters.tflite.fused import followers
from qbench.exporters.tflite.writer import Inexpressible, Writer, exporter
from qbench.formats.tflite import same_padding
from qbench.ir.graph import Node


def windowed(
    writer: Writer,
    node: Node,
    data: str,
    window: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int] = (1, 1),
    fill: int | None = None,
) -> tuple[int, str]:
    """The image that a window goes over, and the name of its padding; padded explicitly where neither fits.

    Parameters
    ----------
    fill
        What to pad with: an integer of the file; None: what stands for 0.0.
    """
    image = writer.read(data, "image")
    if not any(padding):
        return image, "VALID"
    sizes = writer.graph.types[data].shape[2:]
    ends = ((padding[0], padding[2]), (padding[1], padding[3]))
    if all(same_padding(sizes[axis], window[axis], strides[axis], dilation[axis]) == ends[axis] for axis in (0, 1)):
        return image, "SAME"
    top, left, bottom, right = padding
    widths = np.asarray([(0, 0), (top, bottom), (left, right), (0, 0)], np.int32)
    tensor = writer.tensors[image]
    grown = [
        size if size < 0 else size + int(more) for size, more in zip(tensor.shape, widths.sum(axis=1), strict=True)
    ]
    padded = writer.scratch(f"{node.name}.padded", image, tensor.q, shape=grown)
    inputs = [image, writer.constant(f"{node.name}.pads", widths)]
    if fill is None:
        writer.emit("PAD", inputs, [padded], "PadOptions")
    else:
        value = np.asarray([fill], tensor.dtype)
        inputs.append(writer.constant(f"{node.name}.fill", value, tensor.q))
        writer.emit("PADV2", inputs, [padded], "PadV2Options")
    return padded, "VALID"


@exporter("nn.max_pool2d", "nn.avg_pool2d", "qnn.avg_pool2d")
def pool2d(writer: Writer, node: Node) -> None:
    """MAX_POOL_2D or AVERAGE_POOL_2D."""
    op, average = writer.op(node), node.op != "nn.max_pool2d"
    if tuple(op.dilation) != (1, 1) or op.ceil_mode:
        raise Inexpressible("dilated pools, and pools that round their size up")
    data = node.inputs[0]
    q = writer.q(data)
    if average and writer.q(node.output) != q:
        raise Inexpressible("an average pool whose output has another scale than its input")
    lowest = None if average else writer.bounds(data)[0] if q is not None else float(np.finfo(np.float32).min)
    image, padding = windowed(writer, node, data, op.pool_size, op.strides, op.padding, fill=lowest)  # pyright: ignore[reportArgumentType] of the data's own type
    if average and image != writer.read(data, "image") and not op.count_include_pad:
        raise Inexpressible(f"the padding {op.padding} of an average pool that does not count it")
    if average and padding == "SAME" and op.count_include_pad:
        raise Inexpressible("an average pool that counts its padding")
    after = followers(writer, node)
    writer.emit(
        "AVERAGE_POOL_2D" if average else "MAX_POOL_2D",
        [image],
        [writer.make(after.output, "image")],
        "Pool2DOptions",
        padding=padding,
        stride_h=op.strides[0],
        stride_w=op.strides[1],
        filter_height=op.pool_size[0],
        filter_width=op.pool_size[1],
        fused_activation_function=after.activation,
    )


@exporter("image.resize2d", "qnn.resize_linear")
def resize2d(writer: Writer, node: Node) -> None:
    """RESIZE_BILINEAR or RESIZE_NEAREST_NEIGHBOR."""
    op = writer.op(node)
    linear = node.op == "qnn.resize_linear" or op.bilinear
    mode = op.coordinate_transformation_mode
    if not linear:
        mode = _NEAREST.get((mode, op.nearest_mode)) if op.method == "nearest" else None
    shape = writer.graph.types[node.inputs[0]].shape[2:]
    exact = op.scales is None or all(
        isinstance(size, int) and size * scale == out
        for size, scale, out in zip(shape, op.scales, op.size, strict=True)
    )
    if mode not in ("asymmetric", "half_pixel", "align_corners") or not exact:
        raise Inexpressible(f"resizing by {op.coordinate_transformation_mode} coordinates of this kind")
    table = "ResizeBilinearOptions" if linear else "ResizeNearestNeighborOptions"
    writer.emit(
        "RESIZE_BILINEAR" if linear else "RESIZE_NEAREST_NEIGHBOR",
        [writer.read(node.inputs[0], "image"), writer.integers(op.size)],
        [writer.make(node.output, "image")],
        table,
        align_corners=mode == "align_corners",
        half_pixel_centers=mode == "half_pixel",
    )


_NEAREST = {
    ("asymmetric", "floor"): "asymmetric",
    ("tf_half_pixel_for_nn", "floor"): "half_pixel",
    ("align_corners", "round_prefer_ceil"): "align_corners",
}
