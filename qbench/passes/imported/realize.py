"""Give an imported graph other scales: what keeps its scales keeps every bit."""

import dataclasses
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from qbench.ir.build import build
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.memo import Memo
from qbench.ir.names import claimed
from qbench.ir.op import Op, is_op
from qbench.ir.qparams import QParams
from qbench.ops.float.dense import BiasAdd
from qbench.ops.qnn.border import Dequantize, FakeQuantize, Quantize
from qbench.passes.dead_code import DeadCodePass
from qbench.passes.imported.float_forms import is_narrow
from qbench.passes.imported.template import Template, Unit
from qbench.passes.imported.with_scales import Scales, with_scales
from qbench.passes.pipeline import Remembering
from qbench.passes.realize import RealizePass
from qbench.quant.arithmetic import quantize
from qbench.quant.rounding import Rounding


@dataclass(frozen=True)
class RealizeTwinPass(Remembering):
    """Turn an annotated float twin back into the imported graph, with the present qparams of its points.

    Parameters
    ----------
    template
        The imported graph beside its twin.
    overrides
        Another rounding for single nodes of the twin.
    """

    name: ClassVar[str] = RealizePass.name
    template: Template
    overrides: FrozenMap[str, Rounding] = field(default_factory=FrozenMap[str, Rounding])

    def __call__(self, graph: Graph, memo: Memo | None = None) -> Graph:
        """The qnn graph; `graph` is what `AnnotateTwinPass` made, with qparams at its points."""
        return _Realize(self, graph, memo or Memo()).result()


