"""Fourier transforms of a fixed length, as products with their bases: layers like any other."""

import numpy as np

from qbench.errors import ModelError
from qbench.frontends.onnx.builder import Builder, Unsupported, Value
from qbench.frontends.onnx.source import Array, SourceNode
from qbench.frontends.onnx.table import converter


def _basis(length: int, bins: int, sign: int) -> tuple[Array, Array]:
    """Real and imaginary parts of ``exp(sign * 2 pi i k n / length)``, each (bins, length)."""
    turns = np.outer(np.arange(bins), np.arange(length)) % length * (2 * np.pi / length)
    return np.cos(turns), sign * np.sin(turns)


@converter("STFT", "signal step window? length?", "onesided")
def stft(
    builder: Builder, node: SourceNode, x: Value, step: Value, window: Value | None, length: Value | None
) -> Value:
    """A convolution with a windowed basis; (batch, frames, bins, 2). Real signals may lack their last axis, of one."""
    if x.rank != 2 and (x.rank != 3 or x.shape[2] != 1):
        raise Unsupported("a complex signal")
    if window is not None and window.constant is None:
        raise Unsupported("a window that is computed at run time")
    size = length.integers()[0] if length is not None else 0 if window is None else window.size(0)
    (hop,) = step.integers()
    if size < 1 or hop < 1 or (window is not None and window.shape != (size,)):
        raise ModelError(f"node {node}: frames of {size} in steps of {hop}")
    bins = size // 2 + 1 if node.flag("onesided", True) else size
    shape = np.ones(size) if window is None or window.constant is None else window.constant
    weight = (np.concatenate(_basis(size, bins, -1)) * shape).astype(x.dtype).reshape(2 * bins, 1, 1, size)
    line = builder.emit("reshape", x, newshape=(x.shape[0], 1, 1, x.shape[1]))
    y = builder.emit("nn.conv2d", line, weight, strides=(1, hop))
    parts = builder.emit("reshape", y, newshape=(y.shape[0], 2, bins, y.shape[3]))
    return builder.emit("transpose", parts, axes=(0, 3, 2, 1))


@converter("DFT", "input length? axis?", "axis inverse onesided")
def dft(builder: Builder, node: SourceNode, x: Value, length: Value | None, axis: Value | None) -> Value:
    """A dense layer over one axis, whose numbers are (real) or (real, imaginary) along the last."""
    at = x.axis(node.integer("axis", 1 if node.opset < 20 else -2) if axis is None else axis.integers()[0])
    size, parts, inverse = x.size(at), x.size(x.rank - 1), node.flag("inverse")
    count = size if length is None else length.integers()[0]
    if inverse and node.flag("onesided"):
        raise Unsupported("the inverse of one side")
    bins = count // 2 + 1 if node.flag("onesided") else count
    real, imaginary = (
        _padded(part, size) / (count if inverse else 1) for part in _basis(count, bins, 1 if inverse else -1)
    )
    weight = np.block([[real, -imaginary], [imaginary, real]])[:, : parts * size].astype(x.dtype)
    rest = [i for i in range(x.rank - 1) if i != at]
    moved = builder.emit("transpose", x, axes=(*rest, x.rank - 1, at))
    rows = builder.emit("reshape", moved, newshape=(*(x.shape[i] for i in rest), parts * size))
    y = builder.emit("reshape", builder.emit("nn.dense", rows, weight), newshape=(*rows.shape[:-1], 2, bins))
    order = {old: new for new, old in enumerate((*rest, x.rank - 1, at))}
    return builder.emit("transpose", y, axes=tuple(order[i] for i in range(x.rank)))


def _padded(basis: Array, size: int) -> Array:
    """Of so many numbers, not as many as the transform has: the others are zero, or are left out."""
    return np.pad(basis[:, :size], ((0, 0), (0, max(0, size - basis.shape[1]))))
