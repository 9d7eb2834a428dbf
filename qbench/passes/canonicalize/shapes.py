"""Ops that only move elements, and averages over whole images."""

from qbench.ir.graph import Node
from qbench.ir.op import OPS
from qbench.ir.types import dim_product
from qbench.ops.float.pool import AvgPool2d, GlobalAvgPool2d, Pool2d
from qbench.ops.float.reshape import BatchFlatten, Reshape, Transpose
from qbench.passes.canonicalize.rule import before, fuse, values
from qbench.passes.rewrite import Rewriter, attrs

RESHAPES = tuple(op for op in OPS.values() if op.keeps_order)
"""Ops that keep the elements in order and give them another shape."""


def merge_transposes(rw: Rewriter, node: Node) -> bool:
    """Two transposes in a row are one."""
    first = before(rw, node, Transpose)
    if first is None:
        return False
    (inner,), (outer,) = values(rw, first, "axes"), values(rw, node, "axes")
    return fuse(rw, (first, node), Transpose.name, first.inputs, axes=tuple(inner[axis] for axis in outer))


def merge_reshapes(rw: Rewriter, node: Node) -> bool:
    """Two changes of shape in a row are one: a flatten if that is what they come to."""
    first = before(rw, node, *RESHAPES)
    if first is None:
        return False
    given, shape = rw.types[first.inputs[0]].shape, rw.types[node.output].shape
    if dim_product(shape) != dim_product(given):  # a squeeze between them has an open size that only the run can show
        return False
    if len(given) > 1 and shape == (given[0], dim_product(given[1:])):
        return fuse(rw, (first, node), BatchFlatten.name, first.inputs)
    return fuse(rw, (first, node), Reshape.name, first.inputs, newshape=shape)


def mean_to_global(rw: Rewriter, node: Node) -> bool:
    """The mean of an image over height and width, which stay as sizes of 1."""
    axes, keepdims = values(rw, node, "axes", "keepdims")
    rank = rw.types[node.inputs[0]].rank
    if rank != 4 or not keepdims or sorted(axis % rank for axis in axes) != [2, 3]:
        return False
    return fuse(rw, (node,), GlobalAvgPool2d.name, node.inputs)


def round_pool_down(rw: Rewriter, node: Node) -> bool:
    """A window that sticks out at the end has padding there."""
    op = rw.op(node)
    assert isinstance(op, Pool2d)
    window = op.rounded_down(rw.types[node.inputs[0]])
    if window.ceil_mode or not op.ceil_mode:
        return False
    changed = attrs(node.attrs, padding=window.padding, ceil_mode=False)
    if isinstance(op, AvgPool2d):  # what sticks out is not counted, padding may be
        changed = attrs(changed, count_include_pad=op.counts_padding)
    rw.update(node, attrs=changed)
    return True


def average_to_global(rw: Rewriter, node: Node) -> bool:
    """An average pool whose one window holds the whole image, and counts nothing else."""
    op, shape = rw.op(node), rw.types[node.inputs[0]].shape
    assert isinstance(op, AvgPool2d)
    rows, columns = shape[2:]
    if isinstance(rows, str) or isinstance(columns, str) or op.counts_padding or op.dilation != (1, 1):
        return False
    (height, width), (top, left) = op.pool_size, op.padding[:2]
    if height < rows + top or width < columns + left or op.window.counts((rows, columns)) != (1, 1):
        return False
    return fuse(rw, (node,), GlobalAvgPool2d.name, node.inputs)
