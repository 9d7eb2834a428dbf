"""Take out of each bias what rounding the weights adds on average."""

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from qbench.ir.build import rebuild
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.mapped import release
from qbench.ir.memo import Memo
from qbench.ir.names import fresh
from qbench.ir.op import Array, QuantRule, bind, is_op
from qbench.ops.products import SumOfProducts, TransposedConvolution
from qbench.ops.qnn.border import FakeQuantize
from qbench.passes.groups import remembered_groups, rule_of
from qbench.passes.pipeline import Remembering


@dataclass(frozen=True)
class CorrectBiasPass(Remembering):
    """Add to each bias the mean of ``(weight - rounded weight) * data``.

    Rounded weights do not only add noise: over the mean of their inputs they shift what a layer makes, by as much for
    every sample, and shifts add up from layer to layer. The bias can take that back at no cost (M. Nagel et al.,
    Data-Free Quantization Through Weight Equalization and Bias Correction, ICCV 2019, section 4.2). Padding is taken
    for data of the same mean. Layers without a bias stay as they are.

    Parameters
    ----------
    means
        Mean of each channel of the tensors that convolutions and dense layers read, by name in the prepared graph.
    layers
        Names of the convolutions and dense layers whose biases are corrected; None: all.
    """

    name: ClassVar[str] = "correct-bias"
    means: FrozenMap[str, tuple[float, ...]] = field(default_factory=FrozenMap[str, tuple[float, ...]])
    layers: frozenset[str] | None = None

    def __call__(self, graph: Graph, memo: Memo | None = None) -> Graph:
        """The annotated graph with other biases; it needs the qparams of the weights."""
        memo, constants, nodes = memo or Memo(), dict(graph.constants), dict[str, Node]()
        readers = Counter(value for node in graph.nodes for value in set(node.inputs))
        for group in remembered_groups(graph, memo):
            if self.layers is not None and group.head.name not in self.layers:
                continue
            bias = next((node for node in group.nodes[1:] if rule_of(node) == QuantRule.BIAS), None)
            weight = self._weight(graph, group.head) if bias is not None else None
            if bias is None or weight is None:
                continue
            means = self.means.get(self._tensor(graph, group.head.inputs[0]), ())
            value = bias.inputs[1]
            given = *weight, graph.constants[value], means
            corrected = memo.recall((self.name, bias.name), given, partial(_corrected, *given))
            if corrected is None:
                continue
            if readers[value] > 1 or value in graph.outputs:
                readers[value] -= 1
                value = fresh(f"{value}.{bias.name}", {**graph.types, **constants, **graph.by_name})
                nodes[bias.name] = replace(bias, inputs=(bias.inputs[0], value))
            constants[value] = corrected
        if not nodes:
            return graph if constants == graph.constants else graph.rebound(constants=constants)
        return rebuild(graph, nodes=[nodes.get(node.name, node) for node in graph.nodes], constants=constants)

    @staticmethod
    def _tensor(graph: Graph, value: str) -> str:
        producer = graph.producers.get(value)
        return str(producer.attrs["tensor"]) if is_op(producer, FakeQuantize) else value

    @staticmethod
    def _weight(graph: Graph, head: Node) -> tuple[Constant, FakeQuantize, SumOfProducts] | None:
        """The weight of a layer, what rounds it, and the layer; None where it is no constant, or has no channels."""
        layer = bind(head)
        if not isinstance(layer, SumOfProducts) or layer.channels.weight is None:
            return None
        fake = graph.producers.get(head.inputs[1])
        if fake is None or fake.inputs[0] not in graph.constants:
            return None
        op = bind(fake, graph.qparams)
        return (graph.constants[fake.inputs[0]], op, layer) if isinstance(op, FakeQuantize) else None


def _corrected(
    weight: Constant, rounding: FakeQuantize, layer: SumOfProducts, bias: Constant, means: tuple[float, ...]
) -> Constant | None:
    """The bias less what rounding the weight adds; None where the means are not those of the layer's input."""
    error = weight.array.astype(np.float64) - rounding.compute(weight.array)
    if isinstance(layer, TransposedConvolution):  # a pixel of its result sums the weights of one phase of the strides
        error = error.transpose(1, 0, 2, 3) / math.prod(layer.strides)
    shift = _shift(error, np.asarray(means), layer.groups)
    release(weight.array)
    return None if shift is None else Constant(np.add(bias.array, shift, dtype=np.float64).astype(np.float32))


def _shift(error: Array, means: NDArray[np.float64], groups: int) -> NDArray[np.float64] | None:
    """The mean of the products, per output channel; None where the means are not those of the layer's input."""
    taps = error.reshape(*error.shape[:2], -1).sum(axis=2)
    outputs, inputs = taps.shape
    if means.size != inputs * groups:
        return None
    by_group = taps.reshape(groups, outputs // groups, inputs) * means.reshape(groups, 1, inputs)
    return by_group.sum(axis=2).reshape(-1)
