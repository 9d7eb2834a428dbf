"""Numbers that a whole tensor is multiplied by, or that are added to it, beside a layer: into its weight and bias."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from qbench.ir.graph import Graph, Node
from qbench.ir.op import Array, is_op
from qbench.ops.float.conv import Conv2d
from qbench.ops.float.dense import BiasAdd, Dense
from qbench.ops.float.elementwise import Add, Multiply
from qbench.passes.canonicalize.constants import add_to_bias_add, merge_biases
from qbench.passes.canonicalize.rule import apply_rules, by_op, with_scalar
from qbench.passes.channels import channel_axis, foldable
from qbench.passes.fold_scale_axis import into_layer_after, into_layer_before
from qbench.passes.rewrite import Rewriter, joined_sources


@dataclass(frozen=True)
class FoldAffinePass:
    """A product with one number, and a sum with one, right before or after a layer disappear in it.

    - A layer's output (with its bias) times a number, plus a constant per channel: weight and bias take both.
    - A number times a layer's input: into the weight. Where something is added in between, s x + c becomes
      s (x + c / s) first.
    - A number plus the input of a layer without padding: into the bias.

    Networks that learn a scale and a shift behind each convolution and each activation (PP-LCNetV3, so the recognizers
    and detectors of PaddleOCR) lose most of them. All channels are scaled alike: no range of a tensor, and no scale of
    a weight, gets worse by it, so unlike `FoldScaleAxisPass` this always runs.
    """

    name: ClassVar[str] = "fold-affine"

    def __call__(self, graph: Graph) -> Graph:
        rw = Rewriter(graph)
        apply_rules(rw, _RULES)
        return rw.finish()


def _product_after(rw: Rewriter, multiply: Node) -> bool:
    found = with_scalar(rw, multiply)
    if found is None:
        return False
    data, number = found
    layer, bias = rw.producer(data), None
    if layer is not None and is_op(layer, BiasAdd):
        layer, bias = rw.producer(layer.inputs[0]), rw.array(layer.inputs[1])
    if bias is not None and not _exact(bias, number):
        return False
    return _bears(rw, layer, number) and into_layer_before(rw, multiply, data, _other(multiply, data))


def _product_before(rw: Rewriter, multiply: Node) -> bool:
    found, layer = with_scalar(rw, multiply), rw.sole_consumer(multiply.output)
    if found is None or not _bears(rw, layer, found[1]):
        return False
    return into_layer_after(rw, multiply, found[0], _other(multiply, found[0]))


def _sum_of_product(rw: Rewriter, add: Node) -> bool:
    """s x + c before a layer is s (x + c / s)."""
    found, layer = with_scalar(rw, add), rw.sole_consumer(add.output)
    if found is None or layer is None or layer.inputs[0] != add.output:
        return False
    (scaled, shift), multiply = found, rw.producer(found[0])
    if not is_op(multiply, Multiply) or rw.sole_consumer(scaled) != add:
        return False
    assert multiply is not None
    factor = with_scalar(rw, multiply)
    if factor is None or not _bears(rw, layer, factor[1]):
        return False
    data, number = factor
    array = rw.constants[_other(add, scaled)].array
    with np.errstate(over="ignore"):
        shifted = np.full(array.shape, shift / number).astype(array.dtype)
    if not np.isfinite(shifted).all():
        return False
    constant = rw.constant(f"{add.name}.shift", shifted)
    inner = rw.fresh(f"{add.output}.unscaled")
    first = replace(add, inputs=(data, constant), outputs=(inner,))
    rw.replace((multiply, add), (first, replace(multiply, inputs=(inner, _other(multiply, data)), outputs=add.outputs)))
    return True


def _sum_before(rw: Rewriter, add: Node) -> bool:
    """A number plus the input of a layer whose windows never stick out of it."""
    found, layer = with_scalar(rw, add), rw.sole_consumer(add.output)
    if found is None or layer is None or layer.inputs[0] != add.output or not foldable(rw, layer):
        return False
    if not (is_op(layer, Dense) or (is_op(layer, Conv2d) and not any(rw.attr(layer, "padding")))):
        return False
    weight, axis = rw.constants[layer.inputs[1]].array, channel_axis(rw, layer)
    with np.errstate(over="ignore", invalid="ignore"):
        shift = (found[1] * weight.astype(np.float64).reshape(len(weight), -1).sum(1)).astype(weight.dtype)
    if not np.isfinite(shift).all():
        return False
    bias = rw.constant(f"{layer.name}.shift", shift)
    inner = rw.fresh(f"{layer.output}.unshifted")
    changed = replace(layer, inputs=(found[0], layer.inputs[1]), outputs=(inner,), sources=joined_sources(add, layer))
    added = Node(
        rw.fresh(f"{layer.name}.bias"), BiasAdd.name, (inner, bias), layer.outputs,
        BiasAdd.given(axis=axis), sources=joined_sources(add, layer),
    )  # fmt: skip
    rw.replace((add, layer), (changed, added))
    return True


_RULES = by_op(
    {
        _product_after: (Multiply,),
        _product_before: (Multiply,),
        add_to_bias_add: (Add,),
        _sum_of_product: (Add,),
        _sum_before: (Add,),
        merge_biases: (BiasAdd,),
    }
)


def _other(node: Node, operand: str) -> str:
    """The other operand of two."""
    return node.inputs[1] if node.inputs[0] == operand else node.inputs[0]


def _bears(rw: Rewriter, layer: Node | None, number: float) -> bool:
    """Whether a layer's weight can be multiplied by a number."""
    return layer is not None and foldable(rw, layer) and _exact(rw.constants[layer.inputs[1]].array, number)


def _exact(array: Array, number: float) -> bool:
    """Whether an array times a number is as exact as before: neither zero, nor near the ends of its dtype."""
    ends = np.finfo(array.dtype.name)
    largest = float(np.abs(array).max(initial=1)) * abs(number)
    return bool(np.sqrt(float(ends.tiny)) <= abs(number) and largest <= np.sqrt(float(ends.max)))
