"""Multiply the weights instead of the activations."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from qbench.ir.graph import Graph, Node
from qbench.ir.op import is_op
from qbench.ops.float.dense import BiasAdd
from qbench.ops.float.elementwise import Multiply
from qbench.passes.channels import channel_axis, foldable, per_channel, product, scaled
from qbench.passes.rewrite import Rewriter, joined_sources

Scale = NDArray[np.float64]


@dataclass(frozen=True)
class FoldScaleAxisPass:
    """A multiply by a constant per channel, right before or right after a layer, goes into the layer's weight.

    Before a layer it scales the weight's input channels; after it (and its bias) the output channels and the bias.
    The float results stay the same, the quantized ones need not: channels whose factors differ much give weights and
    biases with outliers, which a scale per tensor, and an input's scale per tensor, then have to cover. Hence this is
    off by default, as in TVM, whose users met those outliers first.
    """

    name: ClassVar[str] = "fold-scale-axis"

    def __call__(self, graph: Graph) -> Graph:
        rw = Rewriter(graph)
        scales = [node.name for node in rw if is_op(node, Multiply)]
        for name in scales:
            _fold(rw, name, into_layer_before)
        for name in reversed(scales):  # of several before a layer, the nearest goes first
            _fold(rw, name, into_layer_after)
        return rw.finish()


def _fold(rw: Rewriter, name: str, into: Callable[[Rewriter, Node, str, str], bool]) -> None:
    multiply = rw.find(name)
    if multiply is not None:
        for data, factor in (multiply.inputs, multiply.inputs[::-1]):
            if factor in rw.constants and data not in rw.constants and rw.types[data] == rw.types[multiply.output]:
                into(rw, multiply, data, factor)
                return


def into_layer_before(rw: Rewriter, multiply: Node, data: str, factor: str) -> bool:
    """Scale the output channels of the layer (and its bias) that makes `data`; whether that can be done."""
    layer, bias = rw.producer(data), None
    if layer is not None and is_op(layer, BiasAdd) and rw.sole_consumer(data) == multiply:
        layer, bias = rw.producer(layer.inputs[0]), layer
    if layer is None or not foldable(rw, layer) or rw.sole_consumer(layer.output) != (bias or multiply):
        return False
    axis = channel_axis(rw, layer)
    scale = _factors(rw, data, axis, factor)
    if scale is None:
        return False
    if bias is None:
        changed = _scaled(rw, layer, multiply, scale, "outputs")
        rw.replace((layer, multiply), (replace(changed, outputs=multiply.outputs),))
        return True
    shift = rw.array(bias.inputs[1])
    if shift is None or channel_axis(rw, bias) != axis:
        return False
    inputs = (layer.output, rw.changed_constant(bias.inputs[1], bias, product(shift, scale, bias)))
    rw.replace(layer, (_scaled(rw, layer, multiply, scale, "outputs"),))
    sources = joined_sources(bias, multiply)
    rw.replace((bias, multiply), (replace(bias, inputs=inputs, outputs=multiply.outputs, sources=sources),))
    return True


def into_layer_after(rw: Rewriter, multiply: Node, data: str, factor: str) -> bool:
    """Scale the input channels of the layer that reads the product; whether that can be done."""
    layer = rw.sole_consumer(multiply.output)
    if layer is None or not foldable(rw, layer) or layer.inputs[0] != multiply.output:
        return False
    scale = _factors(rw, data, channel_axis(rw, layer), factor)
    if scale is None:
        return False
    changed = _scaled(rw, layer, multiply, scale, "inputs")
    rw.replace((multiply, layer), (replace(changed, inputs=(data, changed.inputs[1])),))
    return True


def _factors(rw: Rewriter, value: str, axis: int, factor: str) -> Scale | None:
    """The constant as one factor per channel of `value`; None where it varies along another axis."""
    vector = per_channel(rw.constants[factor].array, rw.types[value].shape, axis)
    return None if vector is None else vector.astype(np.float64)


def _scaled(rw: Rewriter, layer: Node, multiply: Node, scale: Scale, side: Literal["inputs", "outputs"]) -> Node:
    weight = rw.changed_constant(layer.inputs[1], layer, scaled(rw, layer, scale, side))
    order = (multiply, layer) if side == "inputs" else (layer, multiply)
    return replace(layer, inputs=(layer.inputs[0], weight), sources=joined_sources(*order))
