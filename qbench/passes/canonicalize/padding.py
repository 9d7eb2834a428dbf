"""Explicit zero padding goes into the padding attribute of the layer or pool after it."""

from qbench.ir.graph import Node
from qbench.ir.op import is_op
from qbench.ops.float.conv import Conv2d
from qbench.ops.float.pool import AvgPool2d
from qbench.ops.float.select import Pad
from qbench.passes.canonicalize.rule import FLOAT_MAX, before, values
from qbench.passes.rewrite import Rewriter, attrs, joined_sources


def merge_pad(rw: Rewriter, node: Node) -> bool:
    """nn.pad before conv2d, avg_pool2d or max_pool2d, where the pad's value acts as the layer's own padding does."""
    pad = before(rw, node, Pad)
    if pad is None:
        return False
    width, mode, value = values(rw, pad, "pad_width", "mode", "pad_value")
    outside = mode == "constant" and width[:2] == ((0, 0), (0, 0)) and min(map(min, width)) >= 0
    if not outside or len(width) != 4:
        return False
    (top, bottom), (left, right) = width[2:]
    own = values(rw, node, "padding")[0]
    padding = tuple(a + b for a, b in zip(own, (top, left, bottom, right), strict=True))
    if not _acts_alike(rw, node, pad, value, padding):
        return False
    changed = attrs(node.attrs, padding=padding)
    if is_op(node, AvgPool2d):
        changed = attrs(changed, count_include_pad=True)
    sources = joined_sources(pad, node)
    rw.remove(pad)
    rw.update(node, inputs=(pad.inputs[0], *node.inputs[1:]), attrs=changed, sources=sources)
    return True


def _acts_alike(rw: Rewriter, node: Node, pad: Node, value: float, padding: tuple[int, ...]) -> bool:
    if is_op(node, Conv2d):
        return value == 0
    pool_size, own, dilation, ceil_mode = values(rw, node, "pool_size", "padding", "dilation", "ceil_mode")
    # A window must see more than padding: of padding alone the maximum would be -inf. Ceil mode counts differently.
    if ceil_mode or dilation != (1, 1) or max(padding[0::2]) >= pool_size[0] or max(padding[1::2]) >= pool_size[1]:
        return False
    if is_op(node, AvgPool2d):
        return value == 0 and (not any(own) or values(rw, node, "count_include_pad") == (True,))
    return value <= -FLOAT_MAX or (value == 0 and _non_negative(rw, pad.inputs[0]))


def _non_negative(rw: Rewriter, value: str) -> bool:
    node = rw.producer(value)
    if node is None:
        return False
    op = rw.op(node)
    return op.within[0] >= 0 or (op.keeps_sign and all(_non_negative(rw, v) for v in node.inputs))
