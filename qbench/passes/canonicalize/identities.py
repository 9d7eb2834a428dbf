"""Nodes whose output is their input."""

from __future__ import annotations

from collections.abc import Callable

from qbench.ir.graph import Node
from qbench.passes.canonicalize.rule import FLOAT_MAX, values, with_scalar
from qbench.passes.rewrite import Rewriter

__all__ = ["IDENTITIES", "NEUTRAL", "remove_identity"]


def remove_identity(rw: Rewriter, node: Node) -> bool:
    """Remove a node that gives back its first input, unless the name of a graph output would be lost."""
    data = _same_as(rw, node)
    if data is None or rw.types[data] != rw.types[node.output]:
        return False
    return data not in rw.constants and rw.bypass(node, data)


def _same_as(rw: Rewriter, node: Node) -> str | None:
    if node.op in NEUTRAL:
        number, commutes = NEUTRAL[node.op]
        found = with_scalar(rw, node, commutes=commutes)
        return found[0] if found is not None and found[1] == number else None
    same = len(node.outputs) == 1 and IDENTITIES[node.op](rw, node)
    return node.inputs[0] if same else None


def _always(rw: Rewriter, node: Node) -> bool:
    return True


def _transpose(rw: Rewriter, node: Node) -> bool:
    (axes,) = values(rw, node, "axes")
    return axes == tuple(range(len(axes)))


def _pad(rw: Rewriter, node: Node) -> bool:
    (width,) = values(rw, node, "pad_width")
    return all(pair == (0, 0) for pair in width)


def _clip(rw: Rewriter, node: Node) -> bool:
    low, high = values(rw, node, "a_min", "a_max")
    return low <= -FLOAT_MAX and high >= FLOAT_MAX


def _slice(rw: Rewriter, node: Node) -> bool:
    (strides,) = values(rw, node, "strides")
    return all(stride > 0 for stride in strides)


def _resize(rw: Rewriter, node: Node) -> bool:
    # The other modes shift the pixels even where the size stays: tf_half_pixel_for_nn, tf_crop_and_resize.
    mode, scales = values(rw, node, "coordinate_transformation_mode", "scales")
    exact = mode in ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric")
    return exact and scales in (None, (1.0, 1.0))


def _pool(rw: Rewriter, node: Node) -> bool:
    size, strides, padding = values(rw, node, "pool_size", "strides", "padding")
    return size == (1, 1) and strides == (1, 1) and not any(padding)


IDENTITIES: dict[str, Callable[[Rewriter, Node], bool]] = {
    "reshape": _always,
    "nn.batch_flatten": _always,
    "squeeze": _always,
    "expand_dims": _always,
    "cast": _always,
    "broadcast_to": _always,
    "tile": _always,
    "concatenate": lambda rw, node: len(node.inputs) == 1,
    "split": _always,
    "transpose": _transpose,
    "nn.pad": _pad,
    "clip": _clip,
    "strided_slice": _slice,
    "image.resize2d": _resize,
    "nn.max_pool2d": _pool,
    "nn.avg_pool2d": _pool,
}
"""When a node with one output, of the same type as its first input, changes nothing."""

NEUTRAL = {
    "add": (0.0, True),
    "subtract": (0.0, False),
    "multiply": (1.0, True),
    "divide": (1.0, False),
    "power": (1.0, False),
}
"""The number that an operation leaves a tensor unchanged with, and whether it may stand at the left."""
