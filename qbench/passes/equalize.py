"""Share out the ranges of weights between layers that follow each other."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.op import QuantRule
from qbench.ops.products import SumOfProducts
from qbench.passes.channels import channel_axis, foldable, product, scaled
from qbench.passes.groups import rule_of
from qbench.passes.rewrite import Rewriter

_ROUNDS = 100
_SETTLED, _LEAST = 1e-3, 0.02  # changes of factors that go on, and that are worth a change of weights
_MOST = 64.0  # a factor beyond it says that a channel is dead
_HEADROOM = 0.9  # of a clamp's upper bound, below which a channel is taken not to reach it

Factors = NDArray[np.float64]


@dataclass(frozen=True)
class _Pair:
    """Two layers, by name, the bias between them, the clamp's upper bound and the value that it makes."""

    first: str
    second: str
    bias: str | None
    upper: float
    clamped: str


@dataclass(frozen=True)
class EqualizePass:
    """Divide each output channel of a layer by a factor, and multiply what the next layer does with it by the same.

    One scale for a whole weight must reach the channel with the largest range, and leaves few integers to the others.
    Where two layers follow each other with nothing between but a bias and an activation for which
    ``f(s x) = s f(x)``, the factor ``sqrt(r1 / r2)`` gives each channel the same range in both weights, and the network
    computes the same (M. Nagel et al., Data-Free Quantization Through Weight Equalization and Bias Correction, ICCV
    2019, section 4.1); that is repeated over all pairs until nothing changes. A clamp with an upper bound scales only
    as long as a channel stays below it: such channels have factors that keep them there, all others keep theirs.

    Parameters
    ----------
    peaks
        By value that a clamp with an upper bound makes: the largest number in each channel over the calibration data.
        Pairs whose value is not there stay as they are.
    """

    name: ClassVar[str] = "equalize"
    peaks: FrozenMap[str, tuple[float, ...]] = field(default_factory=FrozenMap[str, tuple[float, ...]])

    def __call__(self, graph: Graph) -> Graph:
        """The same network with other weights and biases."""
        rw = Rewriter(graph)
        pairs = [pair for pair in _pairs(rw) if pair.upper == np.inf or pair.clamped in self.peaks]
        tables = {name: _table(rw, rw.node(name)) for pair in pairs for name in (pair.first, pair.second)}
        after = {pair.first: np.ones(tables[pair.first].shape[0] * tables[pair.first].shape[1]) for pair in pairs}
        before = {pair.second: pair.first for pair in pairs}

        def ranges(name: str, axis: int) -> Factors:
            """Of each output (axis 2 goes) or input (axis 1 goes) of a layer, with all factors as they are now."""
            table = tables[name]
            groups, outputs, inputs = table.shape
            if name in before:
                table = table * after[before[name]].reshape(groups, 1, inputs)
            if name in after:
                table = table / after[name].reshape(groups, outputs, 1)
            return table.max(axis=axis).reshape(-1)

        for _ in range(_ROUNDS):
            moved = 0.0
            for pair in pairs:
                wanted = self._wanted(pair, ranges(pair.first, 2), ranges(pair.second, 1), after[pair.first])
                moved = max(moved, float(np.abs(wanted / after[pair.first] - 1).max(initial=0)))
                after[pair.first] = wanted
            if moved < _SETTLED:
                break
        for pair in pairs:
            if np.abs(after[pair.first] - 1).max(initial=0) > _LEAST:
                _apply(rw, pair, after[pair.first])
        return rw.finish()

    def _wanted(self, pair: _Pair, ours: Factors, theirs: Factors, factors: Factors) -> Factors:
        """The factors that give both sides of each channel the same range, as far as that is allowed."""
        alive = (ours > 0) & (theirs > 0)
        wanted = factors * np.sqrt(np.where(alive, ours, 1) / np.where(alive, theirs, 1))
        wanted = np.clip(wanted, 1 / _MOST, _MOST)
        if pair.upper == np.inf:
            return wanted
        share = np.asarray(self.peaks[pair.clamped]) / (_HEADROOM * pair.upper)
        return np.where(share < 1, np.maximum(wanted, share), 1.0)


def clamped_values(graph: Graph) -> dict[str, int]:
    """The values of whose channels :class:`EqualizePass` wants to know the peaks, with the axis of the channels."""
    rw = Rewriter(graph)
    return {pair.clamped: _axis(rw, pair) for pair in _pairs(rw) if pair.upper < np.inf}


def _pairs(rw: Rewriter) -> Iterator[_Pair]:
    """Layers that alone read each other, in order."""
    for first in rw:
        if not _is_layer(rw, first):
            continue
        axis, bias, upper, value = channel_axis(rw, first), None, float("inf"), first.output
        reader = rw.sole_consumer(value)
        if reader is not None and rule_of(reader) == QuantRule.BIAS and _owns(rw, reader, axis):
            bias, value = reader.name, reader.output
            reader = rw.sole_consumer(value)
        bounds = None if reader is None else rw.op(reader).bounds
        if reader is not None and bounds is not None and bounds[0] in (0, float("-inf")) and bounds[1] > 0:
            upper, value = bounds[1], reader.output
            reader = rw.sole_consumer(value)
        if reader is None or not _is_layer(rw, reader) or reader.inputs[0] != value:
            continue
        if rw.op(reader).channel_axis_of("data", rw.types[value].rank) == axis:
            yield _Pair(first.name, reader.name, bias, upper, value)


def _owns(rw: Rewriter, node: Node, axis: int) -> bool:
    """Whether a node adds a constant of its own along that axis."""
    value = node.inputs[1]
    return channel_axis(rw, node) == axis and value in rw.constants and rw.sole_consumer(value) == node


def _is_layer(rw: Rewriter, node: Node) -> bool:
    """Whether a node has a constant weight of its own, outputs first."""
    if rule_of(node) != QuantRule.MAC or not foldable(rw, node) or rw.sole_consumer(node.inputs[1]) != node:
        return False
    op = rw.op(node)
    return isinstance(op, SumOfProducts) and op.channels.weight == 0


def _axis(rw: Rewriter, pair: _Pair) -> int:
    return channel_axis(rw, rw.node(pair.first))


def _table(rw: Rewriter, layer: Node) -> Factors:
    """The largest weight between each input and output, [groups, outputs, inputs]."""
    weight = np.abs(rw.constants[layer.inputs[1]].array.astype(np.float64))
    groups = int(rw.attr(layer, "groups"))
    return weight.reshape(groups, weight.shape[0] // groups, weight.shape[1], -1).max(axis=3)


def _apply(rw: Rewriter, pair: _Pair, factors: Factors) -> None:
    """Divide the first layer and its bias by the factors, multiply the second one by them."""
    sides: tuple[tuple[str, Factors, Literal["inputs", "outputs"]], ...]
    sides = (pair.first, 1 / factors, "outputs"), (pair.second, factors, "inputs")
    for name, by, side in sides:
        layer = rw.node(name)
        weight = rw.changed_constant(layer.inputs[1], layer, scaled(rw, layer, by, side))
        rw.update(layer, inputs=(layer.inputs[0], weight))
    if pair.bias is not None:
        bias = rw.node(pair.bias)
        value = rw.changed_constant(
            bias.inputs[1], bias, product(rw.constants[bias.inputs[1]].array, 1 / factors, bias)
        )
        rw.update(bias, inputs=(bias.inputs[0], value))
