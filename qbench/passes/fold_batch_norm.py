"""Batch normalization at inference is a scale and a shift per channel: put them into the layer before it."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from qbench.errors import GraphError, shown
from qbench.ir.graph import Graph, Node
from qbench.ir.op import is_op
from qbench.ops.float.dense import BiasAdd
from qbench.ops.float.elementwise import Multiply
from qbench.ops.float.norm import BatchNorm
from qbench.passes.channels import channel_axis, foldable, narrowed, scaled
from qbench.passes.rewrite import Rewriter, joined_sources

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class FoldBatchNormPass:
    """Every batch norm with constant parameters disappears.

    After a convolution, transposed convolution or dense layer (and its bias) that nothing else reads, weight and bias
    are scaled: w' = w * s and b' = beta + (b - mean) * s, with s = gamma / sqrt(variance + epsilon), in double
    precision and rounded once. The layer keeps its name; the bias_add after it has the batch norm's name and output.
    Anywhere else (after an add, a concat, an input) a multiply and a bias_add per channel take its place.
    """

    name: ClassVar[str] = "fold-batch-norm"

    def __call__(self, graph: Graph) -> Graph:
        rw = Rewriter(graph)
        for norm in rw:
            if is_op(norm, BatchNorm) and all(value in rw.constants for value in norm.inputs[1:]):
                _fold(rw, norm)
        return rw.finish()


def _fold(rw: Rewriter, norm: Node) -> None:
    scale, shift = _scale_and_shift(rw, norm)
    rank = rw.types[norm.inputs[0]].rank
    axis = channel_axis(rw, norm)
    dtype = rw.constants[norm.inputs[1]].array.dtype
    layer, bias = _layer_before(rw, norm, axis)
    if layer is None:
        shape = [-1 if i == axis else 1 for i in range(rank)]
        factors = rw.constant(f"{norm.name}.scale", narrowed(scale.reshape(shape), dtype, norm))
        multiply = Node(
            rw.fresh(f"{norm.name}.multiply"),
            Multiply.name,
            (norm.inputs[0], factors),
            (rw.fresh(f"{norm.output}.scaled"),),
            sources=norm.sources,
        )
        rw.replace(norm, (multiply, _bias_add(rw, norm, multiply.output, shift, axis)))
        return
    if bias is not None:
        shift += scale * rw.constants[bias.inputs[1]].array.astype(np.float64)
    weight = rw.changed_constant(layer.inputs[1], layer, scaled(rw, layer, scale, "outputs"))
    folded = replace(layer, inputs=(layer.inputs[0], weight), sources=joined_sources(layer, norm))
    rw.replace(layer, (folded,))
    added = _bias_add(rw, norm, layer.output, shift, axis)
    if bias is None:
        rw.replace(norm, (added,))
    else:
        rw.replace((bias, norm), (replace(added, sources=joined_sources(bias, norm)),))


def _scale_and_shift(rw: Rewriter, norm: Node) -> tuple[Vector, Vector]:
    gamma, beta, mean, variance = (rw.constants[value].array.astype(np.float64) for value in norm.inputs[1:])
    with np.errstate(all="ignore"):
        scale = gamma / np.sqrt(variance + rw.attr(norm, "epsilon"))
        shift = beta - mean * scale
    wrong = np.flatnonzero(~np.isfinite(scale + shift))
    if wrong.size:
        raise GraphError(
            f"batch norm {shown(norm.name)}: gamma, beta, mean and variance of channel {wrong[0]} give no finite scale "
            f"and shift (variance {variance[wrong[0]]}); check the parameters in the model file"
        )
    return scale, shift


def _layer_before(rw: Rewriter, norm: Node, axis: int) -> tuple[Node | None, Node | None]:
    """The layer that the norm can be folded into and the bias_add between them, if there is one."""
    node, bias = rw.producer(norm.inputs[0]), None
    if node is not None and is_op(node, BiasAdd) and node.inputs[1] in rw.constants:
        if channel_axis(rw, node) != axis or rw.sole_consumer(node.output) != norm:
            return None, None
        node, bias = rw.producer(node.inputs[0]), node
    if node is None or not foldable(rw, node):
        return None, None
    if channel_axis(rw, node) != axis or rw.sole_consumer(node.output) != (bias or norm):
        return None, None
    return node, bias


def _bias_add(rw: Rewriter, norm: Node, data: str, shift: Vector, axis: int) -> Node:
    """The bias_add that stands where the norm stood; its bias is called as the norm's beta was."""
    dtype = rw.constants[norm.inputs[2]].array.dtype
    bias = rw.changed_constant(norm.inputs[2], norm, narrowed(shift, dtype, norm))
    return replace(norm, op=BiasAdd.name, inputs=(data, bias), attrs=BiasAdd.given(axis=axis))
