"""Share out the ranges of weights between layers that follow each other."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.op import QuantRule
from qbench.ops.products import SumOfProducts
from qbench.passes.channels import channel_axis, foldable, narrowed, product, scaled
from qbench.passes.groups import rule_of
from qbench.passes.rewrite import Rewriter

_ROUNDS = 100
_SETTLED, _LEAST = 1e-3, 0.02  # changes of factors that go on, and that are worth a change of weights
_MOST = 64.0  # a factor beyond it says that a channel is dead
_HEADROOM = 0.9  # of a clamp's upper bound, below which a channel is taken not to reach it

Factors = NDArray[np.float64]
Extremes = tuple[tuple[float, ...], tuple[float, ...]]


@dataclass(frozen=True)
class _Pair:
    """Two layers, by name, the biases after them, the clamp's bounds and the value that the second one reads."""

    first: str
    second: str
    bias: str | None
    later: str | None
    lower: float
    upper: float
    between: str

    @property
    def absorbs(self) -> bool:
        """Whether what a channel never goes below can move into the second layer's bias."""
        return self.lower == 0 and self.bias is not None and self.later is not None


@dataclass(frozen=True)
class EqualizePass:
    """Divide each output channel of a layer by a factor, and multiply what the next layer does with it by the same.

    One scale for a whole weight must reach the channel with the largest range, and leaves few integers to the others.
    Where two layers follow each other with nothing between but a bias and an activation for which
    ``f(s x) = s f(x)``, the factor ``sqrt(r1 / r2)`` gives each channel the same range in both weights, and the network
    computes the same (M. Nagel et al., Data-Free Quantization Through Weight Equalization and Bias Correction, ICCV
    2019, section 4.1); that is repeated over all pairs until nothing changes. A clamp with an upper bound scales only
    as long as a channel stays below it: such channels have factors that keep them there, all others keep theirs.

    A channel that a relu never brings to zero has a range that begins above it: what it never goes below is taken out
    of the first layer's bias, and what the second layer makes of that goes into its own (section 4.1.3 there, with the
    least number over the calibration data in place of three standard deviations below the mean).

    Parameters
    ----------
    extremes
        By value of `watched_values`: the least and the largest number in each channel over the calibration data. Of
        pairs whose value is not there, those with an upper bound stay as they are, and no bias is absorbed.
    layers
        First layers of the pairs; None: of all.
    """

    name: ClassVar[str] = "equalize"
    extremes: FrozenMap[str, Extremes] = field(default_factory=FrozenMap[str, Extremes])
    layers: frozenset[str] | None = None

    def __call__(self, graph: Graph) -> Graph:
        """The same network with other weights and biases."""
        rw = Rewriter(graph)
        pairs = [pair for pair in _pairs(rw) if pair.upper == np.inf or pair.between in self.extremes]
        pairs = [pair for pair in pairs if self.layers is None or pair.first in self.layers]
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
                _scale(rw, pair, after[pair.first])
            else:
                after[pair.first] = np.ones_like(after[pair.first])
            if pair.absorbs and pair.between in self.extremes:
                _absorb(rw, pair, self._spare(pair) / after[pair.first])
        return rw.finish()

    def _spare(self, pair: _Pair) -> Factors:
        """What each channel never goes below, as it was; 0 for those that may reach the clamp's upper bound."""
        least, peaks = (np.asarray(side, np.float64) for side in self.extremes[pair.between])
        return np.where(peaks < _HEADROOM * pair.upper, np.maximum(least, 0), 0)

    def _wanted(self, pair: _Pair, ours: Factors, theirs: Factors, factors: Factors) -> Factors:
        """The factors that give both sides of each channel the same range, as far as that is allowed."""
        alive = (ours > 0) & (theirs > 0)
        wanted = factors * np.sqrt(np.where(alive, ours, 1) / np.where(alive, theirs, 1))
        wanted = np.clip(wanted, 1 / _MOST, _MOST)
        if pair.upper == np.inf:
            return wanted
        share = np.asarray(self.extremes[pair.between][1]) / (_HEADROOM * pair.upper)
        return np.where(share < 1, np.maximum(wanted, share), 1.0)


def equalized_pairs(graph: Graph) -> dict[str, str]:
    """The layers whose outputs :class:`EqualizePass` can scale, each with the one that reads them."""
    return {pair.first: pair.second for pair in _pairs(Rewriter(graph))}


