"""One step of an imported graph at other scales: sums, biases, bounds and fills follow from them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from qbench.forms.form import clamp_bounds
from qbench.forms.moves import fill
from qbench.forms.sums import accumulator_dtype, largest_sum, product_qparams, quantized_bias, sums_axis
from qbench.ir.dtypes import numpy_dtype
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Attr, Graph, Node
from qbench.ir.op import OPS, bind, is_op
from qbench.ir.qparams import QParams
from qbench.ops.products import SumOfProducts
from qbench.ops.qnn.products import QnnMultiply
from qbench.passes.unbake.forms import is_narrow
from qbench.passes.unbake.template import Template, Unit
from qbench.quant.rounding import Rounding

__all__ = ["Rescaled", "rescaled"]

_INT32 = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class Rescaled:
    """What a unit becomes.

    Parameters
    ----------
    nodes
        They read values by their names in the imported graph, and constants of `constants` first.
    constants
        Biases, by the names they have in the imported graph.
    qparams
        Of all values that the nodes make, and of the biases.
    """

    nodes: tuple[Node, ...]
    constants: Mapping[str, Constant]
    qparams: Mapping[str, QParams]


def rescaled(
    template: Template,
    unit: Unit,
    bias: Constant | None,
    qparams: Callable[[str], QParams],
    integers: Callable[[str], Constant],
    rounding: Rounding | None,
    fresh: Callable[[str], str],
) -> Rescaled:
    """A unit of the imported graph at other scales; with its own ones, the very nodes and bits that it has.

    Parameters
    ----------
    template, unit
        The imported graph and a step of it that computes on integers.
    bias
        The real bias of the step, where it is another one than the twin's.
    qparams
        What the integers of a value mean by now.
    integers
        The integers of a quantized constant by now.
    rounding
        Another rounding than the file's.
    fresh
        Makes a new name.
    """
    graph = template.graph
    values = [value for node in unit.nodes for value in (*node.inputs, *node.outputs)]
    narrow = [value for value in values if is_narrow(graph, value)]
    same = bias is None and all(qparams(value) == graph.qparams[value] for value in narrow)
    if same:
        nodes = tuple(_rounding(node, rounding) for node in unit.nodes)
        made = [value for node in unit.nodes for value in node.outputs]
        known = {value: graph.qparams[value] for value in made if value in graph.qparams}
        return Rescaled(nodes, {}, known)
    return _Step(template, unit, bias, qparams, integers, rounding).result(fresh)


class _Step:
    def __init__(
        self,
        template: Template,
        unit: Unit,
        bias: Constant | None,
        qparams: Callable[[str], QParams],
        integers: Callable[[str], Constant],
        rounding: Rounding | None,
    ) -> None:
        self.template, self.unit, self.graph = template, unit, template.graph
        self._bias, self._new, self._integers = bias, qparams, integers
        self._rounding: Rounding | None = rounding
        self._qparams: dict[str, QParams] = {}
        self._constants: dict[str, Constant] = {}
        self._twins = {node.name: node for node in unit.twins}

    def result(self, fresh: Callable[[str], str]) -> Rescaled:
        nodes = [_rounding(self._node(node), self._rounding) for node in self.unit.nodes]
        nodes = self._with_implied(nodes, fresh)
        return Rescaled(tuple(nodes), self._constants, self._qparams)

    def _node(self, node: Node) -> Node:
        graph = self.graph
        if is_op(node, SumOfProducts, QnnMultiply):
            return self._products(node)
        if node.op == "nn.bias_add" and not is_narrow(graph, node.output):
            sums = self._q(node.inputs[0])
            self._qparams[node.output] = sums
            self._add_bias(node.inputs[1], sums)
            return node
        for value in node.outputs:
            self._qparams[value] = self._new(value) if is_narrow(graph, value) else self._proportional(node)
        if node.op == "clip":
            low, high = clamp_bounds((self._twins[node.name],), self._q(node.output))
            return _with(node, a_min=float(low), a_max=float(high))
        if node.op == "nn.pad":
            return _with(node, pad_value=float(fill(bind(self._twins[node.name]), self._q(node.output))))
        return node

    def _q(self, value: str) -> QParams:
        return self._qparams.get(value) or self._new(value)

    def _products(self, node: Node) -> Node:
        data, weight = (self._q(value) for value in node.inputs)
        old = self.graph.qparams[node.output]
        ranks = (self.graph.types[value].rank for value in (node.output, node.inputs[1]))
        axis, out = sums_axis(bind(node), weight, *ranks), self._new(self.unit.outputs[0])
        sums = product_qparams(self.template.semantics, node.op, data, weight, axis, out)
        sums = dataclasses.replace(sums, dtype=old.dtype)
        bias = next((other.inputs[1] for other in self.unit.nodes if other.op == "nn.bias_add"), None)
        added = None if bias is None else quantized_bias(self._real_bias(bias), sums)
        if old.dtype == "int32" and self._outgrows(node, data, weight, added):
            sums = dataclasses.replace(sums, dtype="int64")
        self._qparams[node.output] = sums
        return _with(node, accumulator=sums.dtype)

    def _outgrows(self, node: Node, data: QParams, weight: QParams, bias: NDArray[np.int64] | None) -> bool:
        """Whether sums may leave 32 bits that could not at the scales of the file."""
        old = [self.graph.qparams[value] for value in node.inputs]
        constant = self.graph.constants.get(node.inputs[1])
        before, after = (None, None) if constant is None else (constant.array, self._integers(node.inputs[1]).array)
        could = _sums_beyond(self.graph, node, (old[0], old[1]), before, None)
        return not could and _sums_beyond(self.graph, node, (data, weight), after, bias)

    def _real_bias(self, value: str) -> NDArray[np.generic]:
        return (self._bias or self.template.twin.constants[self.template.real[value]]).array

    def _add_bias(self, value: str, sums: QParams) -> None:
        """The integers of the bias: the file's own as long as their unit is what it was."""
        q = dataclasses.replace(sums, axis=None if sums.axis is None else 0)
        before = self.graph.constants[value]
        reader = next(node for node in self.unit.nodes if value in node.inputs)
        self._qparams[value] = q
        if self._bias is None and sums == self.graph.qparams[reader.inputs[0]]:
            self._constants[value] = before
            return
        integers = quantized_bias(self._real_bias(value), sums)
        if sums.dtype == "int32":
            integers = integers.clip(-_INT32, _INT32)
        self._constants[value] = Constant(integers.astype(numpy_dtype(sums.dtype)))

    def _proportional(self, node: Node) -> QParams:
        """The qparams of sums of one tensor, whose scale is that of the tensor times something."""
        old, source = self.graph.qparams[node.output], node.inputs[0]
        ratio = self._q(source).scales[0] / self.graph.qparams[source].scales[0]
        scale = tuple(scale * ratio for scale in old.scales)
        return dataclasses.replace(old, scale=scale if old.axis is not None else scale[0])

    def _with_implied(self, nodes: list[Node], fresh: Callable[[str], str]) -> list[Node]:
        """The relu that saturation stands for in the file, where it no longer does."""
        if not self.unit.implied:
            return nodes
        relu, q = self.unit.twins[-1], self._q(self.unit.outputs[0])
        low, high = clamp_bounds((relu,), q)
        if (low, high) == (q.qmin, q.qmax):
            return nodes
        value = fresh(f"{self.unit.outputs[0]}.requantized")
        self._qparams[value] = q
        last = dataclasses.replace(nodes[-1], outputs=(value,))
        bounds = FrozenMap[str, Attr]({"a_min": float(low), "a_max": float(high)})
        clip = Node(relu.name, "clip", (value,), self.unit.outputs, bounds, relu.sources)
        return [*nodes[:-1], last, clip]


def _sums_beyond(
    graph: Graph,
    node: Node,
    qparams: tuple[QParams, QParams],
    constant: NDArray[np.generic] | None,
    bias: NDArray[np.int64] | None,
) -> bool:
    data, weight = (graph.types[value] for value in node.inputs)
    bound = largest_sum(bind(node), *qparams, (data, weight), constant)
    return accumulator_dtype(bound, bias) == "int64"


def _rounding(node: Node, rounding: Rounding | None) -> Node:
    """The node with another rounding, where it rounds."""
    return node if rounding is None or "rounding" not in OPS[node.op].attributes() else _with(node, rounding=rounding)


def _with(node: Node, **attrs: Attr) -> Node:
    """The node with other attributes; the same node where they are what they were."""
    defaults = {key: field.default for key, field in OPS[node.op].attributes().items()}
    said = FrozenMap({key: value for key, value in {**node.attrs, **attrs}.items() if value != defaults[key]})
    return node if said == node.attrs else dataclasses.replace(node, attrs=said)
