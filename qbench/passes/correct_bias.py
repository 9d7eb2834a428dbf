"""Take out of each bias what rounding the weights adds on average."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.op import Array, QuantRule, bind
from qbench.passes.annotate import FAKE
from qbench.passes.groups import find_groups, rule_of
from qbench.passes.rewrite import Rewriter

__all__ = ["CorrectBiasPass"]


@dataclass(frozen=True)
class CorrectBiasPass:
    """Add to each bias the mean of ``(weight - rounded weight) * data``.

    Rounded weights do not only add noise: over the mean of their inputs they shift what a layer makes, by as much for
    every sample, and shifts add up from layer to layer. The bias can take that back at no cost (M. Nagel et al.,
    Data-Free Quantization Through Weight Equalization and Bias Correction, ICCV 2019, section 4.2). Padding is taken
    for data of the same mean. Layers without a bias stay as they are.

    Parameters
    ----------
    means
        Mean of each channel of the tensors that convolutions and dense layers read, by name in the prepared graph.
    """

    name: ClassVar[str] = "correct-bias"
    means: FrozenMap[str, tuple[float, ...]] = field(default_factory=FrozenMap[str, tuple[float, ...]])

    def __call__(self, graph: Graph) -> Graph:
        """The annotated graph with other biases; it needs the qparams of the weights."""
        rewriter = Rewriter(graph)
        for group in find_groups(graph, {node.name for node in graph.nodes if node.reason}):
            bias = next((node for node in group.nodes[1:] if rule_of(node) == QuantRule.BIAS), None)
            error = self._weight_error(graph, group.head) if bias is not None else None
            if bias is None or error is None:
                continue
            means = self.means.get(self._tensor(graph, group.head.inputs[0]), ())
            shift = _shift(error, np.asarray(means), int(getattr(bind(group.head), "groups", 1)))
            if shift is not None:
                corrected = np.add(graph.constants[bias.inputs[1]].array, shift, dtype=np.float64).astype(np.float32)
                value = rewriter.changed_constant(bias.inputs[1], bias, corrected)
                rewriter.update(bias, inputs=(bias.inputs[0], value))
        return rewriter.finish()

    @staticmethod
    def _tensor(graph: Graph, value: str) -> str:
        producer = graph.producers.get(value)
        return str(producer.attrs["tensor"]) if producer is not None and producer.op == FAKE else value

    @staticmethod
    def _weight_error(graph: Graph, head: Node) -> Array | None:
        """What rounding takes from the weights of a convolution or dense layer; None where they are no constant."""
        fake = graph.producers.get(head.inputs[1]) if head.op in ("nn.conv2d", "nn.dense") else None
        if fake is None or fake.op != FAKE or fake.inputs[0] not in graph.constants:
            return None
        weight = graph.constants[fake.inputs[0]].array
        (rounded,) = bind(fake, graph.qparams).compute_all((weight,))
        return weight.astype(np.float64) - rounded


def _shift(error: Array, means: NDArray[np.float64], groups: int) -> NDArray[np.float64] | None:
    """The mean of the products, per output channel; None where the means are not those of the layer's input."""
    taps = error.reshape(*error.shape[:2], -1).sum(axis=2)
    outputs, inputs = taps.shape
    if means.size != inputs * groups:
        return None
    by_group = taps.reshape(groups, outputs // groups, inputs) * means.reshape(groups, 1, inputs)
    return by_group.sum(axis=2).reshape(-1)
