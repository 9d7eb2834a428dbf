"""Strides, dilations and pads of convolutions and pools, as two-dimensional windows."""

from __future__ import annotations

from dataclasses import dataclass

from qbench.errors import ModelError
from qbench.frontends.onnx.builder import Builder, Unsupported, Value
from qbench.frontends.onnx.source import SourceNode


@dataclass(frozen=True)
class Window:
    """How a window moves over an image, or a volume; padding is (top, left, bottom, right), what is in front first."""

    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[int, ...]

    @property
    def attrs(self) -> dict[str, tuple[int, ...]]:
        """Those of an op with such windows."""
        return {"strides": self.strides, "padding": self.padding, "dilation": self.dilation}

    @property
    def along_depth(self) -> Window:
        """Of one over a volume: how it moves from plane to plane, over an image with a row for each plane."""
        front, _, _, back, _, _ = self.padding
        return Window((self.strides[0], 1), (self.dilation[0], 1), (front, 0, back, 0))

    @property
    def over_planes(self) -> Window:
        """Of one over a volume: how it moves over each plane."""
        _, top, left, _, bottom, right = self.padding
        return Window(self.strides[1:], self.dilation[1:], (top, left, bottom, right))


def spatial(node: SourceNode, value: Value, most: int = 2) -> int:
    """Number of spatial dimensions: from 1 to `most`."""
    rank = value.rank - 2
    if not 1 <= rank <= most:
        raise Unsupported(f"{rank} spatial dimensions; only {', '.join(map(str, range(1, most + 1)))} are supported")
    return rank


def flattened(builder: Builder, value: Value) -> Value:
    """A line as an image of height 1."""
    if value.rank == 4:
        return value
    if value.fixed:
        return builder.moved(value, lambda array: array[:, :, None, :])
    return builder.emit("expand_dims", value, axes=(2,))


def flat_again(builder: Builder, value: Value, rank: int) -> Value:
    """An image of height 1 as a line, where the ONNX op works on lines."""
    return value if rank == 2 else builder.emit("squeeze", value, axes=(2,))


def window(
    node: SourceNode, x: Value, kernel: tuple[int, ...], rank: int, *, pads_given: bool = True, rounds_up: bool = False
) -> Window:
    """Read strides, dilations, pads and auto_pad; a missing first dimension is filled in.

    Parameters
    ----------
    node
        The ONNX node.
    x
        Its data, N,C,H,W.
    kernel
        Height and width of the window; of one over volumes the depth before them.
    rank
        Spatial dimensions of the ONNX op.
    pads_given
        False where the caller works out the pads itself.
    rounds_up
        Whether windows may stand out of the image, so that none of 2 pixels side by side ask for pads by its size.
    """
    strides = _filled(node, "strides", rank, 1)
    dilation = _filled(node, "dilations", rank, 1)
    shape = node.integers("kernel_shape")
    if shape is not None and shape != kernel[-rank:]:
        raise ModelError(f"node {node}: kernel_shape {shape} is not the weight's {kernel[-rank:]}")
    auto = node.text("auto_pad", "NOTSET") or "NOTSET"
    if auto in ("SAME_UPPER", "SAME_LOWER") and pads_given:
        halves = rounds_up and auto == "SAME_UPPER"
        totals = [_same_total(x, i, strides[i], (kernel[i] - 1) * dilation[i], halves) for i in range(len(kernel))]
        less = tuple(total // 2 for total in totals)
        more = tuple(total - total // 2 for total in totals)
        return Window(strides, dilation, less + more if auto == "SAME_UPPER" else more + less)
    if auto not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise ModelError(f"node {node}: auto_pad {auto!r} is unknown")
    pads = (node.integers("pads") if auto == "NOTSET" else None) or (0,) * (2 * rank)
    if len(pads) != 2 * rank:
        raise ModelError(f"node {node}: pads {pads} should have {2 * rank} numbers")
    fill = (0,) * (2 - rank)
    return Window(strides, dilation, fill + pads[:rank] + fill + pads[rank:])


def _filled(node: SourceNode, name: str, rank: int, default: int) -> tuple[int, ...]:
    given = node.integers(name) or (default,) * rank
    if len(given) != rank:
        raise ModelError(f"node {node}: {name} {given} should have {rank} numbers")
    return (default,) * (2 - rank) + given


def _same_total(x: Value, i: int, stride: int, reach: int, halves: bool) -> int:
    if stride == 1:
        return reach
    if halves and (stride, reach) == (2, 1) and not isinstance(x.shape[i + 2], int):
        return 0
    size = x.size(i + 2)
    return max((-(-size // stride) - 1) * stride + reach + 1 - size, 0)
