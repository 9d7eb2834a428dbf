"""Mark in a float twin which tensors are quantized: those that the imported graph has in integers."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np

from qbench.ir.build import rebuild
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Attr, Graph, Node
from qbench.ir.names import claimed
from qbench.ir.op import OPS, QuantRule, is_op
from qbench.ops.qnn.border import FakeQuantize, Quantize
from qbench.passes.annotate import AnnotatePass
from qbench.passes.groups import multiply_axis
from qbench.passes.imported.float_forms import is_narrow
from qbench.passes.imported.template import Template, Unit

_AS_IMPORTED = "float in the imported model"


@dataclass(frozen=True)
class AnnotateTwinPass:
    """Put a ``qnn.fake_quantize`` wherever the imported graph rounds, and a reason on every node that stays in float.

    Parameters
    ----------
    template
        The imported graph beside its twin.
    excluded
        Nodes of the twin that must be in float, with the reason.
    narrow_weights
        Whether weights leave the smallest integer of their type unused; those that use it in the file do so on.
    """

    name: ClassVar[str] = AnnotatePass.name
    template: Template
    excluded: FrozenMap[str, str] = field(default_factory=FrozenMap[str, str])
    narrow_weights: bool = True

    def __call__(self, graph: Graph) -> Graph:
        """The annotated twin; `graph` is the twin itself, perhaps on other constants."""
        return _Annotation(self, graph).result()


def float_units(template: Template, excluded: Mapping[str, str]) -> dict[int, dict[str, str]]:
    """The integer units, by number, that must be in float, and the reason for each of their nodes in the twin.

    Those are the units of excluded nodes, and others than sums of products that then read only what is float.
    """
    found: dict[int, dict[str, str]] = {}
    real: dict[str, str] = {}  # values that float units make, and the node
    for number, unit in enumerate(template.units):
        if not unit.integer:
            source = template.integers(unit.nodes[0].inputs[0]) if unit.nodes[0].inputs else ""
            if is_op(unit.nodes[0], Quantize) and source in real:
                real[unit.nodes[0].output] = real[source]
            continue
        reasons = {node.name: excluded[node.name] for node in unit.twins if node.name in excluded}
        read = [value for value in unit.nodes[0].inputs if template.is_quantized(value)]
        read = [value for value in read if value not in template.graph.constants]
        floats = [real[value] for value in map(template.integers, read) if value in real]
        if not reasons and (OPS[unit.twins[0].op].rule == QuantRule.MAC or not read or len(floats) < len(read)):
            continue
        other = f"neighbour of float: {next(iter(reasons), None) or floats[0]} is float"
        found[number] = {node.name: reasons.get(node.name, other) for node in unit.twins}
        real.update(dict.fromkeys(unit.outputs, unit.twins[0].name))
    return found


class _Annotation:
    """The annotated twin as it grows."""

    def __init__(self, options: AnnotateTwinPass, twin: Graph) -> None:
        self.options, self.template, self.twin = options, options.template, twin
        self._reasons = float_units(options.template, options.excluded)
        self._quantized: dict[str, str] = {}  # what is read in place of a twin value that is rounded
        self._nodes: list[Node] = []
        self._fresh = partial(claimed, taken={*twin.types, *twin.by_name})
        self._by_quantize = {unit.nodes[0].output for unit in self.template.units if is_op(unit.nodes[0], Quantize)}

    def result(self) -> Graph:
        for number, unit in enumerate(self.template.units):
            self._unit(unit, self._reasons.get(number))
        return rebuild(self.twin, nodes=self._nodes)

    def _unit(self, unit: Unit, reasons: Mapping[str, str] | None) -> None:
        integer = unit.integer and reasons is None
        inner = {value for node in unit.nodes[:-1] for value in node.outputs}
        for node in unit.twins:
            inputs = tuple(
                self.template.real.get(value, value) if value in inner else self._read(value, unit, integer)
                for value in node.inputs
            )
            reason = "" if integer else (reasons or {}).get(node.name) or node.reason or _AS_IMPORTED
            self._nodes.append(dataclasses.replace(node, inputs=inputs, reason=reason))
        if not integer:
            return
        if unit.moves:
            self._quantized.update({self.template.real[value]: self.template.real[value] for value in unit.outputs})
        elif is_narrow(self.template.graph, unit.outputs[0]):
            self._round_output(self.template.real[unit.outputs[0]])

    def _round_output(self, tensor: str) -> None:
        raw = tensor
        if tensor in self.twin.outputs:
            raw = self._fresh(f"{tensor}.raw")
            last = self._nodes[-1]
            outputs = tuple(raw if value == tensor else value for value in last.outputs)
            self._nodes[-1] = dataclasses.replace(last, outputs=outputs)
        self._fake(raw, tensor)

    def _read(self, value: str, unit: Unit, integer: bool) -> str:
        """What a twin node reads for a value of the imported graph that is made outside of its unit."""
        template, real = self.template, str(self.template.real.get(value, value))
        if not template.is_quantized(value):
            return real
        if real in self._quantized:
            return self._quantized[real]
        source = template.integers(value)
        as_in_file = source in self._by_quantize or (source in template.graph.constants and not unit.integer)
        if integer or as_in_file:
            self._fake(real, real)
        return self._quantized.get(real, real)

    def _fake(self, raw: str, tensor: str) -> None:
        value = tensor if raw != tensor else self._fresh(f"{tensor}.q")
        self._quantized[tensor] = value
        attrs: dict[str, Attr] = {"tensor": tensor}
        if tensor in self.twin.constants:
            axis = self._channel_axis(tensor)
            attrs |= {} if axis is None else {"channel_axis": axis}
            attrs |= {"narrow": True} if self.options.narrow_weights and not self._uses_all_codes(tensor) else {}
        producer = self.twin.producers.get(tensor)
        sources = producer.sources if producer else ()
        self._nodes.append(
            Node(self._fresh(f"{tensor}.q"), FakeQuantize.name, (raw,), (value,), FrozenMap(attrs), sources)
        )

    def _channel_axis(self, tensor: str) -> int | None:
        """The axis that the file has scales along, else the one that the op which reads the weight would have."""
        axis = self.template.qparams(tensor).axis
        if axis is not None:
            return axis
        axes = {_weight_axis(self.twin, node, tensor) for node in self.twin.consumers[tensor]}
        return axes.pop() if len(axes) == 1 else None

    def _uses_all_codes(self, tensor: str) -> bool:
        array = self.template.graph.constants[self.template.tensors[tensor]].array
        return bool(np.any(array == self.template.qparams(tensor).qmin))


def _weight_axis(graph: Graph, node: Node, value: str) -> int | None:
    if node.op in _AXES:
        return _AXES[node.op] if value == node.inputs[1] else None
    axis = multiply_axis(graph, node) if node.op == "multiply" else None
    return None if axis is None else axis - (graph.types[node.output].rank - graph.types[value].rank)


_AXES = {"nn.conv2d": 0, "nn.dense": 0, "nn.conv2d_transpose": 1}