def watched_values(graph: Graph, layers: Collection[str]) -> dict[str, int]:
    """The values of whose channels :class:`EqualizePass` wants to know the extremes, with the axis of the channels."""
    rw = Rewriter(graph)
    pairs = [pair for pair in _pairs(rw) if pair.first in layers and (pair.upper < np.inf or pair.absorbs)]
    return {pair.between: channel_axis(rw, rw.node(pair.first)) for pair in pairs}


def _pairs(rw: Rewriter) -> Iterator[_Pair]:
    """Layers that alone read each other, in order."""
    for first in rw:
        if not _is_layer(rw, first):
            continue
        axis, lower, upper, value = channel_axis(rw, first), float("-inf"), float("inf"), first.output
        bias = _bias(rw, first)
        value = value if bias is None else bias.output
        reader = rw.sole_consumer(value)
        bounds = None if reader is None else rw.op(reader).bounds
        if reader is not None and bounds is not None and bounds[0] in (0, float("-inf")) and bounds[1] > 0:
            (lower, upper), value = bounds, reader.output
            reader = rw.sole_consumer(value)
        if reader is None or not _is_layer(rw, reader) or reader.inputs[0] != value:
            continue
        if rw.op(reader).channel_axis_of("data", rw.types[value].rank) == axis:
            later = _bias(rw, reader)
            padded = any(getattr(rw.op(reader), "padding", ()))  # zeros around what is absorbed would stay zeros
            names = None if bias is None else bias.name, None if later is None or padded else later.name
            yield _Pair(first.name, reader.name, *names, lower, upper, value)


def _bias(rw: Rewriter, layer: Node) -> Node | None:
    """The node that adds a constant of its own to each channel of what a layer makes."""
    node = rw.sole_consumer(layer.output)
    if node is None or rule_of(node) != QuantRule.BIAS or channel_axis(rw, node) != channel_axis(rw, layer):
        return None
    return node if node.inputs[1] in rw.constants and rw.sole_consumer(node.inputs[1]) == node else None


def _is_layer(rw: Rewriter, node: Node) -> bool:
    """Whether a node has a constant weight of its own, outputs first."""
    if rule_of(node) != QuantRule.MAC or not foldable(rw, node) or rw.sole_consumer(node.inputs[1]) != node:
        return False
    op = rw.op(node)
    return isinstance(op, SumOfProducts) and op.channels.weight == 0


def _by_group(rw: Rewriter, layer: Node) -> NDArray[np.float64]:
    """A weight as [groups, outputs, inputs, taps]."""
    weight, groups = rw.constants[layer.inputs[1]].array.astype(np.float64), int(rw.attr(layer, "groups"))
    return weight.reshape(groups, weight.shape[0] // groups, weight.shape[1], -1)


def _table(rw: Rewriter, layer: Node) -> Factors:
    """The largest weight between each input and output, [groups, outputs, inputs]."""
    return np.abs(_by_group(rw, layer)).max(axis=3)


def _scale(rw: Rewriter, pair: _Pair, factors: Factors) -> None:
    """Divide the first layer and its bias by the factors, multiply the second one by them."""
    sides: tuple[tuple[str, Factors, Literal["inputs", "outputs"]], ...]
    sides = (pair.first, 1 / factors, "outputs"), (pair.second, factors, "inputs")
    for name, by, side in sides:
        layer = rw.node(name)
        weight = rw.changed_constant(layer.inputs[1], layer, scaled(rw, layer, by, side))
        rw.update(layer, inputs=(layer.inputs[0], weight))
    if pair.bias is not None:
        bias = rw.node(pair.bias)
        rw.set_constant(bias.inputs[1], product(rw.constants[bias.inputs[1]].array, 1 / factors, bias))


def _absorb(rw: Rewriter, pair: _Pair, spare: Factors) -> None:
    """Take what channels never go below out of the first bias, and put what becomes of it into the second one."""
    if pair.bias is None or pair.later is None or not spare.any():
        return
    table = _by_group(rw, rw.node(pair.second)).sum(axis=3)
    made = (table @ spare.reshape(len(table), -1, 1)).reshape(-1)
    for name, more in ((pair.bias, -spare), (pair.later, made)):
        bias = rw.node(name)
        array = rw.constants[bias.inputs[1]].array
        rw.set_constant(bias.inputs[1], narrowed(array.astype(np.float64) + more, array.dtype, bias))