class _Realize:
    """The qnn graph as it grows."""

    def __init__(self, options: RealizeTwinPass, annotated: Graph, memo: Memo) -> None:
        self.options, self.annotated, self.memo = options, annotated, memo
        self.template, self.old, self.twin = options.template, options.template.graph, options.template.twin
        self._fakes = {str(node.attrs["tensor"]): node for node in annotated.nodes if is_op(node, FakeQuantize)}
        self._known: dict[str, QParams] = {}
        self._nodes: list[Node] = []
        self._constants: dict[str, Constant] = {}
        self._qparams: dict[str, QParams] = {}
        self._floats: dict[str, str] = {}  # imported values that float units make, and what they are called
        self._aliases: dict[str, str] = {}  # reals that no dequantize makes any more
        self._added: dict[tuple[str, str], str] = {}  # quantize and dequantize nodes that the file has not
        names = (self.old.types, self.old.by_name, self.twin.types, self.twin.by_name)
        self._fresh = partial(claimed, taken={name for known in names for name in known})

    def result(self) -> Graph:
        """The whole graph."""
        for unit in self.template.units:
            if not unit.integer:
                self._as_in_file(unit)
            elif self.annotated.by_name[unit.twins[0].name].reason:
                self._in_float(unit)
            else:
                self._in_integers(unit)
        given = {name: constant for name, constant in self.old.constants.items() if not is_narrow(self.old, name)}
        given |= {name: constant for name, constant in self.twin.constants.items() if name not in self.old.constants}
        qparams = {name: q for name, q in self.old.qparams.items() if name in given} | self._qparams
        qparams = {name: q for name, q in qparams.items() if name not in self._constants or name in self._qparams}
        graph = build(
            self.old.name, self.old.input_types(), self.old.outputs, self._nodes, given | self._constants, qparams
        )
        return DeadCodePass()(graph) if self._floats else graph

    def _q(self, value: str) -> QParams:
        """The present qparams of an imported value."""
        if value in self._qparams:
            return self._qparams[value]
        if value not in self._known:
            real, old = self.template.real[value], self.old.qparams[value]
            names = (real, *self.template.tied(real), *self.template.ties.get(value, ()))
            name = next((name for name in names if name in self._fakes), None)
            new = None if name is None else self.annotated.qparams[self._fakes[name].output]
            kept = name is None or (name in self.template.tensors and new == self.template.qparams(name))
            self._known[value] = old if kept or new is None else new
        return self._known[value]

    def _as_in_file(self, unit: Unit) -> None:
        """A node on real numbers, or where they become integers or integers become reals."""
        node = unit.nodes[0]
        source = node.inputs[0] if node.inputs else ""
        if not is_op(node, Dequantize) or source not in self._floats:
            self._emit(node, tuple(self._value(value) for value in node.inputs))
            self._qparams.update({value: self._q(value) for value in node.outputs if value in self.old.qparams})
        elif unit.twins:
            self._emit(unit.twins[0], (self._floats[source],))
        else:
            self._aliases[node.output] = self._floats[source]

    def _in_float(self, unit: Unit) -> None:
        inner = {value for node in unit.nodes[:-1] for value in node.outputs}
        for node in unit.twins:
            inputs = tuple(
                self.template.real.get(value, value) if value in inner else self._real(value) for value in node.inputs
            )
            reason = self.annotated.by_name[node.name].reason
            self._nodes.append(dataclasses.replace(node, inputs=inputs, reason=reason))
        self._floats.update({value: self.template.real[value] for value in unit.outputs})

    def _in_integers(self, unit: Unit) -> None:
        scales = Scales(self.template, self._q, self._integers)
        step = with_scales(scales, unit, self._other_bias(unit), self._rounding(unit), self._fresh)
        names: dict[str, str] = {}
        for value, constant in step.constants.items():
            known = self._constants.get(value, constant)
            names[value] = value if known == constant else self._fresh(value)
            self._constants[names[value]] = constant
        self._qparams.update({names.get(value, value): q for value, q in step.qparams.items()})
        made = {value for node in step.nodes for value in node.outputs}
        for node in step.nodes:
            inputs = tuple(
                names[value] if value in names else value if value in made else self._value(value)
                for value in node.inputs
            )
            self._emit(node, inputs)

    def _emit(self, node: Node, inputs: tuple[str, ...]) -> None:
        self._nodes.append(node if inputs == node.inputs else dataclasses.replace(node, inputs=inputs))

    def _value(self, value: str) -> str:
        """The name of an imported value; quantized, where a unit that is float now makes it."""
        if value in self._aliases:
            return self._aliases[value]
        if value in self._floats:
            return self._border(Quantize, "quantize", self._floats[value], value)
        if value in self.old.constants and is_narrow(self.old, value):
            self._constants[value], self._qparams[value] = self._integers(value), self._q(value)
        return value

    def _real(self, value: str) -> str:
        """What a value is called in real numbers."""
        source = self.template.integers(value)
        if value in self.old.constants:
            return self._real_constant(value)
        if not self.template.is_quantized(value) or value != source:
            return self._aliases.get(value, value)
        if source in self._floats:
            return self._floats[source]
        made = next((node.output for node in self.old.consumers[source] if is_op(node, Dequantize)), None)
        return made or self._border(Dequantize, "dequantize", source, source)

    def _border(self, op: type[Op], what: str, source: str, value: str) -> str:
        """A quantize or dequantize node that the file has not; the value that it makes."""
        if (op.name, source) not in self._added:
            tensor = self.template.real[value]
            made = self._added[op.name, source] = self._fresh(f"{tensor}.{what}d")
            producer = self.twin.producers.get(tensor)
            sources = producer.sources if producer else ()
            self._nodes.append(Node(self._fresh(f"{tensor}.{what}"), op.name, (source,), (made,), sources=sources))
            if op is Quantize:
                self._qparams[made] = self._q(value)
        return self._added[op.name, source]

    def _real_constant(self, value: str) -> str:
        constant = self.twin.constants[self.template.real[value]]
        if constant == self.old.constants[value]:
            return value
        if ("constant", value) not in self._added:
            shared = not all(self._is_float(node.name) for node in self.old.consumers[value])
            name = self._added["constant", value] = self._fresh(f"{value}.real") if shared else value
            self._constants[name] = constant
        return self._added["constant", value]

    def _is_float(self, node: str) -> bool:
        found = self.annotated.by_name.get(node)
        return found is not None and bool(found.reason)

    def _integers(self, value: str) -> Constant:
        """The integers of a quantized constant: the file's own as long as they mean the same."""
        q, tensor = self._q(value), self.template.real[value]
        if q == self.old.qparams[value] or tensor not in self._fakes:
            return self.old.constants[value]
        narrow = bool(self._fakes[tensor].attrs.get("narrow", False))
        given = self.twin.constants[tensor], q, narrow
        return self.memo.recall((RealizeTwinPass.name, "constant", tensor), given, partial(_quantized, *given))

    def _other_bias(self, unit: Unit) -> Constant | None:
        """The real bias of a unit where a pass has changed it."""
        for node in unit.nodes:
            if is_op(node, BiasAdd):
                value = self.annotated.by_name[node.name].inputs[1]
                constant = self.annotated.constants[value]
                return None if constant == self.twin.constants[self.template.real[node.inputs[1]]] else constant
        return None

    def _rounding(self, unit: Unit) -> Rounding | None:
        overrides = self.options.overrides
        return next((overrides[node.name] for node in unit.twins if node.name in overrides), None)


def _quantized(constant: Constant, q: QParams, narrow: bool) -> Constant:
    return Constant(quantize(constant.array, q, narrow))
