"""One fused group of a calibrated graph on the road into integers, and the names that its qnn ops get."""

import dataclasses

import numpy as np

from qbench.forms import Arithmetic, Bias, Form, Integers, NoForm, Site, Step, form_of
from qbench.forms.sums import bias_units, quantized_bias
from qbench.ir.frozen import Constant
from qbench.ir.graph import Node
from qbench.ir.op import QuantRule, is_op
from qbench.ops.qnn.border import Dequantize, FakeQuantize
from qbench.passes.emitter import Emitter
from qbench.passes.groups import Group, rule_of
from qbench.passes.rewrite import joined_sources


def realize_group(emitter: Emitter, group: Group, arithmetic: Arithmetic) -> None:
    """Emit the qnn nodes of an integer group; the float nodes, with the reason, where it has no integer form."""
    fake = None
    if rule_of(group.head) != QuantRule.SAME:  # which has one, unless its sums become real numbers
        readers = emitter.known.consumers[group.outputs[0]]
        fake = next((node for node in readers if is_op(node, FakeQuantize)), None)
    try:
        form = form_of(_site(emitter, group, fake, arithmetic))
    except NoForm as why:
        _stay_float(emitter, group, fake, arithmetic, str(why))
        return
    _Placing(emitter, group, fake).place(form)


def _site(emitter: Emitter, group: Group, fake: Node | None, arithmetic: Arithmetic) -> Site:
    head, known = group.head, emitter.known
    operands = tuple(emitter.operand(value) for value in head.inputs)
    moved = operands[0].q if rule_of(head) == QuantRule.SAME else None
    q = moved if fake is None else emitter.encoding(fake)
    bias = next((node for node in group.nodes if rule_of(node) == QuantRule.BIAS), None)
    return Site(
        head,
        operands,
        known.types[head.outputs[0]].rank,
        () if q is None else (q,),
        arithmetic,
        None if bias is None else Bias(known.floats[bias.inputs[1]].array, attrs=tuple(bias.attrs.items())),
        tuple(node for node in group.nodes[1:] if rule_of(node) == QuantRule.CLAMP),
    )


def _stay_float(emitter: Emitter, group: Group, fake: Node | None, arithmetic: Arithmetic, why: str) -> None:
    if rule_of(group.head) != QuantRule.SAME:
        for node in group.nodes:
            rounded = arithmetic.semantics == "onnx" and rule_of(node) == QuantRule.BIAS
            emitter.float_node(_with_rounded_bias(emitter, group, node) if rounded else node, why)
        if fake is not None:
            emitter.point(fake, arithmetic.ties)
        return
    head, q = group.head, emitter.q(group.head.inputs[0])
    outputs = tuple(emitter.fresh(f"{v}.raw") if v in emitter.known.outputs else v for v in head.outputs)
    emitter.float_node(dataclasses.replace(head, outputs=outputs), why)
    for value, real in zip(head.outputs, outputs, strict=True):  # what only moves keeps the scale that it came with
        emitter.integers[value] = emitter.quantized(real, head, q, arithmetic.ties)


def _with_rounded_bias(emitter: Emitter, group: Group, node: Node) -> Node:
    """A bias_add that reads real numbers, of the bias as ONNX files store it."""
    factors = (emitter.operand(value).q for value in group.head.inputs)
    units = bias_units(*(q for q in factors if q is not None))
    integers = quantized_bias(emitter.known.floats[node.inputs[1]].array, units)
    if np.abs(integers).max(initial=0) > np.iinfo(np.int32).max:
        return node  # no file can hold it
    stored = emitter.constant(node.inputs[1], Constant(integers.astype(np.int32)), units)
    real = emitter.fresh(f"{node.inputs[1]}.dequantized")
    helper = Node(emitter.fresh(f"{node.inputs[1]}.dequantize"), "", (), (), sources=node.sources)
    emitter.emit(helper, Dequantize.name, (stored,), (real,), None)
    return dataclasses.replace(node, inputs=(node.inputs[0], real))


class _Placing:
    """A form on its way into the realized graph."""

    def __init__(self, emitter: Emitter, group: Group, fake: Node | None) -> None:
        self.emitter, self.group, self.head, self.fake = emitter, group, group.head, fake
        self._tensor = group.outputs[0] if fake is None else str(fake.attrs["tensor"])
        self._made: dict[Step, str] = {}

    def place(self, form: Form) -> None:
        """Emit the steps; the results are the group's integers, or sums that become real numbers."""
        emitter, outputs = self.emitter, self.group.outputs if self.fake is None else (self._tensor,)
        real = self.fake is None and rule_of(self.head) != QuantRule.SAME
        results = tuple(emitter.fresh(f"{value}.sums") if real else emitter.integer_name(value) for value in outputs)
        for step in form.steps:
            last = step is form.results[0]
            inputs = tuple(self._input(given) for given in step.inputs)
            names = results if last else (self._value(step),)
            emitter.emit(self._node(step), step.op, inputs, names, step.q, **step.attrs)
            self._made[step] = names[0]
        if real:
            helper = Node(
                emitter.fresh(f"{outputs[0]}.dequantize"), "", (), (), sources=joined_sources(*self.group.nodes)
            )
            emitter.emit(helper, Dequantize.name, results, outputs, None)
            return
        emitter.integers.update(
            zip(self.group.outputs if self.fake is None else self.fake.outputs, results, strict=True)
        )

    def _input(self, given: int | Step | Integers) -> str:
        if isinstance(given, Step):
            return self._made[given]
        if isinstance(given, Integers):
            name = self._bias().inputs[1] if given.operand is None else self.head.inputs[given.operand]
            return self.emitter.constant(name, Constant(given.array), given.q)
        value = self.head.inputs[given]
        return self.emitter.integers.get(value, value)

    def _bias(self) -> Node:
        return next(node for node in self.group.nodes if rule_of(node) == QuantRule.BIAS)

    def _value(self, step: Step) -> str:
        """What a value that stays inside of the group is called."""
        wishes = {
            "operand": f"{self._input(step.inputs[0])}.for.{self.head.name}",
            "wide": f"{self.head.inputs[0]}.wide",
            "made": f"{self.head.outputs[0]}.summed",
            "averaged": f"{self._tensor}.averaged",
            "requantized": f"{self.group.nodes[-1].inputs[0]}.requantized",
            "clamped": f"{self._tensor}.clamped",
        }
        if step.what in wishes:
            return self.emitter.fresh(wishes[step.what])
        # sums keep the float tensor's name, unless that is the group's output, whose name its integers have
        node = self._bias() if step.what == "biased" else self.head
        last = node is self.group.nodes[-1]
        return self.emitter.fresh(f"{self._tensor}.accumulator") if last else node.output

    def _node(self, step: Step) -> Node:
        """The float node whose name and sources a step gets; a helper where it stands for none alone."""
        names = {
            "operand": f"{self._input(step.inputs[0])}.for.{self.head.name}.requantize",
            "wide": f"{self.head.name}.widen",
            "requantized": f"{self.head.name}.requantize",
            "narrowed": f"{self.head.name}.narrow",
        }
        if step.what in names:
            return Node(self.emitter.fresh(names[step.what]), "", (), (), sources=joined_sources(*self.group.nodes))
        return {"biased": self._bias, "clamped": lambda: self.group.nodes[-1]}.get(step.what, lambda: self.head)()
